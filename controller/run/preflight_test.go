package run

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestWhatWaitingCannotHelpIsRefusedAtOnce(t *testing.T) {
	unmet := func(needs ...string) (out []Unmet) {
		for _, n := range needs {
			out = append(out, Unmet{"car", wire.Problem{Need: n}})
		}
		return out
	}
	for _, needs := range [][]string{{"gps"}, {"reach", "radio"}, {"host", "gps"}, {"generator"}} {
		if !mayPass(unmet(needs...)) {
			t.Errorf("%v is not waited for", needs)
		}
	}
	for _, needs := range [][]string{{"key"}, {"iperf3"}, {"disk"}, {"clock"}, {"tcp"}, {"gps", "key"}} {
		if mayPass(unmet(needs...)) {
			t.Errorf("%v is waited for", needs)
		}
	}
}

func TestUnmetNeedsAreReportedWithTheirCure(t *testing.T) {
	all := (&UnmetError{[]Unmet{{"car", wire.Problem{Need: "gps", Found: "no fix", Cure: "wait"}},
		{"roadside", wire.Problem{Need: "reach", Found: "nothing", Cure: "start the agent"}}}}).Error()
	want := "the fleet cannot run this plan:\n  node car: gps: no fix; wait\n  node roadside: reach: nothing; " +
		"start the agent"
	if all != want {
		t.Errorf("told as\n%s\nwant\n%s", all, want)
	}
}
