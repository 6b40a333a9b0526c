package plan

import (
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// parkedTimeoutS is what a parked pass waits for its peers beyond its own time.
const parkedTimeoutS = 30

// checkCalibration reports factors that calibration names and the file lacks.
func (p *parse) checkCalibration(root *node) {
	for _, phase := range []string{"before", "after"} {
		n := root.lookup("calibration." + phase + ".factors")
		if !n.fine() {
			continue
		}
		for _, item := range n.items {
			reference{"factor", p.factorNames()}.check(&p.findings, "calibration."+phase+".factors", item)
		}
	}
}

// calibrationTrials are the parked passes of a phase: every mark under every
// combination of the factors that the phase names, in the file's order.
// Factors that it does not name stay as the section trial has them.
func (p *parse) calibrationTrials(root, base *node, phase string, block int) []wire.Trial {
	n := root.lookup("calibration." + phase)
	if n == nil || n.shape != shapeMap || !n.child("marks_m").fine() {
		return nil
	}
	var trials []wire.Trial
	for _, c := range p.calibrationCells(n) {
		tree := base
		labels := map[string]string{"calibration": phase}
		for i, l := range c.levels {
			tree = merge(tree, l.override)
			labels[p.factors[c.factors[i]].name] = l.label
		}
		for _, b := range p.design.balance {
			if len(b.values) > 0 {
				tree = merge(tree, b.values[0].override)
			}
		}
		for _, mark := range n.child("marks_m").items {
			t := p.trialOf(parked(tree, n, mark), "")
			t.Block, t.Pass = block, wire.PassCalibration
			t.Factors = map[string]string{"mark_m": label(mark)}
			for name, l := range labels {
				t.Factors[name] = l
			}
			trials = append(trials, t)
			if len(trials) > maxTrials {
				p.findings.add(n.home, "calibration.%s: more than %d passes are not allowed; allowed: fewer marks or "+
					"factors", phase, maxTrials)
				return nil
			}
		}
	}
	return trials
}

// calibrationCell is a combination of the levels of some factors.
type calibrationCell struct {
	factors []int
	levels  []level
}

func (p *parse) calibrationCells(phase *node) []calibrationCell {
	out := []calibrationCell{{}}
	named := phase.child("factors")
	if !named.fine() {
		return out
	}
	for i, x := range p.factors {
		if !named.holds(x.name) {
			continue
		}
		var next []calibrationCell
		for _, c := range out {
			for _, l := range x.levels {
				next = append(next, calibrationCell{append(append([]int(nil), c.factors...), i),
					append(append([]level(nil), c.levels...), l)})
			}
		}
		if len(next) > maxCells {
			return nil // the cells of the design are then too many as well, and that is reported
		}
		out = next
	}
	return out
}

// holds reports whether a list has a text.
func (n *node) holds(text string) bool {
	for _, item := range n.items {
		if item.text == text {
			return true
		}
	}
	return false
}

// parked makes a trial into a parked pass: the car stands at the mark, no rule
// speaks of speed, and every flow lasts for the whole window.
func parked(tree, phase, mark *node) *node {
	drop := []string{"speed_mps", "direction", "duration_s", "gate", "course.kind", "course.start_m",
		"course.segment_m", "course.length_m",
		"course.accel_mps2", "course.brake_mps2", "acceptance.speed_band_mps", "acceptance.in_band_share_min"}
	for _, e := range tree.child("traffic").entriesOrNone() {
		if !strings.Contains(e.key, ".") {
			drop = append(drop, "traffic."+e.key+".start_s", "traffic."+e.key+".duration_s")
		}
	}
	lead := tree.lookup("gate.lead_s")
	tree = without(tree, drop...)
	at := mark.at
	after := orZero(phase.numberAt("after_s"))
	gate := mapNode(at, entry{"after_s", at, numberNode(after, at)},
		entry{"timeout_s", at, numberNode(after+parkedTimeoutS, at)})
	if lead != nil {
		gate.entries = append(gate.entries, entry{"lead_s", at, lead})
	}
	pass := mapNode(at,
		entry{"course", at, mapNode(at, entry{"kind", at, textNode("parked", at)}, entry{"mark_m", at, mark})},
		entry{"gate", at, gate})
	if d := phase.child("duration_s"); d != nil {
		pass.entries = append(pass.entries, entry{"duration_s", d.home, d})
	}
	return merge(tree, pass)
}
