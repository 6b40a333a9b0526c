package stats

import (
	"gonum.org/v1/gonum/stat"
)

// Summary of the values of one cell.
type Summary struct {
	N        int
	Mean     float64
	HalfWide *float64 // of the 95 % t interval; absent below three values
}

// Summarise gives mean and interval.
func Summarise(values []float64) Summary {
	s := Summary{N: len(values)}
	if s.N == 0 {
		return s
	}
	s.Mean = stat.Mean(values, nil)
	s.HalfWide = HalfWidth(Confidence, values)
	return s
}

// Weighted is a mean, of values that are known or not, by their weights: absent where a weight is, or
// a value that has some, and where all weigh nothing.
func Weighted(values, weights []*float64) *float64 {
	var sum, total float64
	for i, w := range weights {
		switch {
		case w == nil || *w != 0 && values[i] == nil:
			return nil
		case *w != 0:
			sum, total = sum+*w**values[i], total+*w
		}
	}
	if total == 0 {
		return nil
	}
	return new(sum / total)
}

// Median of sorted values, of which there is at least one.
func Median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Correlation is Pearson's; absent below three pairs or without variation.
func Correlation(x, y []float64) *float64 {
	if len(x) < 3 || stat.Variance(x, nil) == 0 || stat.Variance(y, nil) == 0 {
		return nil
	}
	return new(stat.Correlation(x, y, nil))
}
