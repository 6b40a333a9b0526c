package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// golden is what scipy and statsmodels make of the same numbers, as
// testdata/golden.py writes it.
type golden struct {
	Quantiles [][3]float64
	Tails     [][3]float64
	Power     [][4]float64
	Holm      []struct{ P, Adjusted []float64 }
	Welch     []struct {
		X, Y             []float64
		DF, P, Low, High float64
	}
	OLS []struct {
		X                      [][]float64
		Y                      []float64
		Beta, SE, P, Low, High []float64
		SD, DF                 float64
	}
	Mixed []struct {
		X            [][]float64
		Y            []float64
		Groups       []string
		Beta, SE, DF []float64
		S2, U2       float64
	}
	Apart []struct {
		How      string
		X        [][]float64
		Y        []float64
		Groups   []string
		Beta, SE []float64
		DF       float64
	}
}

func readGolden(t *testing.T, raw []byte) golden {
	t.Helper()
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func committed(t *testing.T) golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	return readGolden(t, raw)
}

// Closed forms agree to closed; what either side finds by a search agrees to
// searched: statsmodels ends its search where the likelihood is flat to some
// 1e-10, which leaves the variances uncertain by about the root of that.
const (
	closed   = 1e-9
	searched = 2e-5
)

// approx compares relatively; below one, which all of these numbers are about,
// absolutely.
func approx(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

func TestAgainstScipyAndStatsmodels(t *testing.T) {
	g := committed(t)
	for _, q := range g.Quantiles {
		approx(t, fmt.Sprintf("quantile %g of t(%g)", q[0], q[1]), TQuantile(q[0], q[1]), q[2], closed)
	}
	for _, q := range g.Tails {
		approx(t, fmt.Sprintf("tails beyond %g of t(%g)", q[0], q[1]), TwoSided(q[0], q[1]), q[2], closed)
	}
	for _, p := range g.Power {
		approx(t, fmt.Sprintf("power at %g with %g df", p[0], p[1]), Power(p[0], p[1], p[2]), p[3], closed)
	}
	for i, h := range g.Holm {
		for j, p := range Holm(h.P) {
			approx(t, fmt.Sprintf("Holm %d.%d", i, j), p, h.Adjusted[j], closed)
		}
	}
	for i, w := range g.Welch {
		d := Welch(w.X, w.Y, Confidence)
		name := fmt.Sprintf("Welch %d: ", i)
		approx(t, name+"df", d.DF, w.DF, closed)
		approx(t, name+"p", d.P, w.P, closed)
		approx(t, name+"low", d.Low, w.Low, closed)
		approx(t, name+"high", d.High, w.High, closed)
	}
}

func modelOf(x [][]float64, y []float64, groups []string) Model {
	m := Model{Y: y, Groups: groups}
	for i, c := range x {
		m.Terms = append(m.Terms, Term{Name: fmt.Sprint("x", i), Columns: []Column{{"", c}}})
	}
	return m
}

func fitted(t *testing.T, m Model) Fit {
	t.Helper()
	f, err := m.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLeastSquaresAgainstStatsmodels(t *testing.T) {
	for i, c := range committed(t).OLS {
		f := fitted(t, modelOf(c.X, c.Y, nil))
		name := fmt.Sprintf("OLS %d: ", i)
		approx(t, name+"residual SD", *f.ResidualSD, c.SD, closed)
		approx(t, name+"df", float64(f.DF), c.DF, 0)
		for j, e := range f.Estimates {
			at := fmt.Sprintf("%scoefficient %d ", name, j)
			approx(t, at+"value", e.Value, c.Beta[j], closed)
			approx(t, at+"SE", *e.SE, c.SE[j], closed)
			approx(t, at+"p", *e.P, c.P[j], closed)
			approx(t, at+"low", *e.Low, c.Low[j], closed)
			approx(t, at+"high", *e.High, c.High[j], closed)
		}
	}
}

func TestMixedModelAgainstStatsmodels(t *testing.T) {
	for i, c := range committed(t).Mixed {
		f := fitted(t, modelOf(c.X, c.Y, c.Groups))
		if f.Groups != GroupsRandom {
			t.Fatalf("mixed %d: groups are %s", i, f.Groups)
		}
		name := fmt.Sprintf("mixed %d: ", i)
		approx(t, name+"s²", *f.ResidualSD**f.ResidualSD, c.S2, searched)
		approx(t, name+"u²", *f.GroupSD**f.GroupSD, c.U2, searched)
		for j, e := range f.Estimates {
			at := fmt.Sprintf("%scoefficient %d ", name, j)
			approx(t, at+"value", e.Value, c.Beta[j], searched)
			approx(t, at+"SE", *e.SE, c.SE[j], searched)
			approx(t, at+"df", *e.DF, c.DF[j], 1e-3) // numerical derivatives of statsmodels' variances
		}
	}
}

// Where groups have no spread of their own the model is what statsmodels makes of
// the rows, or of the groups' means, by least squares.
func TestGroupsWithoutASpreadOfTheirOwnAgainstStatsmodels(t *testing.T) {
	for i, c := range committed(t).Apart {
		f := fitted(t, modelOf(c.X, c.Y, c.Groups))
		if want := map[string]string{"noise": GroupsNoise, "between": GroupsFixed}[c.How]; f.Groups != want {
			t.Fatalf("apart %d: groups are %s, want %s", i, f.Groups, want)
		}
		for j, beta := range c.Beta {
			at := fmt.Sprintf("apart %d, coefficient %d ", i, j)
			approx(t, at+"value", f.Estimates[j].Value, beta, closed)
			approx(t, at+"SE", *f.Estimates[j].SE, c.SE[j], closed)
			approx(t, at+"df", *f.Estimates[j].DF, c.DF, closed)
		}
	}
}
