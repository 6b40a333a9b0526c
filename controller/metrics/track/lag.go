package track

import (
	"cmp"
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/verdict"
)

// Receivers smooth their speed, those of 1 Hz most; then it runs behind. How
// far is seen while the car gathers speed: the reported speeds are held against
// those that the positions make, shifted in time until the two agree best.
const (
	lagSpanS   = 0.95 // over how long a speed is made of two positions: at 1 Hz from one fix to the next
	lagGapS    = 2.5  // fixes further apart than this have no speed between them
	lagLeastS  = -0.5
	lagMostS   = 3.0
	lagStepS   = 0.05
	lagChange  = 3.0 // m/s by which the speed has to change, or no shift is better than another
	lagMoments = 4   // comparisons that it takes at least
)

// speedAt is a speed at a moment, in seconds.
type speedAt struct{ s, mps float64 }

// SpeedLagS is by how many seconds the reported speeds run behind the positions; nil
// where the fixes hold too little change of speed to tell.
func SpeedLagS(fixes []verdict.Fix) *float64 {
	reported, made := speedsOf(fixes)
	if len(made) < lagMoments || changeOf(made) < lagChange {
		return nil
	}
	best, least := math.NaN(), math.Inf(1)
	errors := map[int]float64{}
	steps := int(math.Round((lagMostS - lagLeastS) / lagStepS))
	for i := range steps + 1 {
		lag := lagLeastS + float64(i)*lagStepS
		e, n := disagreement(reported, made, lag)
		if n < lagMoments {
			continue
		}
		if errors[i] = e; e < least {
			best, least = lag, e
		}
	}
	// A shift of half a second has to make it clearly worse.
	i := int(math.Round((best - lagLeastS) / lagStepS))
	for _, other := range []int{i - int(0.5/lagStepS), i + int(0.5/lagStepS)} {
		if e, ok := errors[other]; math.IsNaN(best) || ok && e < 2*least+0.01 {
			return nil
		}
	}
	return new(math.Round(best/lagStepS) * lagStepS)
}

// speedsOf gives the reported speeds, and those that the positions make, each
// at the middle of its way.
func speedsOf(fixes []verdict.Fix) (reported, made []speedAt) {
	seconds := func(f verdict.Fix) float64 { return float64(f.BootNs-fixes[0].BootNs) / 1e9 }
	for i, f := range fixes {
		if f.SpeedMps != nil {
			reported = append(reported, speedAt{seconds(f), *f.SpeedMps})
		}
		if f.LatDeg == nil || f.LonDeg == nil {
			continue
		}
		for _, g := range fixes[i+1:] {
			span := seconds(g) - seconds(f)
			if span < lagSpanS || g.LatDeg == nil || g.LonDeg == nil {
				continue
			}
			if span <= lagGapS {
				made = append(made, speedAt{seconds(f) + span/2, HaversineM(*f.LatDeg, *f.LonDeg, *g.LatDeg,
					*g.LonDeg) / span})
			}
			break
		}
	}
	return reported, made
}

func changeOf(speeds []speedAt) float64 {
	low := slices.MinFunc(speeds, func(a, b speedAt) int { return cmp.Compare(a.mps, b.mps) })
	high := slices.MaxFunc(speeds, func(a, b speedAt) int { return cmp.Compare(a.mps, b.mps) })
	return high.mps - low.mps
}

// disagreement is the mean square of what is left between the two with the
// reported speeds taken to be lag seconds late, and at how many moments.
func disagreement(reported, made []speedAt, lag float64) (e float64, n int) {
	for _, m := range made {
		i, _ := slices.BinarySearchFunc(reported, m.s+lag, func(r speedAt, s float64) int {
			return cmp.Compare(r.s, s)
		})
		if i == 0 || i == len(reported) || reported[i].s-reported[i-1].s > lagGapS {
			continue
		}
		a, b := reported[i-1], reported[i]
		v := a.mps + (b.mps-a.mps)*(m.s+lag-a.s)/(b.s-a.s)
		e += (v - m.mps) * (v - m.mps)
		n++
	}
	if n > 0 {
		e /= float64(n)
	}
	return e, n
}
