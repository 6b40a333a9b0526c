package compare_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/compare"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// by gives trials so many megabytes in 10 s, so many more each repetition.
func by(mb float64) func(wire.Trial, *rand.Rand) float64 {
	return func(t wire.Trial, _ *rand.Rand) float64 { return mb + float64(t.Repetition) }
}

func TestDifferencesOfARoadAndItsRehearsal(t *testing.T) {
	speeds := []float64{2.8, 16.7}
	road := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: speeds, Repetitions: 3, Place: "road", NoField: true,
		MB: by(10)})
	// Much more than on the road when slow, a little more when fast.
	rehearsal := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: speeds, Repetitions: 3,
		Draws: environment.DrawsPerRepetition,
		MB: func(t wire.Trial, noise *rand.Rand) float64 {
			if *t.SpeedMps == speeds[0] {
				return by(15)(t, noise)
			}
			return by(11)(t, noise)
		}})
	table, err := compare.Runs(road, rehearsal)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, d := range table.Differences {
		if d.Number.Name != "throughput_bps" {
			continue
		}
		found++
		// 11, 12 and 13 MB against 16, 17 and 18 in 10 s are 4 Mbit/s more, against 12, 13 and 14 they are 0.8. Each
		// mean has a standard error of 0.8 ÷ √3; with 2 + 2 degrees of freedom t is 2.776.
		apart := 4.0
		if strings.Contains(d.Cell, "speed_mps 16.7") {
			apart = 0.8
		}
		if d.A.N != 3 || math.Abs(d.A.Value-9.6) > 1e-9 || math.Abs(*d.Apart-apart) > 1e-9 {
			t.Errorf("%s: %+v and %+v", d.Cell, *d.A, *d.B)
		}
		if want := 2.7764451052 * 0.8 * math.Sqrt(2.0/3); math.Abs(*d.HalfWide-want) > 1e-6 {
			t.Errorf("%s: ± %g, want ± %g", d.Cell, *d.HalfWide, want)
		}
		if want := 4.3026527297 * 0.8 / math.Sqrt(3); math.Abs(*d.A.HalfWide-want) > 1e-6 {
			t.Errorf("%s: mean ± %g, want ± %g", d.Cell, *d.A.HalfWide, want)
		}
	}
	if found != 4 {
		t.Errorf("%d cells, want 2 speeds × 2 sections", found)
	}
	var text strings.Builder
	if err := table.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"signal_mean_dbm, dBm", "+4.00 ± 1.81  higher", "+0.80 ± 1.81  not told apart",
		"no evidence about velocity", "of 4 intervals, each at 95 %, about 0.2 leave zero out by chance"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not said:\n%s", want, text.String())
		}
	}
}

// With two values a cell there are means and no intervals; a cell that one run
// has alone is shown with nothing beside it; no common cell is an error.
func TestWhatCannotBeComparedIsAbsent(t *testing.T) {
	two := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{5, 10}, Repetitions: 2, MB: by(10)})
	one := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{10}, Repetitions: 2, MB: by(10)})
	other := synthetic.Run(t, synthetic.Options{Seed: 3, Speeds: []float64{15}, Repetitions: 2, MB: by(10)})
	table, err := compare.Runs(two, one)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range table.Differences {
		if d.HalfWide != nil || d.A == nil || d.A.HalfWide != nil {
			t.Errorf("%s, %s: intervals of two values", d.Cell, d.Number.Name)
		}
		if alone := strings.Contains(d.Cell, "speed_mps 5"); alone != (d.B == nil) || alone != (d.Apart == nil) {
			t.Errorf("%s: beside it %+v, apart %v", d.Cell, d.B, d.Apart)
		}
	}
	if _, err := compare.Runs(two, other); !errors.Is(err, compare.ErrNoCell) {
		t.Errorf("no common cell: %v", err)
	}
}

// A run's means are the same here as in its report: without what its nodes drove
// after it had enough.
func TestNothingBeyondEnoughIsCompared(t *testing.T) {
	o := synthetic.Options{Seed: 1, Speeds: []float64{2.8}, Repetitions: 3, MB: by(10), Enough: 2}
	table, err := compare.Runs(synthetic.Run(t, o), synthetic.Run(t, o))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range table.Differences {
		if d.Number.Name == "throughput_bps" && (d.A.N != 2 || math.Abs(d.A.Value-9.2) > 1e-9) { // 11 and 12 MB in 10 s
			t.Errorf("%s: %+v", d.Cell, *d.A)
		}
	}
}

// Whether a run that looked several times whether it had enough is on the road or the rehearsal: the chance of error is
// shared among its looks, as in its report.
func TestIntervalsOfARunThatLookedAreWider(t *testing.T) {
	o := synthetic.Options{Seed: 1, Speeds: []float64{2.8}, Repetitions: 6, MB: by(10), Place: archive.PlaceRoad}
	looked := o
	looked.Seed, looked.Enough = 2, 4
	looked.StopWhen = &plan.StopWhen{Of: "mean", HalfWidthMbps: new(2.0), MinBlocks: 3, EveryBlocks: 1,
		Confidence: 0.95}
	plain, early := synthetic.Run(t, o), synthetic.Run(t, looked)
	for _, pair := range [][2]*archive.Archive{{plain, early}, {early, plain}} {
		table, err := compare.Runs(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Confidence(); math.Abs(got-0.9875) > 1e-9 { // four looks, after blocks 3 to 6
			t.Errorf("confidence %g, want 1 − 0.05 ÷ 4", got)
		}
		for _, d := range table.Differences {
			m := d.A
			if pair[0] == plain {
				m = d.B
			}
			// 11 to 14 MB in 10 s scatter by 0.8 × √(5 ÷ 3); with 3 degrees of freedom t is 5.0470.
			want := stats.TQuantile(0.9875, 3) * 0.8 * math.Sqrt(5.0/3) / 2
			if d.Number.Name == "throughput_bps" && (m.N != 4 || math.Abs(*m.HalfWide-want) > 1e-6) {
				t.Errorf("%s: %d, ± %g, want ± %g", d.Cell, m.N, *m.HalfWide, want)
			}
		}
		var text strings.Builder
		if err := table.Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"half of its 98.8 % interval", "synthetic-2 could stop early"} {
			if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
				t.Errorf("%q is not said:\n%s", want, text.String())
			}
		}
	}
}

