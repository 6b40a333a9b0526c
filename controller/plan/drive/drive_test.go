package drive_test

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
)

// TestEstimate checks one trial's figures against hand-made ones: 16.7 m/s
// at 2.5 m/s² take 6.68 s and 55.78 m, braking at 4 m/s² 4.175 s and 34.86 m.
func TestEstimate(t *testing.T) {
	c, err := plan.Load("../../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	e := drive.Of(trials, c.AttemptsMax)
	for i, x := range trials {
		if *x.SpeedMps != 16.7 {
			continue
		}
		got := e.Trials[i]
		for what, pair := range map[string][2]float64{
			"approach s": {got.ApproachS, 6.68 + 0.5}, "approach m": {got.ApproachM, 55.778 + 8.35},
			"brake s": {got.BrakeS, 4.175}, "brake m": {got.BrakeM, 34.861},
			"road m": {got.RoadM(), 55.778 + 8.35 + 8.35 + 167 + 34.861},
		} {
			if diff := pair[0] - pair[1]; diff > 0.01 || diff < -0.01 {
				t.Errorf("trial %d: %s is %.3f, want %.3f", x.Number, what, pair[0], pair[1])
			}
		}
	}
	if e.FromM >= 0 || e.ToM <= 0 || e.FromM != -e.ToM {
		t.Errorf("road from %g to %g, want both sides of the mark alike", e.FromM, e.ToM)
	}
	if want := e.DriveS + 24*60; e.RoadTotalS != want {
		t.Errorf("on a road %g s, want %g", e.RoadTotalS, want)
	}
}
