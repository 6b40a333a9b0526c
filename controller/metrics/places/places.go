// Package places is what a run measured by place: second by second where its car
// was, how far from the roadside node, and what speed, signal, throughput and loss
// it had there, and the same by distance. Every attempt counts that opened a window,
// however it ended, and the one under way: what was logged is a log, and no result.
package places

import (
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/inorder"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Second is one second of a window. What was not known then is absent.
type Second struct {
	wire.TrialKey
	S             int    // since the window opened, at its begin
	TimeUTC       string // of its first fix, by the receiver
	LatDeg        *float64
	LonDeg        *float64
	DistanceM     *float64 // of car and roadside node
	SpeedMps      *float64
	SignalDbm     *float64 // at the receiver
	ThroughputBps *float64 // at the receiver
	// Sent are the datagrams that were due in it and whose answer was waited for to the
	// end, Lost those of them without one; of flows of kind delay.
	Sent, Lost int
}

// LostPercent is the share of Lost in Sent; absent: there was no datagram.
func (s Second) LostPercent() *float64 { return percent(s.Sent, s.Lost) }

func percent(sent, lost int) *float64 {
	if sent == 0 {
		return nil
	}
	return new(100 * float64(lost) / float64(sent))
}

// heard reports whether anything came from the one to the other.
func (s Second) heard() bool {
	return s.ThroughputBps != nil && *s.ThroughputBps > 0 || s.Sent > s.Lost
}

func (s Second) empty() bool {
	return s.LatDeg == nil && s.SpeedMps == nil && s.SignalDbm == nil && s.ThroughputBps == nil && s.Sent == 0
}

// Log is the whole of it.
type Log struct {
	Run     string
	Seconds []Second // in the order of the schedule
	// where the roadside node was last
	RoadsideLatDeg, RoadsideLonDeg *float64
}

// Of reads a run's log.
func Of(a *archive.Archive) (Log, error) {
	out := Log{Run: a.Info().Run}
	for part, err := range inorder.Read(a, func(at archive.Attempt) (Log, error) { return ofAttempt(a, at.TrialKey) }) {
		if err != nil {
			return out, err
		}
		out.Seconds = append(out.Seconds, part.Seconds...)
		if part.RoadsideLatDeg != nil {
			out.RoadsideLatDeg, out.RoadsideLonDeg = part.RoadsideLatDeg, part.RoadsideLonDeg
		}
	}
	return out, nil
}

// ofAttempt is the log of an attempt; empty: nobody drove.
func ofAttempt(a *archive.Archive, k wire.TrialKey) (out Log, err error) {
	if t, planned := a.Trial(k.Trial); !planned || t.Car == "" {
		return out, nil
	}
	at, err := metrics.Load(a, k)
	if err != nil {
		return out, err
	}
	points := at.Timeline()
	seconds := make([]Second, (len(points)+metrics.TickHz-2)/metrics.TickHz)
	for s := range seconds {
		seconds[s] = secondOf(k, s, points[s*metrics.TickHz:min((s+1)*metrics.TickHz+1, len(points))])
	}
	byNode := at.ByNode()
	countDatagrams(seconds, at.Trial(), byNode)
	tellTimes(seconds, at.Trial().Car, byNode)
	out.Seconds = slices.DeleteFunc(seconds, Second.empty)
	for _, f := range verdict.Fixes(at.Trial().Roadside, byNode[at.Trial().Roadside]) {
		if f.LatDeg != nil && f.LonDeg != nil {
			out.RoadsideLatDeg, out.RoadsideLonDeg = f.LatDeg, f.LonDeg
		}
	}
	return out, nil
}

// secondOf is the mean of the moments of a second that are known. Its first moment is the
// last of the second before, whose throughput ends there; its place is that of its middle.
func secondOf(k wire.TrialKey, s int, of []metrics.Point) Second {
	var distance, speed, signal, throughput mean
	for i, p := range of {
		if i > 0 {
			throughput.add(p.ThroughputBps)
		}
		if i < metrics.TickHz {
			distance.add(p.DistanceM)
			speed.add(p.SpeedMps)
			signal.add(p.SignalDbm)
		}
	}
	middle := of[len(of)/2]
	return Second{TrialKey: k, S: s, LatDeg: middle.LatDeg, LonDeg: middle.LonDeg, DistanceM: distance.value(),
		SpeedMps: speed.value(), SignalDbm: signal.value(), ThroughputBps: throughput.value()}
}

// countDatagrams counts those whose sender was there until their answer was no longer
// waited for: all of these have a record.
func countDatagrams(seconds []Second, t wire.Trial, byNode map[string][]wire.Record) {
	for _, f := range t.Traffic {
		w := verdict.WindowOf(f.From, byNode[f.From])
		if f.Kind != wire.KindDelay || f.Background || w == nil {
			continue
		}
		all, over := datagramsOf(f.Name, byNode[f.From])
		for _, d := range all {
			s := int(math.Floor(float64(*d.DueBootNs-w.OpenBootNs) / 1e9))
			if s < 0 || s >= len(seconds) || *d.HandedBootNs > over {
				continue
			}
			seconds[s].Sent++
			if d.ReceivedBootNs == nil || *d.ReceivedBootNs-*d.HandedBootNs > wire.DelayGrace.Nanoseconds() {
				seconds[s].Lost++
			}
		}
	}
}

// datagramsOf are a sender's, and until when all that it handed to its kernel are among them.
func datagramsOf(flow string, records []wire.Record) (all []*wire.Delay, over int64) {
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Delay:
			if b.Flow == flow && b.Side == wire.DelaySender && b.DueBootNs != nil && b.HandedBootNs != nil {
				all = append(all, b)
				over = max(over, *b.HandedBootNs-wire.DelayGrace.Nanoseconds())
				if b.ReceivedBootNs == nil { // recorded after those before it
					over = max(over, *b.HandedBootNs)
				}
			}
		case *wire.DelayEnd:
			if b.Flow == flow && b.Side == wire.DelaySender {
				over = math.MaxInt64
			}
		}
	}
	return all, over
}

