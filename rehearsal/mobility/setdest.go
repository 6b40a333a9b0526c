package mobility

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Setdest is Random Waypoint as ns-2's setdest draws it in its first version,
// that of CMU (indep-utils/cmu-scen-gen/setdest, -v 1), by which the papers'
// scenarios were made: nodes start at uniform places, rest there for Pause, and
// draw every speed uniformly from SpeedMinMps to SpeedMaxMps.
//
// That version's SpeedMinMps is 0. Then there is no steady state: the slower a trip, the longer it lasts, so that more
// and more nodes are on slow trips. The mean speed begins at SpeedMaxMps / 2 and
// falls for ever (Yoon, Liu and Noble, "Random waypoint considered harmful",
// INFOCOM 2003). A result hangs on the time since the start that it is of.
type Setdest struct {
	Area        Area
	SpeedMinMps float64
	SpeedMaxMps float64
	Pause       time.Duration
}

// Check says what is impossible about the model.
func (s Setdest) Check() error {
	if !(s.SpeedMaxMps > 0) {
		return fmt.Errorf("check setdest: a maximum speed of %g m/s: it must be above 0", s.SpeedMaxMps)
	}
	if !(s.SpeedMinMps >= 0) || s.SpeedMinMps > s.SpeedMaxMps {
		return fmt.Errorf("check setdest: a minimum speed of %g m/s: it must be from 0 to the maximum of %g m/s",
			s.SpeedMinMps, s.SpeedMaxMps)
	}
	return Waypoint{Area: s.Area, SpeedMinMps: s.SpeedMaxMps, SpeedMaxMps: s.SpeedMaxMps, Pause: s.Pause}.Check()
}

// Path is one node's movement from 0 to at least until; the same seed and node
// give the same path.
func (s Setdest) Path(seed uint64, node int, until time.Duration) (Path, error) {
	if err := s.Check(); err != nil {
		return Path{}, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x5e7d_0000+uint64(node)))
	x, y := place(rng, s.Area)
	return wander(rng, rest([]Knot{{XM: x, YM: y}}, s.Pause), s.Area, s.Pause, until, func() float64 {
		return s.SpeedMinMps + (1-rng.Float64())*(s.SpeedMaxMps-s.SpeedMinMps) // never 0
	})
}
