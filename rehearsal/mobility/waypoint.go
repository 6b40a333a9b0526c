package mobility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Waypoint is the Random Waypoint model: a node goes to a place drawn
// uniformly from the area at a speed drawn uniformly from
// [SpeedMinMps, SpeedMaxMps], pauses there for Pause, and goes on (Broch et
// al., "A performance comparison of multi-hop wireless ad hoc network routing
// protocols", MobiCom 1998, section 3.2).
//
// Nodes start in the model's stationary distribution (Navidi and Camp,
// "Stationary distributions for the random waypoint mobility model", IEEE
// Trans. Mobile Computing 3(1), 2004), so that no warm-up is needed: places
// are denser in the middle and slow nodes are more frequent than at a start
// drawn uniformly.
type Waypoint struct {
	Area        Area
	SpeedMinMps float64
	SpeedMaxMps float64
	Pause       time.Duration
}

// maxLegs bounds one node's path.
const maxLegs = 1_000_000

// Check says what is impossible about the model.
func (w Waypoint) Check() error {
	switch {
	case !(w.Area.WidthM > 0) || !(w.Area.HeightM > 0) || !finite(w.Area.WidthM) || !finite(w.Area.HeightM):
		return fmt.Errorf("check random waypoint: an area of %g m × %g m is none to move in", w.Area.WidthM,
			w.Area.HeightM)
	case !(w.SpeedMinMps > 0):
		return fmt.Errorf("check random waypoint: a minimum speed of %g m/s: it must be above 0. The slower a trip, "+
			"the longer it lasts; "+
			"with speeds down to 0 the mean duration of a trip is infinite, the nodes' mean speed falls for ever, "+
			"and there is no steady state to start in "+
			"(Yoon, Liu and Noble, \"Random waypoint considered harmful\", INFOCOM 2003)", w.SpeedMinMps)
	case !(w.SpeedMaxMps >= w.SpeedMinMps) || !finite(w.SpeedMaxMps):
		return fmt.Errorf("check random waypoint: a maximum speed of %g m/s is below the minimum of %g m/s",
			w.SpeedMaxMps, w.SpeedMinMps)
	case w.Pause < 0:
		return fmt.Errorf("check random waypoint: a pause of %v is negative", w.Pause)
	}
	return nil
}

// MeanTripM is the mean distance of two places drawn uniformly from the area
// (Ghosh, "Random distances within a rectangle and between two rectangles",
// Bull. Calcutta Math. Soc. 43, 1951).
func (w Waypoint) MeanTripM() float64 {
	a, b := w.Area.WidthM, w.Area.HeightM
	d := math.Hypot(a, b)
	return (a*a*a/(b*b)+b*b*b/(a*a)+d*(3-a*a/(b*b)-b*b/(a*a)))/15 +
		(b*b/a*math.Acosh(d/b)+a*a/b*math.Acosh(d/a))/6
}

// meanPaceSPerM is the mean of 1 / speed.
func (w Waypoint) meanPaceSPerM() float64 {
	if w.SpeedMaxMps == w.SpeedMinMps {
		return 1 / w.SpeedMinMps
	}
	return math.Log(w.SpeedMaxMps/w.SpeedMinMps) / (w.SpeedMaxMps - w.SpeedMinMps)
}

// PausedShare is the share of time that a node pauses: the mean pause over
// the mean of pause and trip (Navidi and Camp, section 3).
func (w Waypoint) PausedShare() float64 {
	p := w.Pause.Seconds()
	return p / (p + w.MeanTripM()*w.meanPaceSPerM())
}

// MeanSpeedMps is the mean over time of a node's speed, pauses included.
func (w Waypoint) MeanSpeedMps() float64 {
	return (1 - w.PausedShare()) / w.meanPaceSPerM()
}

// Path is one node's movement from 0 to at least until, in the steady state
// from its beginning. The same seed and node give the same path, whatever the
// other nodes are.
func (w Waypoint) Path(seed uint64, node int, until time.Duration) (Path, error) {
	if err := w.Check(); err != nil {
		return Path{}, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x5770_0000+uint64(node)))
	return wander(rng, w.start(rng), w.Area, w.Pause, until, func() float64 {
		return w.SpeedMinMps + rng.Float64()*(w.SpeedMaxMps-w.SpeedMinMps)
	})
}

// wander goes on from some knots by trips to uniform places until at least a time.
func wander(rng *rand.Rand, knots []Knot, area Area, pause, until time.Duration, speedMps func() float64) (Path,
	error) {
	for legs := 0; knots[len(knots)-1].At < until; legs++ {
		if legs == maxLegs {
			return Path{}, fmt.Errorf("draw random waypoints: %d trips in %v: the area is too small for its speeds",
				maxLegs, until)
		}
		x, y := place(rng, area)
		knots = rest(trip(knots, x, y, speedMps()), pause)
	}
	return Path{knots: knots}, nil
}

func place(rng *rand.Rand, area Area) (x, y float64) {
	return rng.Float64() * area.WidthM, rng.Float64() * area.HeightM
}

// start is the rest of the pause or trip that a node is in at time 0.
func (w Waypoint) start(rng *rand.Rand) []Knot {
	if rng.Float64() < w.PausedShare() {
		x, y := place(rng, w.Area)
		// The rest of a constant pause seen at a random time is uniform.
		return rest([]Knot{{XM: x, YM: y}}, time.Duration(rng.Float64()*float64(w.Pause)))
	}
	// A trip is met with in proportion to its length, and the node is at a
	// uniform place of it (Navidi and Camp, theorem 3).
	var x0, y0, x1, y1 float64
	for longest := math.Hypot(w.Area.WidthM, w.Area.HeightM); ; {
		x0, y0 = place(rng, w.Area)
		x1, y1 = place(rng, w.Area)
		if rng.Float64()*longest < math.Hypot(x1-x0, y1-y0) {
			break
		}
	}
	share := rng.Float64()
	// The density of a moving node's speed is proportional to 1 / v (their
	// equation 3): the inverse of its distribution function.
	u := rng.Float64()
	speed := math.Pow(w.SpeedMaxMps, u) * math.Pow(w.SpeedMinMps, 1-u)
	knots := []Knot{{XM: x0 + share*(x1-x0), YM: y0 + share*(y1-y0)}}
	return rest(trip(knots, x1, y1, speed), w.Pause)
}

// trip goes to a place. Of one that would take longer than any movement lasts it is
// the part that can be seen.
func trip(knots []Knot, x, y, speedMps float64) []Knot {
	last := knots[len(knots)-1]
	takesS := math.Hypot(x-last.XM, y-last.YM) / speedMps
	if longest := maxTrip.Seconds(); takesS > longest {
		x, y = last.XM+(x-last.XM)*longest/takesS, last.YM+(y-last.YM)*longest/takesS
		takesS = longest
	}
	takes := seconds(takesS)
	if takes <= 0 {
		return knots // the same place: drawn again
	}
	return append(knots, Knot{last.At + takes, x, y})
}

func rest(knots []Knot, pause time.Duration) []Knot {
	if pause <= 0 {
		return knots
	}
	last := knots[len(knots)-1]
	return append(knots, Knot{last.At + pause, last.XM, last.YM})
}
