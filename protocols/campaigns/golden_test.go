package campaigns_test

import (
	"flag"
	"os"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/test/contract"
)

var update = flag.Bool("update", false, "write the golden files again")

func TestGoldenBodies(t *testing.T) {
	for name, sample := range bodies() {
		contract.Held(t, "body_"+name, sample, *update)
	}
	files, err := os.ReadDir("golden")
	if err != nil || len(files) != len(bodies()) {
		t.Errorf("%d golden files for %d samples: %v", len(files), len(bodies()), err)
	}
}

func TestWhatCannotBeChosenIsRefused(t *testing.T) {
	many := make([]float64, campaigns.MostSpeeds+1)
	for i := range many {
		many[i] = float64(i)
	}
	fine := campaigns.Choice{Campaign: "velocity", SpeedsMps: []float64{2.8, 5.6}, Repetitions: 1}
	if err := (campaigns.Start{Name: "velocity-1", Choice: fine}).Validate(); err != nil {
		t.Error(err)
	}
	for what, s := range map[string]campaigns.Start{
		"no campaign": {Name: "velocity-1"},
		"many speeds": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity", SpeedsMps: many}},
		"a speed twice": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity",
			SpeedsMps: []float64{1, 2, 1}}},
		"repetitions < 0": {Name: "velocity-1", Choice: campaigns.Choice{Campaign: "velocity", Repetitions: -1}},
		"no name":         {Choice: fine},
		"another folder":  {Name: "../velocity", Choice: fine},
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