// tellTimes gives each second the receiver's time of its first fix.
func tellTimes(seconds []Second, car string, byNode map[string][]wire.Record) {
	w := verdict.WindowOf(car, byNode[car])
	if w == nil {
		return
	}
	for _, r := range byNode[car] {
		g, is := r.Body.(*wire.GPS)
		if !is || g.FixBootNs == nil {
			continue
		}
		s := int(math.Floor(float64(*g.FixBootNs-w.OpenBootNs) / 1e9))
		if s >= 0 && s < len(seconds) && seconds[s].TimeUTC == "" {
			seconds[s].TimeUTC = g.TimeUTC
		}
	}
}

// Stretch is what was measured between two distances.
type Stretch struct {
	FromM, ToM float64
	Seconds    int
	// means of the seconds in which they are known
	SpeedMps, SignalDbm, ThroughputBps *float64
	Sent, Lost                         int
}

// LostPercent is the share of Lost in Sent; absent: there was no datagram.
func (s Stretch) LostPercent() *float64 { return percent(s.Sent, s.Lost) }

const stretchesMost = 15

// stepsM are lengths of a stretch that read well.
var stepsM = []float64{10, 20, 50, 100, 200, 500, 1000, 2000, 5000}

// ByDistance is the log by distance in at most fifteen stretches of one length, nearest first.
// Those in which the car never was are left out.
func (l Log) ByDistance() []Stretch {
	farthest := -1.0
	for _, s := range l.Seconds {
		if s.DistanceM != nil {
			farthest = max(farthest, *s.DistanceM)
		}
	}
	if farthest < 0 {
		return nil
	}
	step := stepsM[len(stepsM)-1]
	for _, m := range stepsM {
		if farthest < m*stretchesMost {
			step = m
			break
		}
	}
	type means struct{ speed, signal, throughput mean }
	stretches := make([]Stretch, int(farthest/step)+1)
	of := make([]means, len(stretches))
	for _, s := range l.Seconds {
		if s.DistanceM == nil {
			continue
		}
		i := int(*s.DistanceM / step)
		stretches[i].Seconds++
		stretches[i].Sent += s.Sent
		stretches[i].Lost += s.Lost
		of[i].speed.add(s.SpeedMps)
		of[i].signal.add(s.SignalDbm)
		of[i].throughput.add(s.ThroughputBps)
	}
	var out []Stretch
	for i, s := range stretches {
		if s.Seconds == 0 {
			continue
		}
		s.FromM, s.ToM = float64(i)*step, float64(i+1)*step
		s.SpeedMps, s.SignalDbm, s.ThroughputBps = of[i].speed.value(), of[i].signal.value(), of[i].throughput.value()
		out = append(out, s)
	}
	return out
}

// FarthestM is the greatest distance at which anything came; absent: nothing did, or it is
// not known where.
func (l Log) FarthestM() (out *float64) {
	for _, s := range l.Seconds {
		if s.DistanceM != nil && s.heard() && (out == nil || *s.DistanceM > *out) {
			out = s.DistanceM
		}
	}
	return out
}

// mean is that of the values that are known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum, m.n = m.sum+*v, m.n+1
	}
}

func (m mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	return new(m.sum / float64(m.n))
}
