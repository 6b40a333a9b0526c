package threats

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// How many warnings are not named is the number of all that nodes gave.
func TestWarningsThatAreNotNamedAreCounted(t *testing.T) {
	for warned, end := range map[int]string{20: "a warning.", 1000: "a warning and 980 more."} {
		d := evidence.Run{Warnings: slices.Repeat([]string{"a warning"}, 20), Warned: warned}
		if said, _ := nodesEvents(&d); !strings.HasSuffix(said.Text, end) {
			t.Errorf("of %d: %q, want %q at its end", warned, said.Text, end)
		}
	}
}
