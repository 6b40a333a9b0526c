package papers_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
)

// unfed are sweeps that no shipped campaign has the trials of, and why.
var unfed = map[string]string{
	"p4 Figure 5, plot 1": "section 3.6 in its own scenario",
	"p4 Figure 5, plot 3": "section 3.6 in its own scenario",
	"p4 Figure 5, plot 4": "section 3.6 in its own scenario",
	"p4 Figure 4":         "channel errors of 10 % at other speeds than 0",
}

// The shipped campaigns, driven whole, feed the papers' sweeps: each of their
// panels that has any trial has two points or more, none of a mixture.
func TestTheCampaignsFeedThePapersFigures(t *testing.T) {
	published, err := papers.Read()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fed := map[string]bool{}
	for _, file := range files {
		c, err := plan.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		paper := plan.Paper{Name: "p1"} // of the campaigns that name none, only velocity's own has its question
		if c.Paper != nil {
			paper = *c.Paper
		} else if c.Name != "velocity" {
			continue
		}
		schedule, err := c.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		var trials []papers.Trial
		for _, s := range schedule {
			if s.Repetition > 1 {
				continue
			}
			values := map[string]float64{papers.HopsMean: 1}
			for v := range papers.ValueUnits {
				values[v] = 1
			}
			trials = append(trials, papers.Trial{Repetition: 1, Facts: papers.Facts(s), Factors: s.Factors,
				Values: values})
		}
		for _, f := range papers.Figures(paper.Name) {
			if f.Kind != papers.Sweep || f.Scenario != "" && f.Scenario != paper.Scenario {
				continue
			}
			d := published.Plotted(f, trials, func(v []float64) (float64, *float64) { return v[0], nil })
			points := 0
			for _, p := range d.Plots {
				for _, curve := range p.Curves {
					points = max(points, len(curve.Ours))
				}
			}
			for _, m := range d.Missing {
				if strings.Contains(m, "differ in") && c.Name != "reference-tcp-hops" { // a chain of many lengths

					t.Errorf("%s, %s %s: %s", filepath.Base(file), f.Paper, f.Number, m)
				}
			}
			if points > 1 && len(d.Missing) == 0 {
				fed[f.Paper+" "+f.Number] = true
			}
		}
	}
	for _, paper := range papers.IDs() {
		for _, f := range papers.Figures(paper) {
			name := f.Paper + " " + f.Number
			switch _, known := unfed[name]; {
			case f.Kind != papers.Sweep || fed[name] != known:
			case known:
				t.Logf("%s is fed now", name)
			default:
				t.Errorf("no campaign feeds %s whole", name)
			}
		}
	}
	if !slices.Contains(papers.IDs(), "p5") || len(fed) < 20 {
		t.Errorf("%d figures are fed", len(fed))
	}
}
