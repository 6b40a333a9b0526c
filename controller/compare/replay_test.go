package compare

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Of many roads whose rehearsal is right but for chance, 95 % of the intervals hold zero or somewhat more, whether each
// repetition has a channel of its own or all have one, whatever throughput scatters by, and where one repetition has
// most of the moments. Only one road's hold less often where the scatter is large and therefore skewed.
func TestIntervalsOfReplayHold(t *testing.T) {
	const seed, repeats, once, least = 20, 2000, 0.001, 0.005
	const slow, fast = 0.05, 0.3 // by what a pass scatters besides its channel; a slow one has eight times the moments
	for _, c := range []struct {
		repetitions, outs int
		scatter           float64 // of a channel's throughput, as a share of it
		heavy             float64 // what the last repetition weighs, in others
	}{
		{12, 5, 0.2, 1}, {6, 3, 0.4, 1}, {6, 3, 0.8, 1}, {16, 8, 0.4, 1}, {16, 8, 0.8, 1}, {12, 6, 0.2, 20},
		{12, 6, 0.05, 1},
	} {
		shape := 1 / (c.scatter * c.scatter)
		for _, oneRoad := range []bool{false, true} {
			dice := rand.New(rand.NewPCG(seed, 0))
			channels := distuv.Gamma{Alpha: shape, Beta: shape, Src: dice}
			missed, told := 0, 0
			for range repeats {
				var held []int
				var a, b []chance
				road, fitted := channels.Rand(), 0.0
				for r := 1; r <= c.repetitions; r++ {
					channel, weight := channels.Rand(), 1.0
					if r > c.repetitions-c.outs {
						held = append(held, r)
					} else {
						fitted += channel / float64(c.repetitions-c.outs)
					}
					if oneRoad {
						channel, fitted = road, 1
					}
					if r == c.repetitions {
						weight = c.heavy
					}
					a = append(a, chance{r, "slow", 10 * channel * (1 + slow*dice.NormFloat64()), 8 * weight},
						chance{r, "fast", 10 * channel * (1 + fast*dice.NormFloat64()), weight})
				}
				for r := 1; r <= c.repetitions; r++ {
					channel := channels.Rand()
					b = append(b, chance{r, "slow", 10 * fitted * channel * (1 + slow*dice.NormFloat64()), 8},
						chance{r, "fast", 10 * fitted * channel * (1 + fast*dice.NormFloat64()), 1})
				}
				e := replaying{heldOut: held, left: c.repetitions - c.outs, oneRoad: oneRoad,
					confidence: stats.Confidence}.judge(a, b)
				if e.Low == nil {
					continue // without bounds
				}
				told++
				if *e.Low > 0 || *e.High < 0 {
					missed++
				}
			}
			t.Logf("%+v, one road %v: %d of %d intervals do not hold", c, oneRoad, missed, told)
			by := distuv.Binomial{N: float64(told), P: 0.05}
			if oneRoad && c.scatter > 0.5 {
				by.P = 0.08
			}
			tooWide := !oneRoad && float64(missed) < least*by.N
			if told < repeats/5 || tooWide || 1-by.CDF(float64(missed)-1) < once {
				t.Errorf("seed %d, %+v, one road %v: %d of %d intervals do not hold", seed, c, oneRoad, missed, told)
			}
		}
	}
}

// made is a pass of a made-up run.
func made(repetition int, speedMps, mbps float64, along ...spot) pass {
	return pass{repetition: repetition, cell: fmt.Sprint("speed ", speedMps), speedMps: &speedMps,
		numbers: map[string]float64{metrics.ThroughputBps: mbps}, along: along}
}

// evenly is a pass along 200 m with the same throughput everywhere, but for 2 %.
func evenly(dice *rand.Rand, repetition int, speedMps, mbps float64) pass {
	mbps *= 1 + 0.02*dice.NormFloat64()
	var along []spot
	for d := 0.0; d < 200; d += speedMps / metrics.TickHz {
		along = append(along, spot{d, mbps})
	}
	return made(repetition, speedMps, mbps, along...)
}

// replayed compares made-up runs whose repetitions have channels of their own.
func replayed(t *testing.T, road, rehearsal []pass, heldOut ...int) *Table {
	t.Helper()
	of := &Table{A: archive.RunInfo{Run: "road", ChannelDraws: environment.DrawsPerRepetition},
		B: archive.RunInfo{Run: "again", ChannelDraws: environment.DrawsPerRepetition}}
	if err := of.replay(&environment.Field{CalibratedBy: &environment.Calibration{HeldOut: heldOut}}, road,
		rehearsal); err != nil {
		t.Fatal(err)
	}
	return of
}

