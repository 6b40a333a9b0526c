package stats

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestTQuantiles(t *testing.T) {
	for df, want := range map[float64]float64{1: 12.7062, 2: 4.30265, 5: 2.57058, 9: 2.26216, 20: 2.08596,
		120: 1.97993} {
		approx(t, "t", TQuantile(Confidence, df), want, 1e-5)
	}
}

func TestLeastSquaresAgainstLongley(t *testing.T) {
	y := []float64{60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761, 66019, 67857, 68169, 66513, 68655, 69564,
		69331, 70551}
	x := [][]float64{
		{83, 88.5, 88.2, 89.5, 96.2, 98.1, 99, 100, 101.2, 104.6, 108.4, 110.8, 112.6, 114.2, 115.7, 116.9},
		{234289, 259426, 258054, 284599, 328975, 346999, 365385, 363112, 397469, 419180, 442769, 444546, 482704, 502601,
			518173, 554894},
		{2356, 2325, 3682, 3351, 2099, 1932, 1870, 3578, 2904, 2822, 2936, 4681, 3813, 3931, 4806, 4007},
		{1590, 1456, 1616, 1650, 3099, 3594, 3547, 3350, 3048, 2857, 2798, 2637, 2552, 2514, 2572, 2827},
		{107608, 108632, 109773, 110929, 112075, 113270, 115094, 116219, 117388, 118734, 120445, 121950, 123366, 125368,
			127852, 130081},
		{1947, 1948, 1949, 1950, 1951, 1952, 1953, 1954, 1955, 1956, 1957, 1958, 1959, 1960, 1961, 1962},
	}
	ones := slices.Repeat([]float64{1}, len(y))
	terms := []Term{{Name: "intercept", Columns: []Column{{"", ones}}}}
	for i := range x {
		terms = append(terms, Term{Name: string(rune('a' + i)), Columns: []Column{{"", x[i]}}})
	}
	f, err := Model{Terms: terms, Y: y}.Fit()
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]float64{ // estimate, standard error
		{-3482258.63459582, 890420.383607373}, {15.0618722713733, 84.9149257747669},
		{-0.358191792925910e-01, 0.334910077722432e-01}, {-2.02022980381683, 0.488399681651699},
		{-1.03322686717359, 0.214274163161675}, {-0.511041056535807e-01, 0.226073200069370},
		{1829.15146461355, 455.478499142212},
	}
	if len(f.Estimates) != len(want) || f.DF != 9 || len(f.Confounded) != 0 {
		t.Fatalf("%d estimates, %d df, confounded %v", len(f.Estimates), f.DF, f.Confounded)
	}
	for i, w := range want {
		approx(t, "estimate "+f.Estimates[i].Term, f.Estimates[i].Value, w[0], 1e-8)
		approx(t, "standard error "+f.Estimates[i].Term, *f.Estimates[i].SE, w[1], 1e-8)
	}
	approx(t, "residual SD", *f.ResidualSD, 304.854073561965, 1e-8)
}

func TestLeastSquaresByHand(t *testing.T) {
	terms := []Term{
		{Name: "intercept", Columns: []Column{{"", []float64{1, 1, 1, 1}}}},
		{Name: "x", Columns: []Column{{"", []float64{0, 1, 2, 3}}}},
	}
	f, err := Model{Terms: terms, Y: []float64{2, 2, 4, 8}}.Fit()
	if err != nil {
		t.Fatal(err)
	}
	approx(t, "intercept", f.Estimates[0].Value, 1, 1e-12)
	approx(t, "slope", f.Estimates[1].Value, 2, 1e-12)
	approx(t, "SE of intercept", *f.Estimates[0].SE, math.Sqrt(1.4), 1e-12)
	approx(t, "SE of slope", *f.Estimates[1].SE, math.Sqrt(0.4), 1e-12)
	approx(t, "upper bound", *f.Estimates[1].High, 2+4.302652729911275*math.Sqrt(0.4), 1e-9)
	at2 := f.Combine(map[Coefficient]float64{{"intercept", ""}: 1, {"x", ""}: 2})
	approx(t, "value at 2", at2.Value, 5, 1e-12)
	approx(t, "its SE", *at2.SE, math.Sqrt(2*(0.25+0.25/5)), 1e-12)
}

func TestConfoundedTermsAreNamed(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1, 1}
	section := []float64{-0.5, -0.5, -0.5, 0.5, 0.5, 0.5}
	unit := []float64{0, 0, 0, 1, 1, 1} // the other laptop for the other section
	speed := []float64{-1, 0, 1, -1, 0, 1}
	terms := []Term{
		{Name: "intercept", Columns: []Column{{"", ones}}}, {Name: "section", Columns: []Column{{"", section}}},
		{Name: "speed", Columns: []Column{{"", speed}}}, {Name: "unit", Columns: []Column{{"", unit}}},
	}
	f, err := Model{Terms: terms, Y: []float64{1, 2, 3, 4, 5, 6}}.Fit()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Confounded, []string{"section", "unit"}) {
		t.Errorf("confounded: %v, want section and unit", f.Confounded)
	}
	if f.EstimateOf("unit") != nil || f.EstimateOf("speed") == nil || f.DF != 3 {
		t.Errorf("unit %v, speed %v, df %d", f.EstimateOf("unit"), f.EstimateOf("speed"), f.DF)
	}
}

