package stats

import (
	"math"
	"slices"
)

// independent orthogonalises a column against a basis, twice for the sake of
// rounding, and reports whether anything is left.
func independent(basis [][]float64, values []float64) ([]float64, bool) {
	length := norm(values)
	if length == 0 {
		return nil, false
	}
	v := without(basis, values)
	rest := norm(v)
	if rest < dependent*length {
		return nil, false
	}
	for i := range v {
		v[i] /= rest
	}
	return v, true
}

// without takes out of values what an orthonormal basis spans of them.
func without(basis [][]float64, values []float64) []float64 {
	v := slices.Clone(values)
	for range 2 {
		for _, b := range basis {
			d := dot(v, b)
			for i := range v {
				v[i] -= d * b[i]
			}
		}
	}
	return v
}

func dot(x, y []float64) float64 {
	var sum float64
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }

// Confounded names the terms without whose columns the others still span some
// of them. The first term, the mean, is not a question.
func Confounded(terms []Term) []string {
	whole, without := ranks(terms)
	var out []string
	for i, t := range terms {
		if i > 0 && whole-without[i] < len(t.Columns) {
			out = append(out, t.Name)
		}
	}
	return out
}

// ranks returns the rank of all terms' columns, and that without each term.
func ranks(terms []Term) (whole int, without []int) {
	var before [][]float64
	for i := range terms {
		without = append(without, len(grown(before, terms[i+1:])))
		before = grown(before, terms[i:i+1])
	}
	return len(before), without
}

// grown returns an orthonormal basis with what terms add to it.
func grown(basis [][]float64, terms []Term) [][]float64 {
	basis = slices.Clip(basis)
	for _, t := range terms {
		for _, c := range t.Columns {
			if v, ok := independent(basis, c.Values); ok {
				basis = append(basis, v)
			}
		}
	}
	return basis
}

// Inflation is by how much the variance of a term's first coefficient grows
// when another term comes into the model (a ratio of variance inflation
// factors): infinite when the other takes its place.
func Inflation(terms []Term, of, by string) float64 {
	var alone, both [][]float64
	var values []float64
	for _, t := range terms {
		for i, c := range t.Columns {
			if t.Name == of && i == 0 {
				values = c.Values
				continue
			}
			if v, ok := independent(both, c.Values); ok {
				both = append(both, v)
			}
			if t.Name == by {
				continue
			}
			if v, ok := independent(alone, c.Values); ok {
				alone = append(alone, v)
			}
		}
	}
	rest, left := norm(without(alone, values)), norm(without(both, values))
	if left < dependent*norm(values) {
		return math.Inf(1)
	}
	return rest * rest / (left * left)
}
