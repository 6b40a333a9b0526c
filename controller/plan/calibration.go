package plan

import (
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// parkedTimeoutS is what a parked pass waits for its peers beyond its own time.
const parkedTimeoutS = 30

// checkCalibration reports factors that calibration names and the file lacks.
func (p *parse) checkCalibration(root *tree.Node) {
	for _, phase := range []string{"before", "after"} {
		n := root.Lookup("calibration." + phase + ".factors")
		if !n.Fine() {
			continue
		}
		for _, item := range n.Items {
			reference{"factor", p.factorNames()}.check(&p.findings, "calibration."+phase+".factors", item)
		}
	}
}

// calibrationTrials are the parked passes of a phase: every mark under every combination of the factors that the phase
// names, in the file's order. Factors that it does not name stay as the section trial has them.
func (p *parse) calibrationTrials(root, base *tree.Node, phase string, block int) []wire.Trial {
	n := root.Lookup("calibration." + phase)
	if n == nil || n.Shape != tree.Map || !n.Child("marks_m").Fine() {
		return nil
	}
	var trials []wire.Trial
	for _, c := range p.calibrationCells(n) {
		trial := base
		for _, l := range c.levels {
			trial = tree.Merge(trial, l.override)
		}
		for _, b := range p.design.balance {
			if len(b.values) > 0 {
				trial = tree.Merge(trial, b.values[0].override)
			}
		}
		for _, mark := range n.Child("marks_m").Items {
			t := p.trialOf(parked(trial, n, mark), "")
			t.Block, t.Pass = block, wire.PassCalibration
			t.Factors = c.labels()
			t.Factors["calibration"], t.Factors["mark_m"] = phase, label(mark)
			trials = append(trials, t)
			if len(trials) > wire.MaxTrials {
				p.findings.Add(n.Home, "calibration.%s: more than %d passes are not allowed; allowed: fewer marks or "+
					"factors", phase, wire.MaxTrials)
				return nil
			}
		}
	}
	return trials
}

// calibrationCells are the combinations of the levels that a phase has its passes
// in. They are no more than the design's cells.
func (p *parse) calibrationCells(phase *tree.Node) []cell {
	var of []factor
	if named := phase.Child("factors"); named.Fine() {
		for _, x := range p.factors {
			if slices.ContainsFunc(named.Items, func(item *tree.Node) bool { return item.Text == x.name }) {
				of = append(of, x)
			}
		}
	}
	return crossed(of)
}

// parked makes a trial into a parked pass: the car stands at the mark, no rule
// speaks of speed, and every flow lasts for the whole window.
func parked(trial, phase, mark *tree.Node) *tree.Node {
	drop := []string{"speed_mps", "direction", "duration_s", "gate", "course.kind", "course.start_m",
		"course.segment_m", "course.length_m",
		"course.accel_mps2", "course.brake_mps2", "acceptance.speed_band_mps", "acceptance.in_band_share_min"}
	for _, e := range trial.Child("traffic").EntriesOrNone() {
		if !strings.Contains(e.Key, ".") {
			drop = append(drop, "traffic."+e.Key+".start_s", "traffic."+e.Key+".duration_s")
		}
	}
	at, after := mark.At, phase.NumberOrZero("after_s")
	atStart := trial.Lookup("gate.at_start")
	if waits := trial.BoolAt("gate.at_start"); waits == nil || *waits { // a parked pass says it by its site
		atStart = nil
	}
	out := tree.Without(trial, drop...)
	for _, set := range []struct {
		path  string
		value *tree.Node
	}{
		{"course.kind", tree.NewText("parked", at)}, {"course.mark_m", mark},
		{"gate.after_s", tree.NewNumber(after, at)}, {"gate.timeout_s", tree.NewNumber(after+parkedTimeoutS, at)},
		{"gate.lead_s", trial.Lookup("gate.lead_s")}, {"gate.at_start", atStart},
		{"duration_s", phase.Child("duration_s")},
	} {
		if set.value != nil {
			out = tree.Merge(out, tree.Nest(set.path, set.value))
		}
	}
	return out
}
