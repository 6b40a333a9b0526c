package track

import (
	"math"

	"fieldmesh.dev/fieldmesh/internal/earth"
)

// RelativeSpanS is over how long a relative speed is taken: the difference of
// two positions of one receiver errs by some decimetres.
const RelativeSpanS = 2.0

// edgeS is how far from the window's edges positions are needed for a mean of relative
// speeds: nodes do not wait for the next fix of a receiver that is fast.
const edgeS = 0.5

// Walk is a track with its places at the ticks of a window, and as far before and
// after it as a relative speed looks: asked for once, and not once a pair.
type Walk struct {
	Track
	hz, ticks int
	places    []place // from beyond ticks before the window
	beyond    int
}

type place struct {
	latDeg, lonDeg float64
	known          bool
}

// Walk is the track at so many ticks, of which a second has hz.
func (k Track) Walk(ticks, hz int) Walk {
	w := Walk{Track: k, hz: hz, ticks: ticks, beyond: int(RelativeSpanS / 2 * float64(hz))}
	w.places = make([]place, ticks+2*w.beyond)
	for i := range w.places {
		p, known := k.Place(float64(i-w.beyond) / float64(hz))
		w.places[i] = place{p.Lat, p.Lon, known}
	}
	return w
}

// Apart is how far two walks of the same ticks are from each other, nil unless that is
// known at every tick, and the mean of their speed against each other, nil unless that is
// known at every tick but those at the edges.
func Apart(a, b Walk) (distanceM, relativeMps *float64) {
	var metres, mps float64
	known, moving := 0, 0
	endS := float64(a.ticks)/float64(a.hz) - edgeS
	whole := a.Holds(edgeS, endS) && b.Holds(edgeS, endS)
	for i := range a.ticks {
		p, q := a.places[i+a.beyond], b.places[i+a.beyond]
		if !p.known || !q.known {
			s := float64(i) / float64(a.hz)
			whole = whole && (s < edgeS || s > endS)
			continue
		}
		metres, known = metres+HaversineM(p.latDeg, p.lonDeg, q.latDeg, q.lonDeg), known+1
		from, to := float64(i-a.beyond)/float64(a.hz), float64(i+a.beyond)/float64(a.hz)
		p0, q0, p1, q1 := a.places[i], b.places[i], a.places[i+2*a.beyond], b.places[i+2*a.beyond]
		if !a.Holds(from, to) || !b.Holds(from, to) || !p0.known || !q0.known || !p1.known || !q1.known {
			continue
		}
		n0, e0 := OffsetM(p0.latDeg, p0.lonDeg, q0.latDeg, q0.lonDeg)
		n1, e1 := OffsetM(p1.latDeg, p1.lonDeg, q1.latDeg, q1.lonDeg)
		mps, moving = mps+math.Hypot(n1-n0, e1-e0)/RelativeSpanS, moving+1
	}
	if known > 0 && known == a.ticks {
		distanceM = new(metres / float64(known))
	}
	if moving > 0 && whole {
		relativeMps = new(mps / float64(moving))
	}
	return distanceM, relativeMps
}

// OffsetM is how far a place is north and east of another, on a plane.
func OffsetM(fromLatDeg, fromLonDeg, latDeg, lonDeg float64) (northM, eastM float64) {
	return (latDeg - fromLatDeg) * MetresPerDeg,
		earth.EastDeg(fromLonDeg, lonDeg) * MetresPerDeg * math.Cos(fromLatDeg*math.Pi/180)
}
