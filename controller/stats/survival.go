package stats

import "slices"

// Duration is how long something took; of a censored one it is only known that
// it took longer.
type Duration struct {
	Value    float64
	Censored bool
}

// MedianDuration is the median by Kaplan and Meier's estimate of what lasts
// longer; ok is false while more than half lasts longer than is known. Where the
// estimate is one half from one duration to the next, it is the middle of the two.
func MedianDuration(durations []Duration) (median float64, ok bool) {
	all := slices.SortedFunc(slices.Values(durations), func(a, b Duration) int {
		switch {
		case a.Value != b.Value:
			if a.Value < b.Value {
				return -1
			}
			return 1
		case a.Censored == b.Censored:
			return 0
		case b.Censored: // what ended at a moment ended before it was lost sight of
			return -1
		}
		return 1
	})
	const half, least = 0.5, 1e-9
	lasting := 1.0
	for i, d := range all {
		if d.Censored {
			continue
		}
		if ok && d.Value > median {
			return (median + d.Value) / 2, true
		}
		left := float64(len(all) - i)
		lasting *= (left - 1) / left
		switch {
		case lasting < half-least && ok:
			return median, true
		case lasting < half-least:
			return d.Value, true
		case lasting < half+least && !ok:
			median, ok = d.Value, true
		}
	}
	return median, ok
}
