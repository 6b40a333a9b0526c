package verdict

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// standingFixes are the roadside node's ticks at 1 Hz from before the window on: a
// fix in each until its GPS stops, and then only the last one's age.
func standingFixes(stopsS float64, after wire.GPS) []wire.Record {
	var out []wire.Record
	for s := -1.5; s < 10; s++ {
		g := wire.GPS{Mode: 3, Connected: true, FixAgeMs: new(20.0), FixBootNs: new(openNs + int64(s*1e9)),
			LatDeg: new(50.0), LonDeg: new(8.0)}
		if s > stopsS {
			g = after
			g.FixAgeMs = new((s-stopsS)*1e3 + 20)
		}
		out = append(out, at("roadside", s+0.02, &g))
	}
	return out
}

// The place from which distances are taken is judged as the car's is, by name.
func TestTheRoadsidesGPSIsJudged(t *testing.T) {
	stopped, died := wire.GPS{Mode: 3, Connected: true}, wire.GPS{}
	for name, c := range map[string]struct {
		records []wire.Record
		change  func(*wire.Trial)
		reason  string
	}{
		"well": {standingFixes(20, stopped), nil, ""},
		"gpsd stood still": {standingFixes(2.5, stopped), nil,
			"gps: fix_age_ms_max on roadside is 7500, limit 1500"},
		"gpsd stopped before": {standingFixes(-2, stopped), nil,
			"gps: fix_age_ms_max on roadside is 1.152e+04, limit 1500"},
		"its first fix came in the window": {without(standingFixes(20, stopped),
			func(r wire.Record) bool { return r.TBootNs < openNs+9e9 }), nil,
			"gps: fix_age_ms_max on roadside not measured"},
		"gpsd died": {standingFixes(8.5, died), nil, "gps: fix_mode_min on roadside is 0, limit 2"},
		"it lost its satellites": {standingFixes(8.5, wire.GPS{Mode: 1, Connected: true}), nil,
			"gps: fix_mode_min on roadside is 1, limit 2"},
		"no receiver": {[]wire.Record{at("roadside", 1, &wire.GPS{}), at("roadside", 2, &wire.GPS{})},
			nil, ""},
		"nothing recorded of one": {nil, nil, ""},
		"no rule is set": {standingFixes(2.5, died),
			func(t *wire.Trial) { t.Acceptance.FixAgeMsMax, t.Acceptance.FixModeMin = nil, nil }, ""},
		"no car, from which to be far": {standingFixes(2.5, died),
			func(t *wire.Trial) { t.Car, t.SpeedMps = "", nil }, ""},
	} {
		tr := trial()
		if c.change != nil {
			c.change(&tr)
		}
		records := append(good(), c.records...)
		v := Judge(tr, 2, records, Scope{Final: true})
		if v.Reason.String() != c.reason || (v.Outcome == wire.Rejected) != (c.reason != "") {
			t.Errorf("%s: %s %q, want %q", name, v.Outcome, v.Reason, c.reason)
		}
		own := without(records, func(r wire.Record) bool { return r.Node == "roadside" || r.Body.Kind() == "clock" })
		if v := Judge(tr, 2, own, Scope{}); v.Outcome != wire.Accepted {
			t.Errorf("%s: the car, which does not know, judges %s %q", name, v.Outcome, v.Reason)
		}
	}
	named := map[string]int{}
	for _, c := range Judge(trial(), 2, append(good(), standingFixes(20, stopped)...), Scope{Final: true}).Checks {
		if strings.HasPrefix(c.Rule, "fix_") {
			named[c.Node]++
		}
	}
	if named["car"] != 2 || named["roadside"] != 2 {
		t.Errorf("checks of fixes by node: %v", named)
	}
}
