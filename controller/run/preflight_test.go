package run

import (
	"strings"
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

// A damaged journal keeps a new run from its node, and not one that has begun.
func TestARunIsResumedWithANodeWhoseJournalWasDamaged(t *testing.T) {
	lane, field := newLane(t, "field")
	plan := newRunner(t, 1, 1, lane).Plan
	field.nodes["road"].problems = []wire.Problem{
		{Need: wire.NeedJournal, Found: "line 1 is lost", Cure: "look"}}
	for _, resumed := range []bool{false, true} {
		var told []Unmet
		err := Preflight(within(t), plan, lane, resumed, 0, func(u Unmet) { told = append(told, u) })
		if resumed && (err != nil || len(told) != 1 || told[0].Found != "line 1 is lost") {
			t.Errorf("resumed: %v, told %v", err, told)
		}
		if !resumed && (err == nil || !strings.Contains(err.Error(), "node road: journal: line 1 is lost; look")) {
			t.Errorf("a new run: %v", err)
		}
	}
}
