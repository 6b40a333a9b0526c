package metrics

import (
	"math"
	"sort"

	"fieldmesh.dev/fieldmesh/protocols/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// earthRadiusM is the mean radius R1 of the Earth (IUGG; Moritz, "Geodetic
// Reference System 1980").
const earthRadiusM = 6371008.8

// positionMaxS is how far apart in time two fixes may lie for a position
// between them to be told.
const positionMaxS = 3.0

// HaversineM is the great-circle distance of two positions in metres.
func HaversineM(latADeg, lonADeg, latBDeg, lonBDeg float64) float64 {
	const rad = math.Pi / 180
	sinLat := math.Sin((latBDeg - latADeg) * rad / 2)
	sinLon := math.Sin((lonBDeg - lonADeg) * rad / 2)
	h := sinLat*sinLat + math.Cos(latADeg*rad)*math.Cos(latBDeg*rad)*sinLon*sinLon
	return 2 * earthRadiusM * math.Asin(math.Sqrt(min(h, 1)))
}

// track is a node's positions against the time since its window opened.
type track struct{ s, lat, lon []float64 }

func (at Attempt) track(node string) track {
	var out track
	w := verdict.WindowOf(node, at.records)
	if node == "" || w == nil {
		return out
	}
	for _, f := range verdict.Fixes(node, at.records) {
		if f.LatDeg == nil || f.LonDeg == nil {
			continue
		}
		out.s = append(out.s, float64(f.BootNs-w.OpenBootNs)/1e9)
		out.lat = append(out.lat, *f.LatDeg)
		out.lon = append(out.lon, *f.LonDeg)
	}
	return out
}

// at interpolates between the two fixes around a moment. Beyond the first or
// the last fix it holds that one, for as long as a fix may be old.
func (k track) at(s float64) (lat, lon float64, ok bool) {
	if len(k.s) == 0 {
		return 0, 0, false
	}
	i := sort.SearchFloat64s(k.s, s)
	switch {
	case i == 0:
		return k.lat[0], k.lon[0], k.s[0]-s <= verdict.FixAgeMsDefault/1e3
	case i == len(k.s):
		return k.lat[i-1], k.lon[i-1], s-k.s[i-1] <= verdict.FixAgeMsDefault/1e3
	case k.s[i]-k.s[i-1] > positionMaxS:
		return 0, 0, false
	}
	share := (s - k.s[i-1]) / (k.s[i] - k.s[i-1])
	return k.lat[i-1] + share*(k.lat[i]-k.lat[i-1]), k.lon[i-1] + share*(k.lon[i]-k.lon[i-1]), true
}

// distance gives the GPS distance of car and roadside node at moments of the
// window; nil while either is not known. Both tracks are aligned by their own
// nodes' windows.
func (at Attempt) distance() func(s float64) *float64 {
	car, side := at.track(at.trial.Car), at.track(at.trial.Roadside)
	return func(s float64) *float64 {
		latA, lonA, okA := car.at(s)
		latB, lonB, okB := side.at(s)
		if !okA || !okB {
			return nil
		}
		return new(HaversineM(latA, lonA, latB, lonB))
	}
}

func (s *set) motion() {
	t := s.at.trial
	m := verdict.Measure(t, s.at.records)
	s.put("", speedTarget, t.SpeedMps)
	s.put("", speedMean, m.MeanSpeedMps)
	s.put("", inBand, m.InBandShare)
	s.put("", fixAge, m.FixAgeMsMax)
	s.put("", fixMode, m.FixModeMin)
	s.put("", clockErr, m.ClockErrorMs)
	s.put("", lateness, m.LatenessShare)

	distance := s.at.distance()
	seconds := s.at.windowSeconds()
	s.put("", distOpen, distance(0))
	s.put("", distClose, distance(seconds))
	var all mean
	for i := range Ticks(seconds) {
		if d := distance(float64(i) / TickHz); d != nil {
			all.add(*d)
		}
	}
	s.put("", distMean, all.value())
	s.truth(seconds)
	s.standing()
	s.receiver()
}

// windowSeconds is the length of the measuring window as it was, by the car's
// clock or by the first node's that had one.
func (at Attempt) windowSeconds() float64 {
	for _, node := range append([]string{at.trial.Car}, at.trial.Nodes()...) {
		if w := verdict.WindowOf(node, at.records); w != nil && node != "" {
			return float64(w.CloseBootNs-w.OpenBootNs) / 1e9
		}
	}
	return at.trial.DurationS
}

// fieldWindow is the window by the emulated field's clock: its own record of it
// or, since the field runs on one machine with its nodes, the receiver's.
func (at Attempt) fieldWindow() *wire.Window {
	for _, node := range []string{"field", at.trial.Car, at.trial.Receiver} {
		if w := verdict.WindowOf(node, at.records); w != nil && node != "" {
			return w
		}
	}
	return nil
}

func (s *set) truth(seconds float64) {
	w := s.at.fieldWindow()
	if w == nil {
		return
	}
	var speed, dist mean
	var first, last *float64
	for _, r := range s.at.records {
		b, ok := r.Body.(*wire.Truth)
		if !ok || b.Of != s.at.trial.Car || !inside(*w, r.TBootNs) {
			continue
		}
		speed.add(b.SpeedMps)
		dist.add(b.DistanceM)
		if first == nil {
			first = &b.DistanceM
		}
		last = &b.DistanceM
	}
	s.put("", trueSpeed, speed.value())
	s.put("", trueOpen, first)
	s.put("", trueClose, last)
	s.put("", trueMean, dist.value())
}

func (s *set) quality() {
	var worst *float64
	for _, r := range s.at.records {
		if b, ok := r.Body.(*wire.Lateness); ok && b.Source == "sampler" && (worst == nil || b.P99Us > *worst) {
			worst = &b.P99Us
		}
	}
	s.put("", samplerLate, worst)
}
