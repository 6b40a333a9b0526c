package report

import (
	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/stats"
)

// summary of the values of one cell.
type summary struct {
	N        int
	Mean     float64
	HalfWide *float64 // of the 95 % t interval; absent below three values
}

// summarise gives mean and interval.
func summarise(values []float64) summary {
	s := summary{N: len(values)}
	if s.N == 0 {
		return s
	}
	s.Mean = stat.Mean(values, nil)
	s.HalfWide = stats.HalfWidth(stats.Confidence, values)
	return s
}

// correlation is Pearson's; absent below three pairs or without variation.
func correlation(x, y []float64) *float64 {
	if len(x) < 3 || stat.Variance(x, nil) == 0 || stat.Variance(y, nil) == 0 {
		return nil
	}
	return new(stat.Correlation(x, y, nil))
}
