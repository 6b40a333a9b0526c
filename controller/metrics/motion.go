package metrics

import (
	"math"
	"slices"
	"sort"

	"fieldmesh.dev/fieldmesh/internal/verdict"
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
type track struct {
	s, lat, lon []float64
	v           []velocity
	offS        float64 // by which a fix may be from another moment
}

// velocity is how a node moved at a fix; known is false where that is not told.
// Its speed may be told without a track.
type velocity struct {
	northMps, eastMps, errMps float64
	known                     bool
	mps                       *float64
}

// position is where a node was, and by how much that may be off because of what
// nobody saw: how it moved between fixes or beyond them, and when they were.
type position struct{ lat, lon, offM float64 }

const (
	// speedErrMps is a receiver's error of speed where it does not tell its own.
	speedErrMps = 0.5
	// changeMps2 is how hard a car brakes, gathers speed or turns in traffic.
	changeMps2 = 4.0
	// standsMps is a speed at which receivers tell no track.
	standsMps = 0.5
)

func (at Attempt) track(node string) track {
	var out track
	w := verdict.WindowOf(node, at.records)
	if node == "" || w == nil {
		return out
	}
	fixes := slices.DeleteFunc(verdict.Fixes(node, at.records), func(f verdict.Fix) bool {
		return f.LatDeg == nil || f.LonDeg == nil
	})
	moments, offS := at.moments(node, fixes)
	out.offS = offS
	for i, f := range fixes {
		out.s = append(out.s, float64(moments[i]-w.OpenBootNs)/1e9)
		out.lat = append(out.lat, *f.LatDeg)
		out.lon = append(out.lon, *f.LonDeg)
		out.v = append(out.v, velocityOf(f))
	}
	return out
}

func velocityOf(f verdict.Fix) velocity {
	v := velocity{errMps: speedErrMps, mps: f.SpeedMps}
	if f.SpeedErrMps != nil {
		v.errMps = *f.SpeedErrMps
	}
	switch {
	case f.SpeedMps == nil:
	case f.TrackDeg != nil:
		north, east := math.Cos(*f.TrackDeg*math.Pi/180), math.Sin(*f.TrackDeg*math.Pi/180)
		v.northMps, v.eastMps, v.known = *f.SpeedMps*north, *f.SpeedMps*east, true
	case *f.SpeedMps < standsMps:
		v.known = true
	}
	return v
}

// place interpolates between the two fixes around a moment. Before the first and
// beyond the last it extrapolates, for as long as a fix may be old.
func (k track) place(s float64) (position, bool) {
	if len(k.s) == 0 {
		return position{}, false
	}
	i := sort.SearchFloat64s(k.s, s)
	switch {
	case i < len(k.s) && k.s[i] == s:
		return position{k.lat[i], k.lon[i], k.late(k.fastest(i, i))}, true
	case i == 0:
		return k.extrapolate(0, 1, s)
	case i == len(k.s):
		return k.extrapolate(i-1, i-2, s)
	case k.s[i]-k.s[i-1] > positionMaxS:
		return position{}, false
	}
	share := (s - k.s[i-1]) / (k.s[i] - k.s[i-1])
	p := position{lat: k.lat[i-1] + share*(k.lat[i]-k.lat[i-1]), lon: k.lon[i-1] + share*(k.lon[i]-k.lon[i-1])}
	if mps := k.fastest(i-1, i); mps > 0 {
		p.offM = changeMps2/2*(s-k.s[i-1])*(k.s[i]-s) + k.late(mps)
	}
	return p, true
}

// fastest is how fast a node went at two fixes at most, its speed's own error in
// it: by what they tell, or by the way between them. One that stands by both is at 0.
func (k track) fastest(i, j int) float64 {
	most := 0.0
	for _, v := range []velocity{k.v[i], k.v[j]} {
		if v.mps == nil {
			return k.byWay(min(i, len(k.s)-2))
		}
		if *v.mps >= standsMps {
			most = max(most, *v.mps+v.errMps)
		}
	}
	return most
}

// byWay is a speed by the way from a fix to the next, 0 where that is of a node
// that stands or where there is no other fix.
func (k track) byWay(i int) float64 {
	if i < 0 {
		return 0
	}
	mps := HaversineM(k.lat[i], k.lon[i], k.lat[i+1], k.lon[i+1]) / (k.s[i+1] - k.s[i])
	if mps < standsMps {
		return 0
	}
	return mps + speedErrMps
}

// late is how far a node goes in the time by which a fix may be from another
// moment.
func (k track) late(mps float64) float64 {
	if mps == 0 {
		return 0
	}
	return mps*k.offS + changeMps2*k.offS*k.offS/2
}

// metresPerDeg is the length of a degree of latitude.
const metresPerDeg = earthRadiusM * math.Pi / 180

// extrapolate goes from a fix by its velocity or, where it tells none, by the way
// between it and its neighbour.
func (k track) extrapolate(from, neighbour int, s float64) (position, bool) {
	dt, v := s-k.s[from], k.v[from]
	if math.Abs(dt) > verdict.FixAgeMsDefault/1e3 {
		return position{}, false
	}
	cos := math.Cos(k.lat[from] * math.Pi / 180)
	if !v.known {
		if neighbour < 0 || neighbour >= len(k.s) || math.Abs(k.s[from]-k.s[neighbour]) > positionMaxS {
			return position{}, false
		}
		span := k.s[from] - k.s[neighbour]
		v.northMps = (k.lat[from] - k.lat[neighbour]) * metresPerDeg / span
		v.eastMps = (k.lon[from] - k.lon[neighbour]) * metresPerDeg * cos / span
	}
	return position{
		lat:  k.lat[from] + v.northMps*dt/metresPerDeg,
		lon:  k.lon[from] + v.eastMps*dt/(metresPerDeg*cos),
		offM: v.errMps*math.Abs(dt) + changeMps2*dt*dt/2 + k.late(k.fastest(from, from)),
	}, true
}

// apart gives the GPS distance of car and roadside node at moments of the
// window, and by how much it may be off; nil while either is not known. Both
// tracks are aligned by their own nodes' windows.
func (at Attempt) apart() func(s float64) (distanceM *float64, offM float64) {
	car, side := at.track(at.trial.Car), at.track(at.trial.Roadside)
	return func(s float64) (*float64, float64) {
		a, okA := car.place(s)
		b, okB := side.place(s)
		if !okA || !okB {
			return nil, 0
		}
		return new(HaversineM(a.lat, a.lon, b.lat, b.lon)), a.offM + b.offM
	}
}

// meanThroughout is the mean of a number over the window at 10 Hz; nil unless it
// is known at every moment, because a part may lie elsewhere than the whole.
func meanThroughout(seconds float64, number func(s float64) *float64) *float64 {
	var all mean
	for i := range Ticks(seconds) {
		v := number(float64(i) / TickHz)
		if v == nil {
			return nil
		}
		all.add(*v)
	}
	return all.value()
}

// edge puts the distance at an edge of the window, and by how much it may be off.
func (s *set) edge(distance, off definition, apart func(float64) (*float64, float64), when float64) {
	d, offM := apart(when)
	s.put("", distance, d)
	if d != nil {
		s.put("", off, &offM)
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

	apart := s.at.apart()
	seconds := s.at.windowSeconds()
	s.edge(distOpen, openOff, apart, 0)
	s.edge(distClose, closeOff, apart, seconds)
	s.put("", distMean, meanThroughout(seconds, func(at float64) *float64 { d, _ := apart(at); return d }))
	s.put("", meanOff, meanThroughout(seconds, func(at float64) *float64 {
		d, offM := apart(at)
		if d == nil {
			return nil
		}
		return &offM
	}))
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
	var all truths
	for _, r := range s.at.records {
		b, ok := r.Body.(*wire.Truth)
		if !ok || b.Of != s.at.trial.Car {
			continue
		}
		all = append(all, truthAt{r.TBootNs, b.DistanceM})
		if inside(*w, r.TBootNs) {
			speed.add(b.SpeedMps)
			dist.add(b.DistanceM)
		}
	}
	s.put("", trueSpeed, speed.value())
	s.put("", trueOpen, all.at(w.OpenBootNs))
	s.put("", trueClose, all.at(w.CloseBootNs))
	s.put("", trueMean, dist.value())
}

// truths are distances in the emulated field, in the order of their times.
type truths []truthAt

type truthAt struct {
	bootNs int64
	m      float64
}

// truthSlackNs is how far from a moment one sample alone may stand for it: the
// field records the window's edges themselves, by its own clock.
const truthSlackNs = 10e6

// at interpolates between the samples about a moment; nil where there are none.
func (t truths) at(bootNs int64) *float64 {
	i := sort.Search(len(t), func(i int) bool { return t[i].bootNs >= bootNs })
	if i > 0 && i < len(t) && float64(t[i].bootNs-t[i-1].bootNs) <= positionMaxS*1e9 {
		share := float64(bootNs-t[i-1].bootNs) / float64(t[i].bootNs-t[i-1].bootNs)
		return new(t[i-1].m + share*(t[i].m-t[i-1].m))
	}
	for _, k := range []int{i, i - 1} {
		if k >= 0 && k < len(t) && math.Abs(float64(t[k].bootNs-bootNs)) <= truthSlackNs {
			return &t[k].m
		}
	}
	return nil
}

func (s *set) quality() {
	var worst *float64
	for _, r := range s.at.records {
		if b, ok := r.Body.(*wire.Lateness); ok && b.Source == "sampler" && (worst == nil || b.P99Us > *worst) {
			worst = &b.P99Us
		}
	}
	s.put("", samplerLate, worst)
	s.put("", edgeLate, s.at.edgeLateMs())
}

// edgeLateMs is the latest that a node was at an edge of the window.
func (at Attempt) edgeLateMs() *float64 {
	var worst *float64
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Edge); ok && b.Edge != "end" && (worst == nil || b.LateMs > *worst) {
			worst = &b.LateMs
		}
	}
	return worst
}
