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
