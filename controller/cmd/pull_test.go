package cmd

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Pulling a complete rehearsal collects nothing and succeeds.
func TestPullOfAFinishedRehearsal(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	if !a.Finished() || a.Info().Place != archive.PlaceRehearsal {
		t.Fatalf("the run is no finished rehearsal: %s", a.Info().Place)
	}
	var out strings.Builder
	c := PullCommand()
	c.SetOut(&out)
	err := (&session{archive: a, plan: a.Info().Plan}).pull(c, pullFlags{})
	if err != nil || !strings.Contains(out.String(), "was rehearsed, and is complete: nothing is left to collect") {
		t.Errorf("pull: %v\n%s", err, out.String())
	}
}
