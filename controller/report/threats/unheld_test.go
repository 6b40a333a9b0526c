package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestSpeedsThatNothingHeldAreTold(t *testing.T) {
	run := func(spoil func(*wire.Trial), means ...float64) *evidence.Run {
		d := &evidence.Run{}
		for i, mean := range means {
			a := acceptedAt(i + 1)
			a.Trial.SpeedMps = new(13.9)
			if mean > 0 {
				a.Rows = append(a.Rows, metrics.Row{Name: metrics.SpeedMeanMps, Value: mean})
			}
			spoil(&a.Trial)
			d.Attempts = append(d.Attempts, a)
		}
		return d
	}
	nothing := func(*wire.Trial) {}
	found, _ := speedsUnheld(run(nothing, 13.8, 9, 0))
	if found == nil {
		t.Fatal("no threat")
	}
	says(t, found.Text, "In 3 accepted trials", "up to 4.9 m/s off the target (known of 2)")
	if found, _ = speedsUnheld(run(nothing, 0)); found == nil {
		t.Fatal("no threat where no speed is known")
	}
	says(t, found.Text, "In 1 accepted trial the", "not known")
	for name, spoil := range map[string]func(*wire.Trial){
		"held in the window": func(t *wire.Trial) { t.Acceptance.InBandShareMin = new(0.95) },
		"held at the gate":   func(t *wire.Trial) { t.Gate.SpeedBand = true },
		"nobody drives":      func(t *wire.Trial) { t.SpeedMps = nil },
	} {
		if found, clear := speedsUnheld(run(spoil, 9)); found != nil || clear != "" {
			t.Errorf("%s: %+v %q", name, found, clear)
		}
	}
}
