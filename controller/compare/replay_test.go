package compare

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Of many roads whose rehearsal is right but for chance, 95 % of the intervals hold zero, whether each repetition has
// a channel of its own or all have one.
func TestIntervalsOfReplayHold(t *testing.T) {
	const seed = 20
	dice := rand.New(rand.NewPCG(seed, 0))
	const repeats, repetitions, outs = 2000, 12, 5
	for _, oneRoad := range []bool{false, true} {
		missed := 0
		for range repeats {
			var held []int
			var a, b []chance
			road, fitted := 0.2*dice.NormFloat64(), 0.0
			for r := 1; r <= repetitions; r++ {
				channel := 0.2 * dice.NormFloat64()
				if r > repetitions-outs {
					held = append(held, r)
				} else if !oneRoad {
					fitted += channel / (repetitions - outs)
				}
				if oneRoad {
					channel = road
				}
				for _, cell := range []string{"slow", "fast"} {
					a = append(a, chance{r, cell, 10 * (1 + channel + 0.1*dice.NormFloat64()), 1})
				}
			}
			for r := 1; r <= repetitions; r++ {
				channel := 0.2 * dice.NormFloat64()
				for _, cell := range []string{"slow", "fast"} {
					b = append(b, chance{r, cell, 10 * (1 + fitted + channel + 0.1*dice.NormFloat64()), 1})
				}
			}
			e := replaying{heldOut: held, oneRoad: oneRoad}.judge(a, b)
			if math.Abs(e.Share) > *e.HalfWide {
				missed++
			}
		}
		if missed < 60 || missed > 142 {
			t.Errorf("seed %d, one road %v: %d of %d intervals do not hold", seed, oneRoad, missed, repeats)
		}
	}
}

// Only what was held out is judged, whatever the run was like before.
func TestOnlyWhatWasHeldOutIsJudged(t *testing.T) {
	text, err := os.ReadFile("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := synthetic.Options{Seed: 1, Speeds: []float64{5, 10}, Repetitions: 3, Place: "road", NoField: true}
	o.MB = func(trial wire.Trial, noise *rand.Rand) float64 {
		if trial.Repetition > 1 {
			return 12.5 + noise.NormFloat64()/8
		}
		return 100
	}
	road := synthetic.Run(t, o)
	calibrated := func(by string) []byte {
		raw := bytes.Replace(text, []byte("\nfield:\n"), fmt.Appendf(nil,
			"\nfield:\n  calibrated_by: {run: %s, held_out: [2, 3]}\n", by), 1)
		if _, err := plan.Parse("f", raw); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	rehearsal := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: o.Speeds, Raw: calibrated(road.Info().Run),
		MB: func(_ wire.Trial, noise *rand.Rand) float64 { return 15 + noise.NormFloat64()/8 }})
	table, err := Runs(road, rehearsal)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range table.Differences {
		if d.A.N != 2 {
			t.Errorf("%s: %d trials, want the 2 that were held out", d.Cell, d.A.N)
		}
	}
	// 12.5 MB in 10 s are 10 Mbit/s, and 15 are 12.
	if len(table.Replay.Errors) < 4 {
		t.Fatalf("errors %+v", table.Replay.Errors)
	}
	for i, of := range []string{"all", "5 m/s", "10 m/s"} {
		if e := table.Replay.Errors[i]; e.Of != of || math.Abs(e.Share-0.2) > 0.05 {
			t.Errorf("%+v, want 20 %% of %s", e, of)
		}
	}
	var said strings.Builder
	if err := table.Write(&said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "beside repetitions 2, 3 of synthetic-1") {
		t.Errorf("said:\n%s", said.String())
	}

	other := rehearsal.Info()
	other.CampaignRaw = calibrated("another")
	table = &Table{A: road.Info(), B: other}
	if f := table.calibrated(); f != nil || len(table.Notes) != 1 || !strings.Contains(table.Notes[0], "another run") {
		t.Errorf("calibrated by another run: %+v; said is %q", f, table.Notes)
	}
}