func TestNoResidualDegreesGiveNoInterval(t *testing.T) {
	terms := []Term{
		{Name: "intercept", Columns: []Column{{"", []float64{1, 1}}}},
		{Name: "x", Columns: []Column{{"", []float64{0, 1}}}},
	}
	f, err := Model{Terms: terms, Y: []float64{3, 5}}.Fit()
	if err != nil || f.Estimates[1].SE != nil || f.Estimates[1].Low != nil {
		t.Errorf("two points and a line: %+v, %v", f.Estimates, err)
	}
	terms = append(terms, Term{Name: "z", Columns: []Column{{"", []float64{0, 0}}}})
	if f, err := (Model{Terms: terms, Y: []float64{3, 5}}).Fit(); err != nil || f.EstimateOf("z") != nil {
		t.Errorf("a column of zeros was kept: %+v, %v", f, err)
	}
	if _, err := (Model{}).Fit(); !errors.Is(err, ErrTooFew) {
		t.Errorf("no data: %v", err)
	}
}

// Without any spread there is no interval, of no width either, whatever the
// groups are to the model.
func TestNoSpreadGivesNoInterval(t *testing.T) {
	ones, x := slices.Repeat([]float64{1}, 24), make([]float64, 24)
	var several, each []string
	for i := range x {
		x[i] = float64(i%2) - 0.5
		several, each = append(several, string(rune('a'+i/3))), append(each, string(rune('a'+i)))
	}
	terms := []Term{{Name: "mean", Columns: []Column{{"", ones}}}, {Name: "x", Columns: []Column{{"", x}}}}
	for _, level := range []float64{0, 5.44} {
		for _, groups := range [][]string{nil, several, each} {
			f, err := Model{Terms: terms, Y: slices.Repeat([]float64{level}, 24), Groups: groups}.Fit()
			if err != nil || !f.NoSpread || f.Estimates[1].Low != nil || f.Estimates[1].SE != nil || f.Estimates[1].P !=
				nil {
				t.Errorf("all %g, groups %s: %+v, %v", level, f.Groups, f.Estimates, err)
			}
		}
	}
	// Nor is there one where all that differs is the sessions, each with an effect.
	four, unit, y := make([]string, 24), make([]float64, 24), make([]float64, 24)
	for i := range y {
		four[i], unit[i], y[i] = string(rune('a'+i/6)), float64(i/6%2)-0.5, float64([]int{3, 5, 8, 6}[i/6])
	}
	f, err := Model{Terms: append(terms, Term{Name: "unit", Columns: []Column{{"", unit}}}), Y: y, Groups: four}.Fit()
	if err != nil || f.Groups != GroupsFixed || !f.NoSpread {
		t.Fatalf("four sessions: groups %s, no spread %v, %v", f.Groups, f.NoSpread, err)
	}
	for _, e := range f.Estimates {
		if e.Low != nil || e.SE != nil || e.P != nil {
			t.Errorf("four sessions, no spread within them: %+v", e)
		}
	}
	if half := HalfWidth(Confidence, []float64{3, 3, 3}); half != nil {
		t.Errorf("three like values are known to ± %g", *half)
	}
}

// Where a block is a group each, nothing says how far other groups would be from
// these: what differs within groups has an interval, and the mean over them none.
func TestGroupsThatTheTermsTellGiveTheMeanNoInterval(t *testing.T) {
	x, second, third := make([]float64, 12), make([]float64, 12), make([]float64, 12)
	y, groups := make([]float64, 12), make([]string, 12)
	for i := range x {
		group := i / 4
		x[i], second[i], third[i] = float64(i%2)-0.5, -1./3, -1./3
		switch group {
		case 1:
			second[i]++
		case 2:
			third[i]++
		}
		y[i], groups[i] = 10+5*float64(group)+0.1*float64(i*i%7), string(rune('a'+group))
	}
	f := fitted(t, Model{Y: y, Groups: groups, Terms: []Term{
		{Name: "mean", Columns: []Column{{"", slices.Repeat([]float64{1}, 12)}}},
		{Name: "x", Columns: []Column{{"", x}}},
		{Name: "block", Columns: []Column{{"2 − 1", second}, {"3 − 1", third}}},
	}})
	if mean := f.EstimateOf("mean"); f.Groups != GroupsInside || mean.Low != nil || mean.SE != nil || !mean.Between {
		t.Errorf("groups %s, the mean %+v", f.Groups, mean)
	}
	if e := f.EstimateOf("x"); e.Low == nil || e.Between {
		t.Errorf("what differs within groups: %+v", e)
	}
}

// An estimate is the sum of the responses by what each counts for in it, however
// groups entered: so Influence is what an error of all of them does.
func TestInfluenceOfTheResponsesIsTheEstimate(t *testing.T) {
	g := committed(t)
	var fits []Fit
	var responses [][]float64
	for _, c := range g.Mixed {
		fits, responses = append(fits, fitted(t, modelOf(c.X, c.Y, c.Groups))), append(responses, c.Y)
	}
	for _, c := range g.Apart {
		fits, responses = append(fits, fitted(t, modelOf(c.X, c.Y, c.Groups))), append(responses, c.Y)
	}
	for i, f := range fits {
		for _, e := range f.Estimates {
			approx(t, f.Groups+": "+e.Term, f.Influence(e, responses[i]), e.Value, 1e-9)
		}
	}
}
