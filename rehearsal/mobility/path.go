package mobility

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Area is the rectangle [0, WidthM] × [0, HeightM] that nodes move in: x to
// the east, y to the north, metres. The zero Area has no bounds.
type Area struct{ WidthM, HeightM float64 }

// Bounded reports whether the area has bounds at all.
func (a Area) Bounded() bool { return a != Area{} }

// Check refuses a place outside the area.
func (a Area) Check(xM, yM float64) error {
	if !finite(xM) || !finite(yM) {
		return fmt.Errorf("position (%g, %g) is not a place", xM, yM)
	}
	if a.Bounded() && !(xM >= 0 && xM <= a.WidthM && yM >= 0 && yM <= a.HeightM) {
		return fmt.Errorf("position (%g, %g) is outside the area of %g m × %g m", xM, yM, a.WidthM, a.HeightM)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Knot is a place at a time.
type Knot struct {
	At     time.Duration
	XM, YM float64
}

// Path is a movement along straight lines from knot to knot at constant speed.
// Before the first knot the node stands there, after the last one there. A
// Path never changes.
type Path struct{ knots []Knot }

// NewPath makes a path of knots whose times rise.
func NewPath(knots ...Knot) (Path, error) {
	if len(knots) == 0 {
		return Path{}, fmt.Errorf("make path: it has no knot")
	}
	for i, k := range knots {
		if err := (Area{}).Check(k.XM, k.YM); err != nil {
			return Path{}, fmt.Errorf("make path: %w", err)
		}
		if i > 0 && k.At <= knots[i-1].At {
			return Path{}, fmt.Errorf("make path: time goes from %v to %v", knots[i-1].At, k.At)
		}
	}
	return Path{knots: slices.Clone(knots)}, nil
}

// Stand is the path of a node that stays where it is.
func Stand(xM, yM float64) Path { return Path{knots: []Knot{{XM: xM, YM: yM}}} }

// Moves reports whether the node ever changes its place.
func (p Path) Moves() bool {
	for _, k := range p.knots[1:] {
		if k.XM != p.knots[0].XM || k.YM != p.knots[0].YM {
			return true
		}
	}
	return false
}

// Ends is the time of the last knot.
func (p Path) Ends() time.Duration { return p.knots[len(p.knots)-1].At }

// At is the node at a time. DistanceM is to the plane's origin.
func (p Path) At(t time.Duration) State {
	// The segment that t is in begins at the last knot not after it.
	i, exact := slices.BinarySearchFunc(p.knots, t, func(k Knot, t time.Duration) int {
		return int(min(max(k.At-t, -1), 1))
	})
	if !exact {
		i--
	}
	if i < 0 {
		return standing(p.knots[0], p.track(0))
	}
	if i == len(p.knots)-1 {
		return standing(p.knots[i], p.track(i-1))
	}
	a, b := p.knots[i], p.knots[i+1]
	share := float64(t-a.At) / float64(b.At-a.At)
	s := standing(Knot{XM: a.XM + share*(b.XM-a.XM), YM: a.YM + share*(b.YM-a.YM)}, p.track(i))
	s.SpeedMps = math.Hypot(b.XM-a.XM, b.YM-a.YM) / (b.At - a.At).Seconds()
	return s
}

func standing(k Knot, trackDeg float64) State {
	return State{XM: k.XM, YM: k.YM, TrackDeg: trackDeg, DistanceM: math.Hypot(k.XM, k.YM)}
}

// track is the bearing of the segment that begins at a knot; 0 where there is
// none or the node stands.
func (p Path) track(i int) float64 {
	if i < 0 || i+1 >= len(p.knots) {
		return 0
	}
	return bearing(p.knots[i+1].XM-p.knots[i].XM, p.knots[i+1].YM-p.knots[i].YM)
}

// bearing is the true bearing of a step, 0 ≤ bearing < 360.
func bearing(eastM, northM float64) float64 {
	deg := math.Atan2(eastM, northM) * 180 / math.Pi
	if deg < 0 {
		deg += 360
	}
	if deg >= 360 { // a rounding of a hair west of north
		return 0
	}
	return deg
}

// seconds is a time of a file or a campaign.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
