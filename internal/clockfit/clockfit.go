// Package clockfit tells what a node's boot clock was ahead of the controller's
// over a span, and for how much that can be wrong, from comparisons before,
// within and after it. It compares no clocks itself.
package clockfit

import (
	"cmp"
	"math"
	"slices"
)

// DriftMaxPpm bounds by how much two boot clocks can gain on each other:
// crystals of computers are within 100 ppm each.
const DriftMaxPpm = 200

// fitPoints is the most comparisons of an attempt that a fit goes by, those next to
// the span and those with the least uncertainty: the fit's work grows with their third power.
const fitPoints = 24

// staleNs is how much drift may add to the last comparison before a span, or the
// first after it, for the comparison to say more than GO does by itself: 50 s of
// 200 ppm.
const staleNs = 10e6

// Point is a comparison of a node's boot clock with the controller's: at
// bootNs by the node's, it was ahead by offsetNs ± uncertaintyNs.
type Point struct{ BootNs, OffsetNs, UncertaintyNs int64 }

// Fit is a node's clock over a span of its own time: what it is ahead by
// at the span's ends, and for how much that can be wrong anywhere within.
//
// Each comparison says that the offset is within its uncertainty, for certain:
// the answer was given between question and return. A clock gains at a steady
// rate over the minutes of an attempt. So the offsets at the span's ends lie
// between the extremes of all straight lines that pass every comparison, of no
// more than DriftMaxPpm; the middle is taken, and half the width is the
// uncertainty. Of two clocks whose rate did change the comparisons next to the
// span are taken alone.
type Fit struct {
	openNs, closeNs         int64
	offsetOpen, offsetClose float64
	UncertaintyNs           float64
	Steady                  bool // a steady rate explains what the fit goes by
	Stale                   bool // compared on one side of the span only, and long ago: drift may be staleNs
	driftPpm                float64
	points                  int
}

// line is offset = at + slope × (t − origin), in ns and ns a ns.
type line struct{ at, slope float64 }

// Over fits the comparisons over [openNs, closeNs]; false without any.
func Over(points []Point, openNs, closeNs int64) (Fit, bool) {
	if len(points) == 0 {
		return Fit{}, false
	}
	f := over(points, openNs, closeNs)
	before, after := false, false
	best := int64(math.MaxInt64)
	for _, p := range points {
		before, after = before || p.BootNs <= openNs, after || p.BootNs >= closeNs
		best = min(best, p.UncertaintyNs)
	}
	f.Stale = !(before && after) && f.UncertaintyNs-float64(best) > staleNs
	return f, true
}

func over(points []Point, openNs, closeNs int64) Fit {
	if closeNs <= openNs {
		closeNs = openNs + 1
	}
	inTime := func(a, b Point) int { return cmp.Compare(a.BootNs, b.BootNs) }
	points = slices.SortedFunc(slices.Values(points), inTime)
	next := slices.Clone(nextTo(points, openNs, closeNs))
	slices.SortFunc(points, func(a, b Point) int {
		nearA, nearB := slices.Contains(next, a), slices.Contains(next, b)
		switch {
		case nearA && !nearB:
			return -1
		case nearB && !nearA:
			return 1
		}
		return cmp.Compare(a.UncertaintyNs, b.UncertaintyNs)
	})
	points = points[:min(len(points), fitPoints)]
	slices.SortFunc(points, inTime)
	if f, ok := fitAll(points, openNs, closeNs); ok {
		return f
	}
	if f, ok := fitAll(next, openNs, closeNs); ok {
		return f
	}
	return unsteady(next, openNs, closeNs)
}

// fitAll is false when no straight line passes every comparison.
func fitAll(points []Point, openNs, closeNs int64) (Fit, bool) {
	origin, base := openNs, points[0].OffsetNs // floats keep nanoseconds near these
	lines := passing(points, origin, base)
	if len(lines) == 0 {
		return Fit{}, false
	}
	span := float64(closeNs - openNs)
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, l := range lines {
		for i, v := range []float64{l.at, l.at + l.slope*span} {
			low[i], high[i] = min(low[i], v), max(high[i], v)
		}
	}
	f := Fit{openNs: openNs, closeNs: closeNs, Steady: true, points: len(points)}
	f.offsetOpen, f.offsetClose = float64(base)+(low[0]+high[0])/2, float64(base)+(low[1]+high[1])/2
	f.UncertaintyNs = max(high[0]-low[0], high[1]-low[1]) / 2
	f.driftPpm = (f.offsetClose - f.offsetOpen) / span * 1e6
	return f, true
}

// passing gives the corners of the set of all lines that pass every comparison.
func passing(points []Point, origin, base int64) []line {
	const most = DriftMaxPpm / 1e6
	type bound struct{ t, v float64 }
	var bounds []bound
	for _, p := range points {
		t, v, u := float64(p.BootNs-origin), float64(p.OffsetNs-base), float64(p.UncertaintyNs)
		bounds = append(bounds, bound{t, v - u}, bound{t, v + u})
	}
	fits := func(l line) bool {
		if math.Abs(l.slope) > most*(1+1e-9) {
			return false
		}
		for i := 0; i < len(bounds); i += 2 {
			at := l.at + l.slope*bounds[i].t
			if at < bounds[i].v-1 || at > bounds[i+1].v+1 { // a nanosecond for the arithmetic
				return false
			}
		}
		return true
	}
	var out []line
	try := func(b bound, slope float64) {
		if l := (line{b.v - slope*b.t, slope}); fits(l) {
			out = append(out, l)
		}
	}
	for i, a := range bounds {
		try(a, most)
		try(a, -most)
		for _, b := range bounds[i+1:] {
			if a.t != b.t {
				try(a, (b.v-a.v)/(b.t-a.t))
			}
		}
	}
	return out
}

// nextTo gives the last comparison before the span and the first after it, as
// far as there are such, or else the nearest.
func nextTo(points []Point, openNs, closeNs int64) []Point {
	before, after := -1, -1
	for i, p := range points {
		if p.BootNs <= openNs {
			before = i
		}
		if p.BootNs >= closeNs && after < 0 {
			after = i
		}
	}
	switch {
	case before >= 0 && after >= 0:
		return []Point{points[before], points[after]}
	case before >= 0:
		return points[before : before+1]
	case after >= 0:
		return points[after : after+1]
	}
	return points[:1]
}

// unsteady is what can be said of a clock that jumped between the comparisons:
// it was as the one before has it, or as the one after.
func unsteady(points []Point, openNs, closeNs int64) Fit {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		low, high = min(low, float64(p.OffsetNs-p.UncertaintyNs)), max(high, float64(p.OffsetNs+p.UncertaintyNs))
	}
	mid := (low + high) / 2
	return Fit{openNs: openNs, closeNs: closeNs, offsetOpen: mid, offsetClose: mid, UncertaintyNs: (high - low) / 2,
		points: len(points)}
}

// Common is a moment of the node's boot clock by the controller's.
func (f Fit) Common(bootNs int64) int64 {
	share := float64(bootNs-f.openNs) / float64(f.closeNs-f.openNs)
	return bootNs - int64(math.Round(f.offsetOpen+share*(f.offsetClose-f.offsetOpen)))
}
