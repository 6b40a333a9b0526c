package metrics

import (
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Between gives two nodes' standing to each other at moments since the window
// opened; nil while either's position is not known. Both tracks are aligned by
// their own nodes' windows.
func (at Attempt) Between(first, second string) func(s float64) *track.Pair {
	return track.Between(at.track(first), at.track(second))
}

// pairsOfMost is up to how many nodes every two of them are pairs: 200 would make 19,900.
const pairsOfMost = 50

// standing puts the standing of the car and the roadside node to each other, and,
// where there are more nodes, of every two, or of those that a flow joins.
func (s *set) standing() {
	t, seconds := s.at.trial, s.at.windowSeconds()
	if t.Car != "" && t.Roadside != "" {
		s.pairOf("", s.at.walk(t.Roadside, seconds), s.at.walk(t.Car, seconds), seconds)
	}
	nodes := t.Nodes()
	if len(nodes) < 3 {
		return
	}
	joined := func(a, b string) bool {
		return len(nodes) <= pairsOfMost || slices.ContainsFunc(t.Traffic, func(f wire.Flow) bool {
			return f.From == a && f.To == b || f.From == b && f.To == a
		})
	}
	walks := map[string]track.Walk{} // each made once: it goes through all records
	walkOf := func(node string) track.Walk {
		if _, made := walks[node]; !made {
			walks[node] = s.at.walk(node, seconds)
		}
		return walks[node]
	}
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			if joined(a, b) {
				s.put(a+"/"+b, pairDistance, s.pairOf(a+"/"+b, walkOf(a), walkOf(b), seconds))
			}
		}
	}
}

func (at Attempt) walk(node string, seconds float64) track.Walk {
	return at.track(node).Walk(Ticks(seconds), TickHz)
}

// pairOf puts what is known about a pair, and returns its mean distance.
func (s *set) pairOf(subject string, a, b track.Walk, seconds float64) *float64 {
	apart := track.Between(a.Track, b.Track)
	if p := apart(0); p != nil {
		s.put(subject, bearingOpen, &p.BearingDeg)
	}
	if p := apart(seconds); p != nil {
		s.put(subject, bearingClose, &p.BearingDeg)
	}
	distanceM, relativeMps := track.Apart(a, b)
	s.put(subject, relativeSpeed, relativeMps)
	return distanceM
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
	if Value(s.rows, "", fixAge.name) != nil {
		s.put("", fixAgeMean, age.value())
	}
	if car := s.at.trial.Car; car != "" {
		s.put("", gpsLag, track.SpeedLagS(verdict.Fixes(car, s.at.records)))
	}
}
