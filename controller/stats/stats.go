// Package stats is the arithmetic behind what is said of a run: linear models
// with their intervals, corrections for asking more than once, how many passes
// a precision takes, and when there are enough. It knows numbers and the names
// that they were given, not trials; which numbers to compare is its callers'
// business.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence of every interval that is not said to have another.
const Confidence = 0.95

// TQuantile is the two-sided quantile of Student's t: that which the share
// confidence of the distribution keeps within either side of zero.
func TQuantile(confidence, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(0.5 + confidence/2)
}

// TwoSided is the probability that Student's t is at least as far from zero.
func TwoSided(t, df float64) float64 {
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.CDF(-math.Abs(t)))
}

// Holm adjusts p values for being several, so that the chance of even one false
// finding among them is kept (S. Holm, "A simple sequentially rejective multiple
// test procedure", Scand. J. Statist. 6, 1979).
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(p))
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, p[i]*float64(len(p)-rank)))
		out[i] = worst
	}
	return out
}

// HalfWidth is half the t interval of a mean; absent below three values: from two
// it exists on paper, 12.7 standard errors wide, and says nothing. It is absent
// too where all values are alike: without a spread nobody knows.
func HalfWidth(confidence float64, values []float64) *float64 {
	if len(values) < 3 {
		return nil
	}
	if alike(values) {
		return nil
	}
	n := float64(len(values))
	return new(TQuantile(confidence, n-1) * stat.StdDev(values, nil) / math.Sqrt(n))
}

// alike reports whether values differ by rounding at most.
func alike(values []float64) bool {
	least, most := slices.Min(values), slices.Max(values)
	return most-least <= nothing*max(math.Abs(least), math.Abs(most))
}

// Difference is that of two samples' means.
type Difference struct {
	Value, SE, DF, Low, High, P float64
}

// Welch compares the means of two samples whose spreads may differ (B. Welch,
// Biometrika 34, 1947); absent below three values in either, or without any
// spread.
func Welch(x, y []float64, confidence float64) *Difference {
	if len(x) < 3 || len(y) < 3 {
		return nil
	}
	nx, ny := float64(len(x)), float64(len(y))
	vx, vy := stat.Variance(x, nil)/nx, stat.Variance(y, nil)/ny
	if alike(x) && alike(y) {
		return nil
	}
	d := &Difference{Value: stat.Mean(y, nil) - stat.Mean(x, nil), SE: math.Sqrt(vx + vy)}
	d.DF = (vx + vy) * (vx + vy) / (vx*vx/(nx-1) + vy*vy/(ny-1))
	half := TQuantile(confidence, d.DF) * d.SE
	d.Low, d.High, d.P = d.Value-half, d.Value+half, TwoSided(d.Value/d.SE, d.DF)
	return d
}
