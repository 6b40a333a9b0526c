package show

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// Of a campaign that may stop early, the least effects found are those that the report's intervals find, which are
// at another confidence.
func TestLeastFoundIsAtTheLevelOfARunThatMayStop(t *testing.T) {
	c, err := plan.Load("../../../campaigns/velocity-powered.yaml")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	once := Estimable(c, trials)
	c.Design.StopWhen = &plan.StopWhen{Of: plan.StopOfMean, MinBlocks: 6, EveryBlocks: 1, Confidence: 0.95}
	stopping := Estimable(c, trials) // 10 blocks: 5 looks
	compared := 0
	ratio := func(df float64) float64 {
		return stats.Detectable(stats.WishedPower, df, 1-0.05/5) / stats.Detectable(stats.WishedPower, df, 0.95)
	}
	for i, f := range stopping.Effects {
		if f.LeastFoundSD == nil {
			continue
		}
		compared++
		got := *f.LeastFoundSD / *once.Effects[i].LeastFoundSD
		if low, high := ratio(*f.DFMax)-1e-6, ratio(*f.DFMin)+1e-6; got < low || got > high {
			t.Errorf("%s: %g times that of one look, want %g to %g", f.Name, got, low, high)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
