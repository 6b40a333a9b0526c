// Package series has numbers against time.
package series

import "sort"

// Series is a number against the time since the window opened.
type Series struct {
	S, V   []float64
	Closed bool // a socket's, whose end the kernel has told
}

// Add appends a number at a later moment.
func (k *Series) Add(s, v float64) { k.S, k.V = append(k.S, s), append(k.V, v) }

// Last gives the newest value no older than maxAge at a moment.
func (k Series) Last(s, maxAge float64) *float64 {
	i := sort.SearchFloat64s(k.S, s+1e-9) - 1 // the moment itself counts, whatever its rounding
	if i < 0 || s-k.S[i] > maxAge {
		return nil
	}
	return &k.V[i]
}

// Between interpolates; before the first value it gives nothing.
func (k Series) Between(s float64) (float64, bool) {
	i := sort.SearchFloat64s(k.S, s)
	switch {
	case len(k.S) == 0 || (i == 0 && k.S[0] > s):
		return 0, false
	case i == 0:
		return k.V[0], true
	case i == len(k.S):
		return k.V[i-1], true
	}
	share := (s - k.S[i-1]) / (k.S[i] - k.S[i-1])
	return k.V[i-1] + share*(k.V[i]-k.V[i-1]), true
}

// Around reports whether there are values before and after a moment, or at it,
// no more than a gap apart: without samples on both sides a throughput is absent.
func (k Series) Around(s, gap float64) bool {
	const rounding = 1e-9
	i := sort.SearchFloat64s(k.S, s-rounding)
	if i == len(k.S) {
		return false
	}
	return k.S[i] <= s+rounding || i > 0 && k.S[i]-k.S[i-1] <= gap+rounding
}
