package design

import (
	"strings"

	"fieldmesh.dev/fieldmesh/controller/stats"
)

// Contrasts are what a fit says of a term. One of several levels is told by the
// differences of all its pairs, where the model has them all.
func Contrasts(f *stats.Fit, t stats.Term) []stats.Estimate {
	var out []stats.Estimate
	for _, e := range f.Estimates {
		if e.Term == t.Name {
			out = append(out, e)
		}
	}
	first := len(out)
	if len(t.Columns) < 2 || first < len(t.Columns) {
		return out
	}
	for i := range first {
		for j := i + 1; j < first; j++ {
			x, y := out[j].Label, out[i].Label
			e := f.Combine(map[stats.Coefficient]float64{{Term: t.Name, Label: x}: 1, {Term: t.Name, Label: y}: -1})
			e.Term, e.Label = t.Name, pair(x, y)
			out = append(out, *e)
		}
	}
	return out
}

// Levels are the two that a contrast is of: that which it is of, and that which
// it is less.
func Levels(label string) (of, less string) {
	of, less, _ = strings.Cut(strings.TrimPrefix(label, slopeOf), Minus)
	return of, less
}

// pair names the difference of two contrasts with the same level.
func pair(x, y string) string {
	prefix := ""
	if strings.HasPrefix(x, slopeOf) {
		prefix = slopeOf
	}
	of, _ := Levels(x)
	less, _ := Levels(y)
	return prefix + of + Minus + less
}
