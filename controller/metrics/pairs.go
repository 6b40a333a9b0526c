package metrics

import (
	"math"

	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Pair is where two nodes are to each other at a moment, by GPS.
type Pair struct {
	DistanceM  float64
	BearingDeg float64 // from the first to the second, from true north
	// of one against the other; absent where positions a second before and after are not known
	RelativeSpeedMps *float64
}

// relativeSpan is over how long a relative speed is taken: the difference of
// two positions of one receiver errs by some decimetres.
const relativeSpan = 2.0

// Between gives two nodes' standing to each other at moments since the window
// opened; nil while either's position is not known. Both tracks are aligned by
// their own nodes' windows.
func (at Attempt) Between(first, second string) func(s float64) *Pair {
	return between(at.track(first), at.track(second))
}

func between(a, b track.Track) func(s float64) *Pair {
	apart := func(s float64) (northM, eastM float64, ok bool) {
		p, okA := a.Place(s)
		q, okB := b.Place(s)
		north, east := (q.Lat-p.Lat)*track.MetresPerDeg, (q.Lon-p.Lon)*track.MetresPerDeg
		return north, east * math.Cos(p.Lat*math.Pi/180), okA && okB
	}
	return func(s float64) *Pair {
		north, east, ok := apart(s)
		if !ok {
			return nil
		}
		from, _ := a.Place(s)
		to, _ := b.Place(s)
		p := &Pair{DistanceM: track.HaversineM(from.Lat, from.Lon, to.Lat, to.Lon),
			BearingDeg: math.Mod(math.Atan2(east, north)*180/math.Pi+360, 360)}
		n0, e0, ok0 := apart(s - relativeSpan/2)
		n1, e1, ok1 := apart(s + relativeSpan/2)
		first, last := s-relativeSpan/2, s+relativeSpan/2
		if ok0 && ok1 && a.Holds(first, last) && b.Holds(first, last) {
			p.RelativeSpeedMps = new(math.Hypot(n1-n0, e1-e0) / relativeSpan)
		}
		return p
	}
}

// standing puts the standing of the car and the roadside node to each other, and
// of every two nodes where there are more.
func (s *set) standing() {
	t, seconds := s.at.trial, s.at.windowSeconds()
	if t.Car != "" && t.Roadside != "" {
		s.pairOf("", s.at.Between(t.Roadside, t.Car), seconds)
	}
	nodes := t.Nodes()
	if len(nodes) < 3 {
		return
	}
	tracks := make([]track.Track, len(nodes)) // each read once: it goes through all records
	for i, node := range nodes {
		tracks[i] = s.at.track(node)
	}
	for i, a := range nodes {
		for j := i + 1; j < len(nodes); j++ {
			b, apart := nodes[j], between(tracks[i], tracks[j])
			s.pairOf(a+"/"+b, apart, seconds)
			s.put(a+"/"+b, pairDistance, meanThroughout(seconds, func(at float64) *float64 {
				if p := apart(at); p != nil {
					return &p.DistanceM
				}
				return nil
			}))
		}
	}
}

func (s *set) pairOf(subject string, between func(float64) *Pair, seconds float64) {
	if p := between(0); p != nil {
		s.put(subject, bearingOpen, &p.BearingDeg)
	}
	if p := between(seconds); p != nil {
		s.put(subject, bearingClose, &p.BearingDeg)
	}
	var all mean
	for i := range Ticks(seconds) {
		if p := between(float64(i) / TickHz); p != nil && p.RelativeSpeedMps != nil {
			all.add(*p.RelativeSpeedMps)
		}
	}
	s.put(subject, relativeSpeed, all.value())
}

// receiver puts how often the car's GPS told, and how old what it told was.
func (s *set) receiver() {
	w := verdict.WindowOf(s.at.trial.Car, s.at.records)
	if w == nil || s.at.trial.Car == "" {
		return
	}
	var rate, age mean
	for _, r := range s.at.records {
		g, ok := r.Body.(*wire.GPS)
		if !ok || r.Node != s.at.trial.Car || !inside(*w, r.TBootNs) {
			continue
		}
		if g.RateHz != nil {
			rate.add(*g.RateHz)
		}
		if g.FixAgeMs != nil {
			age.add(*g.FixAgeMs)
		}
	}
	s.put("", gpsRate, rate.value())
	s.put("", fixAgeMean, age.value())
	if car := s.at.trial.Car; car != "" {
		s.put("", gpsLag, track.SpeedLagS(verdict.Fixes(car, s.at.records)))
	}
}
