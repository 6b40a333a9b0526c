package verdict

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What is made of a node's reason depends on its code, not on its words.
func TestARewordedReasonChangesNoVerdict(t *testing.T) {
	for _, c := range []struct {
		reason, want string
	}{
		{"generator: on car: iperf3 was ended by a signal", Accepted}, // judged anew, by all records
		{"generator: said in other words", Accepted},
		{"generators are down: of another kind", Failed},
		{"spool: the disk is full", Failed},
	} {
		records := append([]wire.Record{kept("car", Failed, c.reason)}, good()...)
		if v := Judge(trial(), 2, records, Scope{Final: true}); v.Outcome != c.want {
			t.Errorf("%q: %s %q, want %s", c.reason, v.Outcome, v.Reason, c.want)
		}
	}
	for reason, want := range map[string]Code{"gps: on car: no fix": "gps", "aborted": "aborted", "": ""} {
		if got := CodeOf(reason); got != want {
			t.Errorf("code of %q is %q, want %q", reason, got, want)
		}
	}
}