// What is compared at a distance is of the same cells: neither a cell that the rehearsal lacks nor a pass that was not
// accepted is an error, or makes its interval wide.
func TestAtADistanceTheSameCellsAreCompared(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 0))
	var road, lacking, whole []pass
	for r := 1; r <= 6; r++ {
		slow, fast := evenly(dice, r, 5, 20), evenly(dice, r, 20, 5)
		road = append(road, fast)
		if r < 6 {
			road = append(road, slow)
		}
		lacking = append(lacking, evenly(dice, r, 20, 5))
		whole = append(whole, evenly(dice, r, 5, 20), evenly(dice, r, 20, 5))
	}
	for name, rehearsal := range map[string][]pass{"no slow cell": lacking, "one slow pass too few": whole} {
		errors := replayed(t, road, rehearsal, 4, 5, 6).Replay.Errors
		if len(errors) < 6 {
			t.Errorf("%s: %+v", name, errors)
		}
		for _, e := range errors {
			if *e.Low > 0 || *e.High < 0 || *e.High-*e.Low > 0.15 {
				t.Errorf("%s: %s is off by %+.3f, %+.3f to %+.3f", name, e.Of, *e.Share, *e.Low, *e.High)
			}
		}
	}
}

// Where nothing arrived on the road there is no share of it, but what arrived in the rehearsal is told.
func TestADeadStretchIsTold(t *testing.T) {
	var road, rehearsal []pass
	for r := 1; r <= 6; r++ {
		mbps := 10 + 0.1*float64(r)
		road = append(road, made(r, 10, mbps/2, spot{10, mbps}, spot{150, 0}))
		rehearsal = append(rehearsal, made(r, 10, mbps, spot{10, mbps}, spot{150, mbps}))
	}
	table := replayed(t, road, rehearsal, 4, 5, 6)
	last := table.Replay.Errors[len(table.Replay.Errors)-1]
	if last.Of != "140 to 160 m" || last.Held != 0 || last.Rehearsed < 10 || last.Share != nil || last.Low != nil {
		t.Errorf("%+v", last)
	}
	table.note()
	for _, want := range []string{"140 to 160 m: nothing arrived on the road", "of 3 intervals, each at 95 %"} {
		if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("%q is not said: %s", want, notes)
		}
	}
}

// Where nothing arrived in any repetition of the rehearsal, the error is all of what the road had, but what does not
// vary has no interval.
func TestADeadStretchOfTheRehearsalHasNoInterval(t *testing.T) {
	var road, rehearsal []pass
	for r := 1; r <= 6; r++ {
		mbps := 10 + 0.1*float64(r)
		road = append(road, made(r, 10, mbps, spot{10, mbps}, spot{150, mbps}))
		rehearsal = append(rehearsal, made(r, 10, mbps/2, spot{10, mbps}, spot{150, 0}))
	}
	table := replayed(t, road, rehearsal, 4, 5, 6)
	last := table.Replay.Errors[len(table.Replay.Errors)-1]
	if last.Of != "140 to 160 m" || last.Share == nil || *last.Share != -1 || last.Low != nil || last.High != nil {
		t.Errorf("%+v", last)
		if last.Low != nil {
			t.Errorf("from %g to %g", *last.Low, *last.High)
		}
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "140 to 160 m: nothing arrived in any") {
		t.Errorf("notes: %s", notes)
	}
}

// A mean that may as well be 0 is a divisor without bounds.
func TestAnErrorWithoutBoundsHasNoInterval(t *testing.T) {
	var road, rehearsal []pass
	for r := 1; r <= 6; r++ {
		road = append(road, made(r, 10, float64(1+20*(r/6))))
		rehearsal = append(rehearsal, made(r, 10, float64(10+r)))
	}
	table := replayed(t, road, rehearsal, 4, 5, 6)
	if e := table.Replay.Errors[0]; e.Share == nil || e.Low != nil || e.High != nil {
		t.Errorf("%+v", e)
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "all, 10 m/s: on the road this scatters") {
		t.Errorf("notes: %s", notes)
	}
}

// An error is no more certain where only repetitions that were held out have a speed.
func TestTheFitsOwnChanceStays(t *testing.T) {
	width := func(from int) float64 {
		var road, rehearsal []pass
		for r := 1; r <= 6; r++ {
			road = append(road, made(r, 5, float64(10+r%2)))
			if r >= from {
				road = append(road, made(r, 10, float64(10+r%2)))
			}
			rehearsal = append(rehearsal, made(r, 5, float64(10+r%2)), made(r, 10, float64(10+r%2)))
		}
		e := replayed(t, road, rehearsal, 3, 4, 5, 6).Replay.Errors[2]
		if e.Of != "10 m/s" {
			t.Fatalf("%+v", e)
		}
		return *e.High - *e.Low
	}
	if all, none := width(1), width(3); none < 0.95*all {
		t.Errorf("%.3f wide where two repetitions of this speed calibrated the field, %.3f where none did", all, none)
	}
}

