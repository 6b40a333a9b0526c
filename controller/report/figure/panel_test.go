package figure

import (
	"strings"
	"testing"
)

// A panel has what it needs in itself, and nothing of what is written into it is
// markup.
func TestAPanelStandsByItself(t *testing.T) {
	p := Panel{Title: "a < b", Label: `of "a"`, XLabel: "x, m", YLabel: "y, s", Apart: true, Confidence: "90 %",
		Curves: []Curve{{Name: "one & two", Dotted: true, Ours: []Mark{{X: 1, Y: 0.96, Low: new(0.95),
			High: new(0.97), N: 3},
			{X: 2, Y: 0.97, N: 1, AtLeast: true}}}, {Name: "nothing"},
			{Name: "three", Theirs: []Mark{{X: 1, Y: 0.9, Low: new(0.9), High: new(0.9)}, {X: 2, Y: 0.95,
				Low: new(0.95)}}}}}
	svg := string(p.Draw())
	for _, want := range []string{">a &lt; b<", "one &amp; two", ">x, m<", ">y, s<", ">0.9<", "ours: mean, 90 % " +
		"interval",
		"paper, as published", `stroke-dasharray="4 3"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	for _, not := range []string{"nothing", "1 4", `class="ytick" data-v="0"`, "NaN", "Inf", "%!"} {
		if strings.Contains(svg, not) {
			t.Errorf("it has %s", not)
		}
	}
	p.Apart = false
	if svg := string(p.Draw()); !strings.Contains(svg, `class="ytick" data-v="0"`) {
		t.Error("the axis does not begin at 0")
	}
	sheet := Sheet("Figure 1: a title", []Panel{p, p, p, p}, "what is below")
	if strings.Count(sheet, `class="panel"`) != 4 || !strings.Contains(sheet, `x="14"`) || strings.Contains(sheet,
		"HEIGHT") ||
		!strings.Contains(sheet, ">what is below<") {
		t.Errorf("%.400s", sheet)
	}
}

// Below zero nothing is drawn: an interval that reaches there has no foot.
func TestAnIntervalBelowZeroHasNoFoot(t *testing.T) {
	draw := func(low float64) string {
		return string(Panel{Curves: []Curve{{Name: "a", Ours: []Mark{{X: 1, Y: 1, Low: &low, High: new(3.0),
			N: 3}}}}}.Draw())
	}
	if feet := strings.Count(draw(-1), "h6M") + 1; feet != 1 {
		t.Errorf("%d feet below zero", feet-1)
	}
	if feet := strings.Count(draw(0.5), "h6M"); feet != 1 {
		t.Errorf("%d feet above zero", feet)
	}
}

// A scale reaches over all values and begins at 0, or near the least where they lie
// close together.
func TestScales(t *testing.T) {
	for _, k := range []struct {
		least, most float64
		apart       bool
		low, high   float64
	}{{5, 95, false, 0, 100}, {0.96, 0.98, true, 0.96, 0.98}, {0.2, 0.98, true, 0, 1}, {0, 0, false, 0, 1},
		{1, 1, true, 0, 1}} {
		s := newScale(k.least, k.most, k.apart, 0, 100, 5)
		if s.low > k.least || s.high < k.most || s.low-k.low > 1e-9 || s.at(s.low) != 0 || s.at(s.high) != 100 {
			t.Errorf("%+v: %+v", k, s)
		}
	}
}

// Names stand below their places, and nothing joins them: between two names there is
// no value.
func TestAnAxisMayHaveNames(t *testing.T) {
	p := Panel{XNames: []string{"tahoe", "a < b"}, Curves: []Curve{{Name: "one", Ours: []Mark{{X: 1, Y: 3, N: 1},
		{X: 2, Y: 4, N: 1}}}}}
	svg := string(p.Draw())
	for _, want := range []string{">tahoe<", ">a &lt; b<", `data-x="2"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Contains(svg, "polyline") {
		t.Error("names are joined")
	}
	p.XNames = nil
	if svg := string(p.Draw()); !strings.Contains(svg, "polyline") || strings.Contains(svg, "tahoe") {
		t.Error("numbers are not joined, or have names")
	}
}
