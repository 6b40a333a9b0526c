package track

import "math"

// Pair is where two nodes are to each other at a moment, by GPS.
type Pair struct {
	DistanceM  float64
	BearingDeg float64 // from the first to the second, from true north
	// of one against the other; absent where positions a second before and after are not known
	RelativeSpeedMps *float64
}

// Between gives two tracks' standing to each other at moments; nil while either's position
// is not known.
func Between(a, b Track) func(s float64) *Pair {
	apart := func(s float64) (northM, eastM float64, ok bool) {
		p, okA := a.Place(s)
		q, okB := b.Place(s)
		north, east := OffsetM(p.Lat, p.Lon, q.Lat, q.Lon)
		return north, east, okA && okB
	}
	return func(s float64) *Pair {
		north, east, ok := apart(s)
		if !ok {
			return nil
		}
		from, _ := a.Place(s)
		to, _ := b.Place(s)
		p := &Pair{DistanceM: HaversineM(from.Lat, from.Lon, to.Lat, to.Lon),
			BearingDeg: math.Mod(math.Atan2(east, north)*180/math.Pi+360, 360)}
		n0, e0, ok0 := apart(s - RelativeSpanS/2)
		n1, e1, ok1 := apart(s + RelativeSpanS/2)
		first, last := s-RelativeSpanS/2, s+RelativeSpanS/2
		if ok0 && ok1 && a.Holds(first, last) && b.Holds(first, last) {
			p.RelativeSpeedMps = new(math.Hypot(n1-n0, e1-e0) / RelativeSpanS)
		}
		return p
	}
}
