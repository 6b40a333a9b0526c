package run

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestWhatWaitingCannotHelpIsRefusedAtOnce(t *testing.T) {
	unmet := func(needs ...string) (out []Unmet) {
		for _, n := range needs {
			out = append(out, Unmet{Node: "car", Problem: wire.Problem{Need: n}})
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
	all := (&UnmetError{[]Unmet{{Node: "car", Problem: wire.Problem{Need: "gps", Found: "no fix", Cure: "wait"}},
		{Node: "roadside", Problem: wire.Problem{Need: "reach", Found: "nothing", Cure: "start the agent"}}}}).Error()
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
		if resumed && (err != nil || len(told) != 1 || told[0].Found != "line 1 is lost" || !told[0].Passed) {
			t.Errorf("resumed: %v, told %v", err, told)
		}
		if !resumed && (err == nil || !strings.Contains(err.Error(), "node road: journal: line 1 is lost; look")) {
			t.Errorf("a new run: %v", err)
		}
	}
}

// A roadside node that may stand where the plan has it, or 34 m from there, is told, and one without a good fix yet is
// waited for.
func TestARoadsideNodeThatMayStandElsewhereIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		latDeg float64
		mode   int
		refuse string
		told   int
	}{
		"there":           {50, 3, "", 0},
		"34 m along":      {50 + 34*180/math.Pi/earth.MeanRadiusM, 3, "", 1},
		"on another road": {50.1, 3, "node road: site: by its receiver it stands 11123 m from", 0},
		"in a cold start": {50, 1, "node road: site: whether it stands where", 0},
	} {
		lane, field := newLane(t, "field")
		plan := newRunner(t, 1, 1, lane).Plan
		trial := &plan.Trials[0]
		trial.Gate.AtStart = true
		trial.Course = wire.Course{Kind: "depart", SiteLatDeg: new(50.0), SiteLonDeg: new(8.0)}
		at := wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(1.0), LatDeg: &c.latDeg, LonDeg: new(8.0),
			HorizErrM: new(5.0)}
		field.nodes["car"].gps = new(at)
		at.Mode = c.mode
		field.nodes["road"].gps = &at
		var told []Unmet
		err := Preflight(within(t), plan, lane, true, 0, func(u Unmet) { told = append(told, u) })
		if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%s: %v, want %q", name, err, c.refuse)
		}
		if len(told) != c.told || c.told > 0 && (!told[0].Passed || told[0].Need != "site") {
			t.Errorf("%s: told %+v", name, told)
		}
	}
}
