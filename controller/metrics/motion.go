package metrics

import (
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics/fixtime"
	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// siteOffM is by how much the place that a campaign gives may be off: it was read off a map or a phone, whose fixes
// are within 4.9 m on average under open sky (gps.gov, GPS accuracy), and so nearly all within twice that.
const siteOffM = 10.0

// Site is the campaign's place of the roadside node; nil where that has fixes of its own, or is in the car in
// other trials.
func (at Attempt) Site() (latDeg, lonDeg *float64) {
	side := at.trial.Roadside
	swapped := func(t wire.Trial) bool { return t.Car == side }
	placed := func(f verdict.Fix) bool { return f.LatDeg != nil && f.LonDeg != nil }
	if side == "" || at.trial.Course.SiteLatDeg == nil || slices.ContainsFunc(at.plan.Trials, swapped) ||
		slices.ContainsFunc(verdict.Fixes(side, at.records), placed) {
		return nil, nil
	}
	return at.trial.Course.SiteLatDeg, at.trial.Course.SiteLonDeg
}

func (at Attempt) track(node string) track.Track {
	if lat, lon := at.Site(); node == at.trial.Roadside && lat != nil && lon != nil {
		return track.Standing(*lat, *lon, siteOffM)
	}
	w := verdict.WindowOf(node, at.records)
	if node == "" || w == nil {
		return track.Track{}
	}
	fixes := slices.DeleteFunc(verdict.Fixes(node, at.records), func(f verdict.Fix) bool {
		return f.LatDeg == nil || f.LonDeg == nil
	})
	moments, offS := fixtime.Of(node, at.records, fixes)
	out := track.Track{OffS: offS}
	for i, f := range fixes {
		out.Add(float64(moments[i]-w.OpenBootNs)/1e9, f)
	}
	return out
}

// apart gives the GPS distance of car and roadside node at moments of the
// window, and by how much it may be off; nil while either is not known. Both
// tracks are aligned by their own nodes' windows.
func (at Attempt) apart() func(s float64) (distanceM *float64, offM float64) {
	car, side := at.track(at.trial.Car), at.track(at.trial.Roadside)
	return func(s float64) (*float64, float64) {
		a, okA := car.Place(s)
		b, okB := side.Place(s)
		if !okA || !okB {
			return nil, 0
		}
		return new(track.HaversineM(a.Lat, a.Lon, b.Lat, b.Lon)), a.OffM + b.OffM
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
	var all track.Distances
	for _, r := range s.at.records {
		b, ok := r.Body.(*wire.Truth)
		if !ok || b.Of != s.at.trial.Car {
			continue
		}
		all = append(all, track.Distance{BootNs: r.TBootNs, M: b.DistanceM})
		if inside(*w, r.TBootNs) {
			speed.add(b.SpeedMps)
			dist.add(b.DistanceM)
		}
	}
	s.put("", trueSpeed, speed.value())
	s.put("", trueOpen, all.At(w.OpenBootNs))
	s.put("", trueClose, all.At(w.CloseBootNs))
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
