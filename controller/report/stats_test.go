package report

import (
	"math"
	"testing"
)

func approx(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

func TestIntervalOfACell(t *testing.T) {
	s := summarise([]float64{18, 20, 22}) // s = 2, so half the width is 4.30265 · 2/√3
	if s.Mean != 20 || s.HalfWide == nil {
		t.Fatalf("got %+v", s)
	}
	approx(t, "half width", *s.HalfWide, 4.302652729911275*2/math.Sqrt(3), 1e-9)
	if s := summarise([]float64{18, 20}); s.HalfWide != nil || s.Mean != 19 {
		t.Errorf("two values: got %+v, want no interval", s)
	}
	if s := summarise(nil); s.N != 0 {
		t.Errorf("no values: got %+v", s)
	}
}

func TestCorrelation(t *testing.T) {
	if r := correlation([]float64{1, 2, 3}, []float64{2, 4, 6}); r == nil || math.Abs(*r-1) > 1e-12 {
		t.Errorf("got %v, want 1", r)
	}
	if r := correlation([]float64{1, 2, 3}, []float64{5, 5, 5}); r != nil {
		t.Errorf("no variation: got %g", *r)
	}
}
