package stats

import (
	"math"
	"testing"
)

func TestIntervalOfACell(t *testing.T) {
	s := Summarise([]float64{18, 20, 22}) // s = 2, so half the width is 4.30265 · 2/√3
	if s.Mean != 20 || s.HalfWide == nil {
		t.Fatalf("got %+v", s)
	}
	approx(t, "half width", *s.HalfWide, 4.302652729911275*2/math.Sqrt(3), 1e-9)
	if s := Summarise([]float64{18, 20}); s.HalfWide != nil || s.Mean != 19 {
		t.Errorf("two values: got %+v, want no interval", s)
	}
	if s := Summarise(nil); s.N != 0 {
		t.Errorf("no values: got %+v", s)
	}
}

func TestCorrelation(t *testing.T) {
	if r := Correlation([]float64{1, 2, 3}, []float64{2, 4, 6}); r == nil || math.Abs(*r-1) > 1e-12 {
		t.Errorf("got %v, want 1", r)
	}
	if r := Correlation([]float64{1, 2, 3}, []float64{5, 5, 5}); r != nil {
		t.Errorf("no variation: got %g", *r)
	}
}

// Means of a value that does not vary differ by rounding, which is no spread.
func TestRoundingIsNoSpread(t *testing.T) {
	a, b := -71.30000000000011, -71.30000000000013
	x, y := []float64{a, a, a, a, b}, []float64{b, b, b, b, b}
	if h, w := HalfWidth(0.95, x), Welch(x, y, 0.95); h != nil || w != nil {
		t.Errorf("an interval of rounding: %v, %+v", h, w)
	}
}

// A weighted mean leaves out what weighs nothing, and is unknown where a weight is or a value that counts.
func TestWeighted(t *testing.T) {
	of := func(v ...float64) (out []*float64) {
		for _, one := range v {
			out = append(out, &one)
			if math.IsNaN(one) {
				out[len(out)-1] = nil
			}
		}
		return out
	}
	unknown := math.NaN()
	for _, k := range []struct {
		values, weights []*float64
		want            float64
	}{
		{of(1, 51), of(39600, 400), 1.5},
		{of(1, unknown), of(3, 0), 1},
		{of(1, unknown), of(3, 1), unknown},
		{of(1, 2), of(3, unknown), unknown},
		{of(1, 2), of(0, 0), unknown},
		{nil, nil, unknown},
	} {
		got := Weighted(k.values, k.weights)
		if (got == nil) != math.IsNaN(k.want) || got != nil && *got != k.want {
			t.Errorf("%v by %v: %v, want %g", k.values, k.weights, got, k.want)
		}
	}
}