// All repetitions of a rehearsal may have one draw of the channel: their scatter is not that of draws.
func TestOneDrawOfARehearsalIsNotJudged(t *testing.T) {
	of := func(seed uint64, draws string) *archive.Archive {
		return synthetic.Run(t, synthetic.Options{Seed: seed, Speeds: []float64{2.8}, Repetitions: 3, MB: by(10),
			Draws: draws})
	}
	one, older, each := of(1, environment.DrawsPerCampaign), of(2, ""), of(3, environment.DrawsPerRepetition)
	for _, pair := range [][2]*archive.Archive{{one, older}, {one, each}, {each, older}} {
		table, err := compare.Runs(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range table.Differences {
			if d.HalfWide != nil || d.Apart == nil {
				t.Errorf("%s, %s: %v ± %v", d.Cell, d.Number.Name, d.Apart, d.HalfWide)
			}
		}
		if !strings.Contains(strings.Join(table.Notes, "\n"), "the differences of the cells have no intervals") {
			t.Errorf("no reason: %v", table.Notes)
		}
	}
}

func TestTwoChoicesOfOneNameAreToldApart(t *testing.T) {
	of := func(seed uint64, why string) *archive.Archive {
		return synthetic.Run(t, synthetic.Options{Seed: seed, Speeds: []float64{2.8}, Repetitions: 2, MB: by(10),
			Scale: &plan.Scale{Name: "chosen", Why: why}})
	}
	table, err := compare.Runs(of(1, "the speeds are 2.8 m/s."), of(2, "the repetitions are 2."))
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes,
		"the speeds are 2.8 m/s. The second: the repetitions are 2.") {
		t.Errorf("%s", notes)
	}
}

// What a rehearsal did otherwise than its campaign's file stands beside the differences: the file is the road's.
func TestDeviationsAreSaid(t *testing.T) {
	road := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{2.8}, MB: by(10)})
	again := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, MB: by(10)})
	path := filepath.Join(again.Dir(), "run.json")
	info, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info = bytes.Replace(info, []byte("{"), []byte(`{"deviations": ["an access point of Linux kept the hotspot"],`), 1)
	if err := os.WriteFile(path, info, 0o644); err != nil {
		t.Fatal(err)
	}
	rehearsed, err := archive.Read(again.Dir())
	if err != nil {
		t.Fatal(err)
	}
	table, err := compare.Runs(road, rehearsed)
	if err != nil {
		t.Fatal(err)
	}
	want := rehearsed.Info().Run + " was not driven as its campaign file has it: an access point of Linux kept the " +
		"hotspot"
	if !slices.Contains(table.Notes, want) {
		t.Errorf("%q, want %q", table.Notes, want)
	}
}

// Cells go by factors alone: what else a changed campaign file makes of a trial is not seen there, and so it is said.
func TestAChangedCampaignFileIsSaid(t *testing.T) {
	of := func(streams int, sha256 string) *archive.Archive {
		return synthetic.Run(t, synthetic.Options{Seed: uint64(streams), Speeds: []float64{2.8}, MB: by(10),
			CampaignSHA256: sha256, Change: func(t *wire.Trial) { t.Traffic[0].Streams = streams }})
	}
	const one, other = "1111111111111111", "2222222222222222"
	for second, want := range map[string]bool{one: false, other: true} {
		table, err := compare.Runs(of(1, strings.Repeat(one, 4)), of(6, strings.Repeat(second, 4)))
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(table.Notes, "\n")
		said := strings.Contains(notes, "campaign files differ (SHA-256 1111111111111111… and 2222222222222222…)")
		if said != want {
			t.Errorf("the second's file is %s…: %s", second, notes)
		}
	}
}

// A cell of those trials that came about is told as such: the others may be those of the worse network.
func TestTrialsWithoutAnAcceptedAttemptAreSaid(t *testing.T) {
	o := synthetic.Options{Seed: 1, Speeds: []float64{2.8}, Repetitions: 3, MB: by(10)}
	whole := synthetic.Run(t, o)
	o.Seed, o.Mishap = 2, func(x wire.Trial, _ int, c *synthetic.Conditions) { c.GateTimeout = x.Number == 2 }
	table, err := compare.Runs(whole, synthetic.Run(t, o))
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(table.Notes, "\n")
	if !strings.Contains(notes, "1 of 6 planned trials of synthetic-2 have no accepted attempt") ||
		strings.Contains(notes, "of synthetic-1 have no accepted attempt") {
		t.Errorf("%s", notes)
	}
}
