package evidence

import (
	"fmt"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Of many warnings some are held, and all are counted.
func TestWarningsAreCounted(t *testing.T) {
	var d Run
	for i := range 3 * maxWarnings {
		d.add(&reading{records: []wire.Record{{Body: &wire.Event{Level: "warning", Text: fmt.Sprint(i)}},
			{Body: &wire.Event{Level: "info", Text: "nothing"}}}})
	}
	if len(d.Warnings) != maxWarnings || d.Warned != 3*maxWarnings {
		t.Errorf("%d held of %d, want %d of %d", len(d.Warnings), d.Warned, maxWarnings, 3*maxWarnings)
	}
}
