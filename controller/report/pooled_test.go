package report

import (
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Trials of one speed and section that differ in another factor are no sample of one cell: their mean has no
// interval, and it is said why.
func TestMeansOverUnlikeTrialsHaveNoInterval(t *testing.T) {
	units := synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 4, Paper: "p1",
		Units: []string{"laptop-1", "laptop-2"}}
	variants := synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 4,
		Change: func(t *wire.Trial) { t.Factors["variant"] = []string{"cubic", "vegas"}[t.Repetition%2] }}
	for over, options := range map[string]synthetic.Options{"car_unit": units, "variant": variants} {
		d, err := evidence.Gather(synthetic.Run(t, options))
		if err != nil {
			t.Fatal(err)
		}
		why := "The means are over all levels of " + over + ", and have no interval"
		if f := headFigure(d); !strings.Contains(f.Caption, why) || strings.Contains(f.Caption, "Student") ||
			strings.Contains(string(f.SVG), "CI") {
			t.Errorf("%s: the head figure says %q", over, f.Caption)
		}
		if over != "car_unit" {
			continue
		}
		published, err := papers.Read()
		if err != nil {
			t.Fatal(err)
		}
		v := resultsView{}.bySpeed(d, published)
		if !strings.Contains(v.Pooled, why) {
			t.Errorf("below the table stands %q", v.Pooled)
		}
		for _, r := range v.Rows {
			for _, c := range r.Cells {
				if c.Interval != "no interval" || !c.Few || c.Mean == "" {
					t.Errorf("%s m/s: %+v", r.Speed, c)
				}
			}
		}
	}
}

// A section has one sign in a report, also where the one before it has no result.
func TestASectionKeepsItsSign(t *testing.T) {
	d, err := evidence.Gather(synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 1,
		Mishap: func(x wire.Trial, _ int, c *synthetic.Conditions) { c.GateTimeout = x.Factors["section"] == "A" }}))
	if err != nil {
		t.Fatal(err)
	}
	v, err := viewResults(d)
	if err != nil {
		t.Fatal(err)
	}
	drawn := string(headFigure(d).SVG)
	for i, section := range v.(resultsView).Sections {
		sign := strings.SplitAfter(drawn, `<g class="each" stroke="`)[i+1]
		colour, _, _ := strings.Cut(sign, `"`)
		if !strings.Contains(string(section.Key), colour) || !strings.Contains(sign, "section "+section.Name) {
			t.Errorf("section %s has the sign %s in the table, and in the figure %.200s", section.Name, section.Key,
				sign)
		}
	}
}

// The head of a shard's report says which shard it is, and counts its own trials.
func TestAShardsReportIsOfItsTrials(t *testing.T) {
	info := synthetic.Info(synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 3})
	a, err := archive.Read(synthetic.Shard(t, filepath.Join(t.TempDir(), "one"), info,
		&archive.Shard{Number: 1, Of: 3}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := evidence.Gather(a)
	if err != nil {
		t.Fatal(err)
	}
	const want = "Shard 1/3: 4 of 4 planned trials accepted, in 4 attempts (0 rejected, "
	if got := viewHead(d).Counts; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
