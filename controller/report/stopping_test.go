package report

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func gathered(t *testing.T, o synthetic.Options) *evidence.Run {
	t.Helper()
	d, err := evidence.Gather(synthetic.Run(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func page1(t *testing.T, d *evidence.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(d, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a run that had enough says: when and why, with the looks, every interval
// at the level that looking repeatedly needs, and nothing of later blocks.
func TestARunThatHadEnough(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Speeds: []float64{2.8, 8.3}, Repetitions: 5,
		MB: func(_ wire.Trial, noise *rand.Rand) float64 { return 20 + 0.1*noise.NormFloat64() }})
	d.Info.Enough = &plan.StopWhen{Of: "section", HalfWidthPercent: new(10.0), MinBlocks: 3, EveryBlocks: 1,
		Confidence: 0.95}
	d.Stop = &archive.Stop{Blocks: 3, Reason: "precise enough: after 3 blocks"}
	says(t, page1(t, d), "Stopped after block 3: precise enough: after 3 blocks.",
		"12 of 12 planned trials accepted, in 12 attempts (0 rejected, 0 failed, 0 interrupted)",
		"every difference between levels of section to ± 10 % of the mean", "There can be 3 looks, from block 3 to "+
			"block 5",
		"98.3 % interval", "B − A: ", "8 attempts of later blocks had been driven", "The unit of analysis is the "+
			"pass (n = 12)",
		"It stopped after 3 blocks: precise enough", "All of it is one session")
	if n := len(d.Results()); n != 12 {
		t.Errorf("%d results, want those of three blocks", n)
	}
	d.Attempts = d.Attempts[1:]
	says(t, page1(t, d), "11 of 12 planned trials accepted", "1 of 12 planned trials have no accepted attempt")
}

// Beside a paper, too, every interval is at the run's level, and says so.
func TestPapersIntervalsAreAtTheRunsLevel(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Paper: "p1", Speeds: []float64{2.8, 8.3}, Repetitions: 5})
	d.Info.Enough = &plan.StopWhen{Of: plan.StopOfMean, HalfWidthPercent: new(10.0), MinBlocks: 3, EveryBlocks: 1,
		Confidence: 0.95}
	page := page1(t, d)
	says(t, page, "the 98.3 % t interval of the mean difference", "half of the 98.3 % t interval",
		"ours: mean, 98.3 % interval", "of 60 without any effect")
	for _, not := range []string{"95 % t interval", "the 95 % interval", "ours: mean, 95 %"} {
		if strings.Contains(page, not) {
			t.Errorf("the page says %q", not)
		}
	}
	values := []float64{1, 2, 4}
	if _, half := intervalAt(d)(values); *half != *stats.HalfWidth(d.Level(), values) {
		t.Errorf("half of an interval is %g", *half)
	}
}

// P1's columns stand beside the measured cells and have no part in them.
func TestPublishedColumnsChangeNoMeasuredCell(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 3, Paper: "p1", Speeds: []float64{2.8, 8.3}, Repetitions: 3})
	true1, err := papers.Read()
	if err != nil {
		t.Fatal(err)
	}
	changed := papers.Published{Velocity: map[string]map[float64]string{}}
	for section, row := range true1.Velocity {
		changed.Velocity[section] = map[float64]string{}
		for speed := range row {
			changed.Velocity[section][speed] = "9999"
		}
	}
	view := resultsView{Paper: evidence.AsksP1(d)}
	before, after := view.bySpeed(d, true1), view.bySpeed(d, changed)
	if !before.Paper || reflect.DeepEqual(before, after) {
		t.Fatal("the published columns are not shown, or did not change")
	}
	for i := range before.Rows {
		before.Rows[i].Paper, after.Rows[i].Paper = nil, nil
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("a measured cell changed:\n%+v\n%+v", before, after)
	}
}

// With units that change places sessions are many, and a random effect; what the
// paragraph on methods says follows what was fitted.
func TestSessionsAreARandomEffect(t *testing.T) {
	d := gathered(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 8.3}, Repetitions: 6, Confounded: true,
		MB: func(x wire.Trial, noise *rand.Rand) float64 { return 20 + noise.NormFloat64() }})
	html := page1(t, d)
	says(t, html, "sessions are a random effect (standard deviation", "restricted maximum likelihood with the "+
		"session as a random effect",
		"Holm", "Speed and distance cannot be separated in this run", "moves a window", "Passes needed for a given "+
			"precision")
	sessions := evidence.Levels(d.Results(), func(a evidence.Attempt) string { return a.Session })
	if len(sessions) < 6 {
		t.Errorf("%d sessions", len(sessions))
	}
}
