package mobility

import (
	"fmt"
	"math"
	"time"
)

// Move sends a node to a place in a straight line, as ns-2's setdest does: at
// a time, whatever it was doing before, at a constant speed. Speed 0 stops it
// where it is.
type Move struct {
	At       time.Duration
	XM, YM   float64
	SpeedMps float64
}

// Script is the path of a node that starts at a place and is moved in the
// order of the moves, whose times must not fall. A move that comes while the
// node is on its way takes it off its way.
func Script(xM, yM float64, moves ...Move) (Path, error) {
	s := walker{knots: []Knot{{XM: xM, YM: yM}}}
	for _, m := range moves {
		if err := s.add(m); err != nil {
			return Path{}, err
		}
	}
	return s.path(), nil
}

// walker builds a path move by move. Its last knot may lie in the future: the
// end of the way that the node is on.
type walker struct {
	knots  []Knot
	newest time.Duration // of the moves
}

// path is what was built; it shares nothing with the walker's later moves.
func (w *walker) path() Path { return Path{knots: append([]Knot(nil), w.knots...)} }

func (w *walker) add(m Move) error {
	switch {
	case m.At < w.newest:
		return fmt.Errorf("time goes back from %g s to %g s", w.newest.Seconds(), m.At.Seconds())
	case !(m.SpeedMps >= 0) || !finite(m.SpeedMps):
		return fmt.Errorf("speed %g m/s: it must not be negative", m.SpeedMps)
	}
	w.newest = m.At
	w.cut(m.At)
	last := w.knots[len(w.knots)-1]
	way := math.Hypot(m.XM-last.XM, m.YM-last.YM)
	if m.SpeedMps == 0 || way == 0 {
		return nil
	}
	takes := way / m.SpeedMps
	if takes > maxTrip.Seconds() {
		return fmt.Errorf("%g m at %g m/s take more than %g s", way, m.SpeedMps, maxTrip.Seconds())
	}
	if d := seconds(takes); d > 0 {
		w.knots = append(w.knots, Knot{last.At + d, m.XM, m.YM})
	}
	return nil
}

// maxTrip bounds times, so that no sum of them overflows: a year.
const maxTrip = 365 * 24 * time.Hour

// cut ends the way that the node is on at t, and makes t the last knot.
func (w *walker) cut(t time.Duration) {
	at := Path{knots: w.knots}.At(t)
	for len(w.knots) > 1 && w.knots[len(w.knots)-1].At >= t {
		w.knots = w.knots[:len(w.knots)-1]
	}
	if last := &w.knots[len(w.knots)-1]; last.At >= t {
		last.XM, last.YM = at.XM, at.YM
	} else {
		w.knots = append(w.knots, Knot{t, at.XM, at.YM})
	}
}

// Place is a point of the plane in metres.
type Place struct{ XM, YM float64 }

// Chain is n places on a line to the east.
func Chain(n int, start Place, spacingM float64) []Place { return Grid(n, n, start, spacingM) }

// Grid is n places in rows of so many columns, row by row: the first row lies
// to the south.
func Grid(n, columns int, start Place, spacingM float64) []Place {
	out := make([]Place, n)
	for i := range out {
		out[i] = Place{start.XM + spacingM*float64(i%columns), start.YM + spacingM*float64(i/columns)}
	}
	return out
}
