package trial

import (
	"errors"
	"fmt"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a node cannot record ends an attempt with a code that says so, whoever
// met it, also once it was written down and read again.
func TestARecordThatIsNotKeptIsTheReason(t *testing.T) {
	e := &Engine{}
	spool := &fakeSpool{full: errors.New("no room")}
	e.deps.Spool = spool
	err := e.recordAt(1, wire.TrialKey{Trial: 3, Attempt: 1}, &wire.GPS{})
	if err == nil {
		t.Fatal("a record was kept on a full disk")
	}
	r := reasonOf(fmt.Errorf("emit sample of gps: %w", err))
	if read := wire.ParseReason(r.String()); r.Code != wire.ReasonDiskFull || read.Code != wire.ReasonDiskFull {
		t.Errorf("%q has the code %q, read again %q", r, r.Code, read.Code)
	}
	if other := reasonOf(errors.New("something else")); other.Code != "" {
		t.Errorf("an error without a code has %q", other.Code)
	}
}
