package report

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Calibration passes are no trials of the campaign: the head counts them apart, as the methods leave them out.
func TestCalibrationPassesAreCountedApart(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Speeds: []float64{2.8}, Repetitions: 3,
		Change: func(x *wire.Trial) {
			if x.Number <= 2 {
				x.Pass, x.Block = "before", 0
			}
		},
		Mishap: func(x wire.Trial, _ int, c *synthetic.Conditions) { c.GateTimeout = x.Number == 2 }})
	head := viewHead(d).Counts
	if want := "4 of 4 planned trials accepted, in 4 attempts (0 rejected, 0 failed, 0 interrupted). 1 of 2 " +
		"calibration passes accepted."; head != want {
		t.Errorf("%q, want %q", head, want)
	}
	says(t, proseDesign(d), "Its 4 trials were planned")
	says(t, proseVerdicts(d), "Of 4 attempts 4 were accepted")
}

// What was driven beyond what was enough is in no mean, and in no tally of attempts.
func TestTalliesAreOfWhatWasToBeDriven(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Speeds: []float64{2.8}, Repetitions: 3,
		Mishap: func(x wire.Trial, attempt int, c *synthetic.Conditions) {
			if x.Block == 3 && attempt == 1 {
				c.SpeedOffsetMps = 3
			}
		}})
	says(t, proseVerdicts(d), "Of 8 attempts 6 were accepted, 2 rejected")
	d.Stop = &archive.Stop{Blocks: 2, Reason: "precise enough"}
	says(t, proseVerdicts(d), "Of 4 attempts 4 were accepted, 0 rejected")
	page := page1(t, d)
	says(t, page, "No attempt was rejected or failed")
	if strings.Contains(page, "Attempts were rejected") {
		t.Error("attempts beyond what was enough are a threat")
	}
}

// A report says which version of Fieldmesh computed its numbers, where another one drove the run.
func TestTheVersionThatComputedIsSaid(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Speeds: []float64{2.8}, Repetitions: 2})
	d.Info.Version = "0.0.9 (commit abc)"
	page := page1(t, d)
	says(t, page, "fieldmesh 0.0.9 (commit abc), numbers computed by "+version.String(),
		"Software: Fieldmesh 0.0.9 (commit abc), numbers computed by "+version.String()+";")
	d.Info.Version = version.String()
	if page = page1(t, d); strings.Contains(page, "computed by "+version.String()) {
		t.Error("the version that drove the run is said to have computed it, too")
	}
}
