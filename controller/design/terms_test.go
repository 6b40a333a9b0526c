package design

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"fieldmesh.dev/fieldmesh/controller/stats"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

func fitOf(t *testing.T, passes []Pass, y []float64) stats.Fit {
	t.Helper()
	f, err := stats.Model{Terms: TermsOf(passes).List, Y: y}.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Blocks that gave 10, 20 and 20 have the mean 16.67: that of no one block.
func TestTheMeanIsThatOfAllBlocks(t *testing.T) {
	passes := passesOf(nodes(), schedule(3, []string{"alpha"}, 2, 5))
	noise := rand.New(rand.NewPCG(20261124, 2))
	var y []float64
	sum := 0.0
	for _, p := range passes {
		v := []float64{10, 20, 20}[p.Trial.Block-1] + 0.01*noise.NormFloat64()
		y, sum = append(y, v), sum+v
	}
	f := fitOf(t, passes, y)
	near(t, "the mean", f.EstimateOf(Mean).Value, sum/float64(len(y)))
	near(t, "the mean's standard error", *f.EstimateOf(Mean).SE, *f.ResidualSD/math.Sqrt(float64(len(y))))
}

// unbalanced are the passes of three sections, three speeds and three blocks of
// which some were lost.
func unbalanced(t *testing.T) (passes []Pass, y []float64) {
	t.Helper()
	noise := rand.New(rand.NewPCG(20261124, 1))
	for block := range 3 {
		for s, section := range []string{"A", "B", "C"} {
			for _, mps := range []float64{2, 5, 11} {
				if noise.Float64() < 0.2 {
					continue
				}
				passes = append(passes, Of(nodes(), cell(block+1, "alpha", section, mps)))
				y = append(y, 20+5*float64(block)+2*float64(s)-float64(s)*mps+noise.NormFloat64())
			}
		}
	}
	for i := range passes {
		passes[i].Sender, passes[i].Session = "", "1"
	}
	if len(passes) >= 27 {
		t.Fatal("nothing was lost")
	}
	return passes, y
}

// byHand is least squares by the normal equations on a cell of its own for each
// section and block, and a slope for each section: nothing of the model's coding.
type byHand struct {
	beta    mat.VecDense
	inverse mat.Dense
	s2      float64
}

// The columns: sections A, B and C; blocks 2 and 3; the slopes of A, B and C.
const columnsByHand = 8

func rowByHand(p Pass, center float64) []float64 {
	row := make([]float64, columnsByHand)
	s := slices.Index([]string{"A", "B", "C"}, p.Section)
	row[s], row[5+s] = 1, *p.Trial.SpeedMps-center
	if p.Trial.Block > 1 {
		row[1+p.Trial.Block] = 1
	}
	return row
}

func solvedByHand(t *testing.T, passes []Pass, y []float64, center float64) *byHand {
	t.Helper()
	x := mat.NewDense(len(y), columnsByHand, nil)
	for i, p := range passes {
		x.SetRow(i, rowByHand(p, center))
	}
	var normal mat.Dense
	var right, fitted mat.VecDense
	normal.Mul(x.T(), x)
	right.MulVec(x.T(), mat.NewVecDense(len(y), y))
	h := &byHand{}
	if err := h.inverse.Inverse(&normal); err != nil {
		t.Fatal(err)
	}
	h.beta.MulVec(&h.inverse, &right)
	fitted.MulVec(x, &h.beta)
	for i := range y {
		h.s2 += (y[i] - fitted.AtVec(i)) * (y[i] - fitted.AtVec(i)) / float64(len(y)-columnsByHand)
	}
	return h
}

// is compares an estimate with a weighted sum of the coefficients by hand.
func (h *byHand) is(t *testing.T, what string, e stats.Estimate, weights ...float64) {
	t.Helper()
	w := mat.NewVecDense(columnsByHand, weights)
	near(t, what, e.Value, mat.Dot(w, &h.beta))
	near(t, what+", standard error", *e.SE, math.Sqrt(h.s2*mat.Inner(w, &h.inverse, w)))
}

// With three sections and three blocks, of which trials were lost, mean and
// slope are those over all levels, each of which counts alike, and the
// contrasts are still of one level less the first.
func TestMeanAndSlopeAreThoseOverAllLevels(t *testing.T) {
	passes, y := unbalanced(t)
	f := fitOf(t, passes, y)
	h := solvedByHand(t, passes, y, *TermsOf(passes).SpeedMps)
	const third = 1. / 3
	h.is(t, "the mean", *f.EstimateOf(Mean), third, third, third, third, third, 0, 0, 0)
	h.is(t, "the slope", *f.EstimateOf(Speed), 0, 0, 0, 0, 0, third, third, third)
	of := func(term string) (out []stats.Estimate) {
		for _, e := range f.Estimates {
			if e.Term == term {
				out = append(out, e)
			}
		}
		return out
	}
	for i, e := range of(Section) {
		weights := []float64{-1, 0, 0, 0, 0, 0, 0, 0}
		weights[1+i] = 1
		h.is(t, fmt.Sprint("section ", e.Label), e, weights...)
	}
	for i, e := range of(Interaction) {
		weights := []float64{0, 0, 0, 0, 0, -1, 0, 0}
		weights[6+i] = 1
		h.is(t, e.Label, e, weights...)
	}
	if len(of(Section)) != 2 || len(of(Interaction)) != 2 || len(f.Confounded) > 0 {
		t.Errorf("%d contrasts of sections, %d of slopes, confounded %v", len(of(Section)), len(of(Interaction)),
			f.Confounded)
	}
}
