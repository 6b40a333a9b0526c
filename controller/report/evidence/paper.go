package evidence

import "fieldmesh.dev/fieldmesh/controller/design"

// AsksP1 reports whether the campaign puts P1's question, so that P1's answer
// belongs beside it: it names P1, and its factors are speed and section.
func AsksP1(d *Run) bool {
	return d.Info.Paper != nil && d.Info.Paper.Name == "p1" && SpeedBySection(d)
}

// SpeedBySection reports whether speed and section are what the campaign
// varies.
func SpeedBySection(d *Run) bool {
	all := d.Planned()
	if len(Speeds(all)) < 2 {
		return false
	}
	for _, s := range Levels(all, Section) {
		if s != "A" && s != "B" {
			return false
		}
	}
	return len(Levels(all, Section)) > 0 && len(design.FurtherFactors(PassesOf(all))) == 0
}

// Planned are the plan's ordinary trials, as attempts without numbers.
func (d *Run) Planned() []Attempt {
	var out []Attempt
	for _, t := range d.Info.Plan.Trials {
		if t.Pass == "" {
			out = append(out, d.AttemptOf(t))
		}
	}
	return out
}
