package stats

import "testing"

// The last two are leukaemia patients of Freireich et al. (1963), in weeks, as
// textbooks of survival analysis have them: medians 23 with 6-MP and 8 without.
func TestMedianOfDurations(t *testing.T) {
	all := func(values ...float64) (out []Duration) {
		for _, v := range values {
			out = append(out, Duration{max(v, -v), v < 0}) // negative: censored
		}
		return out
	}
	for name, c := range map[string]struct {
		of     []Duration
		median float64
		ok     bool
	}{
		"none":                     {nil, 0, false},
		"one":                      {all(3), 3, true},
		"an even number":           {all(4, 1, 3, 2), 2.5, true},
		"an odd number":            {all(4, 1, 3, 2, 5), 3, true},
		"a tie in the middle":      {all(1, 2, 2, 3), 2, true},
		"all censored":             {all(-1, -2, -3), 0, false},
		"more than half censored":  {all(1, -10, -10), 0, false},
		"fewer than half censored": {all(1, 2, -10), 2, true},
		"half censored":            {all(1, 2, -10, -10), 2, true},
		"censored early":           {all(-1, 2, 3, 4), 3, true},
		"censored at an event":     {all(5, -5, 9), 9, true},
		"Freireich, with 6-MP": {all(6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32,
			-32, -34, -35), 23, true},
		"Freireich, with a placebo": {all(1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23), 8,
			true},
	} {
		if got, ok := MedianDuration(c.of); ok != c.ok || ok && got != c.median {
			t.Errorf("%s: %g, %v, want %g, %v", name, got, ok, c.median, c.ok)
		}
	}
}