// Two rehearsals with one seed have much the same shadows where their fields are alike.
func TestOneSeedIsNotJudged(t *testing.T) {
	var passes []pass
	for r := 1; r <= 6; r++ {
		passes = append(passes, made(r, 10, float64(10+r)))
	}
	for seed, want := range map[uint64]bool{7: false, 8: true} {
		of := archive.RunInfo{Place: archive.PlaceRehearsal, Seed: 7, ChannelDraws: environment.DrawsPerRepetition}
		table := &Table{A: of, B: of}
		table.B.Seed = seed
		f := &environment.Field{CalibratedBy: &environment.Calibration{HeldOut: []int{4, 5, 6}}}
		if err := table.replay(f, passes, passes); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(table.Notes, "\n")
		if told := table.Replay.Errors[0].Low != nil; told != want || strings.Contains(notes, "seed 7") == want {
			t.Errorf("seeds 7 and %d: an interval is told: %v; notes: %s", seed, told, notes)
		}
	}
}

// calibrated is a campaign whose field was calibrated by a run.
func calibrated(t *testing.T, by, heldOut string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raw := bytes.Replace(text, []byte("\nfield:\n"), fmt.Appendf(nil, "\nfield:\n  calibrated_by: {run: %s%s}\n", by,
		heldOut), 1)
	if _, err := plan.Parse("f", raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// Only what was held out is judged, whatever the run was like before, and as one draw of the shadows, which the scatter
// of a cell's trials does not show.
func TestOnlyWhatWasHeldOutIsJudged(t *testing.T) {
	o := synthetic.Options{Seed: 1, Speeds: []float64{5, 10}, Repetitions: 4, Place: "road", NoField: true}
	o.MB = func(trial wire.Trial, noise *rand.Rand) float64 {
		if trial.Repetition > 1 {
			return 12.5 + noise.NormFloat64()/8
		}
		return 100
	}
	road := synthetic.Run(t, o)
	const heldOut = ", held_out: [2, 3, 4]"
	rehearsal := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: o.Speeds, Repetitions: 3,
		Raw: calibrated(t, road.Info().Run, heldOut),
		MB:  func(_ wire.Trial, noise *rand.Rand) float64 { return 15 + noise.NormFloat64()/8 }})
	table, err := Runs(road, rehearsal)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range table.Differences {
		if d.A.N != 3 || d.HalfWide != nil {
			t.Errorf("%s: %d trials, want the 3 that were held out, and no interval", d.Cell, d.A.N)
		}
	}
	// 12.5 MB in 10 s are 10 Mbit/s, and 15 are 12.
	if len(table.Replay.Errors) < 4 {
		t.Fatalf("errors %+v", table.Replay.Errors)
	}
	for i, of := range []string{"all", "5 m/s", "10 m/s"} {
		if e := table.Replay.Errors[i]; e.Of != of || math.Abs(*e.Share-0.2) > 0.05 {
			t.Errorf("%+v, want 20 %% of %s", e, of)
		}
	}
	var said strings.Builder
	if err := table.Write(&said); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"beside repetitions 2, 3, 4 of synthetic-1",
		"note: all repetitions of synthetic-1 have the same shadows"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not said:\n%s", want, said.String())
		}
	}
	for by, want := range map[[2]string]string{
		{"another", heldOut}:  "another run",
		{road.Info().Run, ""}: "calibrate with --hold-out",
	} {
		other := rehearsal.Info()
		other.CampaignRaw = calibrated(t, by[0], by[1])
		table = &Table{A: road.Info(), B: other}
		if f := table.calibrated(); f != nil || len(table.Notes) != 1 || !strings.Contains(table.Notes[0], want) {
			t.Errorf("calibrated by %q: %+v; said is %q", by, f, table.Notes)
		}
	}
}

// What a run's nodes drove after it had enough does not judge a rehearsal either.
func TestNothingBeyondEnoughIsJudged(t *testing.T) {
	o := synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 4, Place: "road", NoField: true, Enough: 3}
	road := synthetic.Run(t, o)
	of := func(heldOut string) (*Table, error) {
		return Runs(road, synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: o.Speeds,
			Raw: calibrated(t, road.Info().Run, heldOut)}))
	}
	table, err := of(", held_out: [3, 4]")
	if err != nil || !slices.Equal(table.Replay.HeldOut, []int{3}) {
		t.Errorf("%v, %+v", err, table)
	}
	if _, err := of(", held_out: [4]"); err == nil || !strings.Contains(err.Error(), "from the calibration, [4]") {
		t.Errorf("%v", err)
	}
}
