package show

import (
	"strings"
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

// A run waits for nobody who carries a laptop: the plan says before which trials, and what to do.
func TestExchangesOfTheNodeInTheCarAreListed(t *testing.T) {
	for name, want := range map[string]string{
		"velocity": "",
		"velocity-powered": "the node in the car changes before trial 5, 21, 33, 45, 57, 69, 81, 93, " +
			"105, 117, 129, 141, 153, 165, 177, 189, 201, 213, 237, 249, 253; the run does not wait: to exchange " +
			"laptops, stop it before, and resume it after\n",
	} {
		c, err := plan.Load("../../../campaigns/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := Plan(&out, c, Rehearsal{}); err != nil {
			t.Fatal(err)
		}
		got := ""
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "the node in the car changes") {
				got += line
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
