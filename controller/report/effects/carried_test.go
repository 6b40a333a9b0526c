package effects

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// Only what is told per m/s is off by the scale of the car's speed: not a factor
// that a campaign calls "slope_of_road".
func TestWhatIsToldPerSpeed(t *testing.T) {
	for _, c := range []struct {
		term, label string
		want        bool
	}{
		{design.Speed, design.PerMps, true},
		{"slope in section A", design.PerMps, true},
		{design.Interaction, "slope of B − A", true},
		{design.Section, "B − A", false},
		{"slope_of_road", "steep − flat", false},
		{design.Mean, "mean", false},
	} {
		if got := perSpeed(stats.Estimate{Term: c.term, Label: c.label}); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.term, c.label, got, c.want)
		}
	}
}

// A segment separates speed from distance only where the windows were of one stretch: a car that is late, or a gate
// that the campaign lets open anywhere, has windows elsewhere.
func TestASegmentSeparatesWhereItWasDriven(t *testing.T) {
	const same = " The course itself separates them: every speed was driven over the same stretch."
	for _, c := range []struct {
		course string
		ends   [][2]float64 // where the windows opened and closed, in m from the roadside node
		want   string
	}{
		{"segment", [][2]float64{{20, 120}, {121, 19}, {45, 144}}, same},
		{"depart", [][2]float64{{20, 120}, {121, 19}, {45, 144}}, ""},
		{"segment", [][2]float64{{20, 120}, {170, 270}},
			" The windows were of other stretches all the same: they began or ended up to 150 m apart."},
		{"segment", [][2]float64{{20, 120}, {0, 0}}, ""}, // not known
	} {
		r := Run{Courses: []string{c.course}}
		for _, e := range c.ends {
			one := Result{DistanceOpenM: &e[0], DistanceCloseM: &e[1]}
			if e[0] == 0 {
				one = Result{}
			}
			r.Results = append(r.Results, one)
		}
		if got := r.stretch(); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.course, c.ends, got, c.want)
		}
	}
}
