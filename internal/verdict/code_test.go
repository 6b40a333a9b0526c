package verdict

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What is made of a node's reason depends on its code, not on its words.
func TestARewordedReasonChangesNoVerdict(t *testing.T) {
	for _, c := range []struct {
		reason string
		want   wire.Outcome
	}{
		{"generator: on car: iperf3 was ended by a signal", wire.Accepted}, // judged again, by all records
		{"generator: said in other words", wire.Accepted},
		{"generators are down: of another kind", wire.Failed},
		{"spool: the disk is full", wire.Failed},
	} {
		records := append([]wire.Record{kept("car", wire.Failed, c.reason)}, good()...)
		if v := Judge(trial(), 2, records, Scope{Final: true}); v.Outcome != c.want {
			t.Errorf("%q: %s %q, want %s", c.reason, v.Outcome, v.Reason, c.want)
		}
	}
}
