package report

import "fieldmesh.dev/fieldmesh/controller/design"

// asksP1 reports whether the campaign puts P1's question, so that P1's answer
// belongs beside it: it names P1, and its factors are speed and section.
func asksP1(d *data) bool {
	return d.info.Paper != nil && d.info.Paper.Name == "p1" && speedBySection(d)
}

// speedBySection reports whether speed and section are what the campaign
// varies.
func speedBySection(d *data) bool {
	all := d.planned()
	if len(speeds(all)) < 2 {
		return false
	}
	for _, s := range levels(all, section) {
		if s != "A" && s != "B" {
			return false
		}
	}
	return len(levels(all, section)) > 0 && len(design.FurtherFactors(passesOf(all))) == 0
}

// planned are the plan's ordinary trials, as attempts without numbers.
func (d *data) planned() []attempt {
	var out []attempt
	for _, t := range d.info.Plan.Trials {
		if t.Pass == "" {
			out = append(out, d.attemptOf(t))
		}
	}
	return out
}
