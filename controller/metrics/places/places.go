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
	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Second is one second of a window. What was not known then is absent.
type Second struct {
	wire.TrialKey
	S             int      // since the window opened, at its begin
	TimeUTC       string   // by the receiver; empty: the place is not of a fix
	LatDeg        *float64 // of the fix nearest to its middle, or between fixes
	LonDeg        *float64
	DistanceM     *float64 // of car and roadside node
	SpeedMps      *float64
	SignalDbm     *float64 // at the receiver
	WiFiDbm       *float64 // of the access point's frames at the car, as Android told it
	ThroughputBps *float64 // at the receiver
	// Sent are the datagrams that were due in it and whose answer was waited for to the
	// end, Lost those of them without one; of flows of kind delay.
	Sent, Lost int
	// Answers are those that came in it, whenever their datagrams were due: a kernel keeps a
	// datagram for seconds that it cannot send yet.
	Answers int
	// Outcome is the attempt's, and Counts is 1 where that is a result and else 0; both are empty while
	// it is not judged.
	Outcome, Counts string
	// moments in which they are known
	speeds, signals, airs, throughputs int
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
	return s.ThroughputBps != nil && *s.ThroughputBps > 0 || s.Answers > 0
}

func (s Second) empty() bool {
	return s.LatDeg == nil && s.SpeedMps == nil && s.SignalDbm == nil && s.WiFiDbm == nil && s.ThroughputBps == nil &&
		s.Sent == 0
}

// Log is the whole of it.
type Log struct {
	Run     string
	Seconds []Second // in the order of the schedule
	// where the roadside node was last, by its fixes or else by the campaign
	RoadsideLatDeg, RoadsideLonDeg *float64
}

// Of reads a run's log.
func Of(a *archive.Archive) (Log, error) {
	out := Log{Run: a.Info().Run}
	for part, err := range inorder.Read(a, func(at archive.Attempt) (Log, error) { return ofAttempt(a, at) }) {
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
func ofAttempt(a *archive.Archive, judged archive.Attempt) (out Log, err error) {
	k := judged.TrialKey
	t, planned := a.Trial(k.Trial)
	if !planned || t.Car == "" {
		return out, nil
	}
	outcome, counts := "", ""
	if v := judged.Verdict; v != nil {
		outcome, counts = string(v.Outcome), "0"
		if archive.Counts(t, v, a.Stopped()) {
			counts = "1"
		}
	}
	at, err := metrics.Load(a, k)
	if err != nil {
		return out, err
	}
	at = withoutStrays(at)
	points := at.Timeline()
	seconds := make([]Second, (len(points)+metrics.TickHz-2)/metrics.TickHz)
	for s := range seconds {
		seconds[s] = secondOf(k, s, points[s*metrics.TickHz:min((s+1)*metrics.TickHz+1, len(points))])
		seconds[s].Outcome, seconds[s].Counts = outcome, counts
	}
	byNode := at.ByNode()
	countDatagrams(seconds, at.Trial(), byNode)
	goByFixes(seconds, at.Trial().Car, byNode)
	out.Seconds = slices.DeleteFunc(seconds, Second.empty)
	out.RoadsideLatDeg, out.RoadsideLonDeg = at.Site()
	for _, f := range verdict.Fixes(at.Trial().Roadside, byNode[at.Trial().Roadside]) {
		if f.LatDeg != nil && f.LonDeg != nil {
			out.RoadsideLatDeg, out.RoadsideLonDeg = f.LatDeg, f.LonDeg
		}
	}
	return out, nil
}

// strayMps is a speed that no car reaches, 360 km/h: a fix that lies farther than that from
// both the one before and the one after is the receiver's error.
const strayMps = 100.0

// withoutStrays is an attempt without the places of stray fixes. A single one would decide
// what was farthest, and the length of the stretches.
func withoutStrays(at metrics.Attempt) metrics.Attempt {
	stray := map[string]map[int64]bool{}
	for _, node := range []string{at.Trial().Car, at.Trial().Roadside} {
		stray[node] = straysOf(verdict.Fixes(node, at.Records()))
	}
	records := slices.Clone(at.Records())
	for i, r := range records {
		if g, is := r.Body.(*wire.GPS); is && g.FixBootNs != nil && stray[r.Node][*g.FixBootNs] {
			placeless := *g
			placeless.LatDeg, placeless.LonDeg = nil, nil
			records[i].Body = &placeless
		}
	}
	return at.With(records)
}

// straysOf are the moments of fixes that nobody could have reached from the one before, nor
// left for the next. At an end it goes by the neighbour that its other neighbour vouches for.
func straysOf(fixes []verdict.Fix) map[int64]bool {
	fixes = slices.DeleteFunc(fixes, func(f verdict.Fix) bool { return f.LatDeg == nil || f.LonDeg == nil })
	far := func(i int) bool { // from the one before
		a, b := fixes[i-1], fixes[i]
		// Fixes may come in one burst; nobody jumps within a second either.
		seconds := max(1, float64(b.BootNs-a.BootNs)/1e9)
		return track.HaversineM(*a.LatDeg, *a.LonDeg, *b.LatDeg, *b.LonDeg) > strayMps*seconds
	}
	out, last := map[int64]bool{}, len(fixes)-1
	for i := range fixes {
		if last >= 2 && (i == 0 && far(1) && !far(2) || i == last && far(last) && !far(last-1) ||
			i > 0 && i < last && far(i) && far(i+1)) {
			out[fixes[i].BootNs] = true
		}
	}
	return out
}

// secondOf is the mean of the moments of a second that are known. Its first moment is the
// last of the second before, whose throughput ends there; its place is that of its middle.
func secondOf(k wire.TrialKey, s int, of []metrics.Point) Second {
	var distance, speed, signal, air, throughput mean
	for i, p := range of {
		if i > 0 {
			throughput.add(p.ThroughputBps, 1)
		}
		if i < metrics.TickHz {
			distance.add(p.DistanceM, 1)
			speed.add(p.SpeedMps, 1)
			signal.add(p.SignalDbm, 1)
			air.add(p.WiFiDbm, 1)
		}
	}
	middle := of[len(of)/2]
	return Second{TrialKey: k, S: s, LatDeg: middle.LatDeg, LonDeg: middle.LonDeg, DistanceM: distance.value(),
		SpeedMps: speed.value(), SignalDbm: signal.value(), WiFiDbm: air.value(),
		ThroughputBps: throughput.value(), speeds: speed.n, signals: signal.n, airs: air.n, throughputs: throughput.n}
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
		second := func(bootNs int64) *Second { // nil: outside the window
			if s := int(math.Floor(float64(bootNs-w.OpenBootNs) / 1e9)); s >= 0 && s < len(seconds) {
				return &seconds[s]
			}
			return nil
		}
		for _, d := range all {
			answered := d.ReceivedBootNs != nil && *d.ReceivedBootNs-*d.HandedBootNs <= wire.DelayGrace.Nanoseconds()
			if answered {
				if s := second(*d.ReceivedBootNs); s != nil {
					s.Answers++
				}
			}
			s := second(*d.DueBootNs)
			if s == nil || *d.HandedBootNs > over {
				continue
			}
			s.Sent++
			if !answered {
				s.Lost++
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

// goByFixes gives each second the place and the receiver's time of the fix nearest to its middle.
func goByFixes(seconds []Second, car string, byNode map[string][]wire.Record) {
	w := verdict.WindowOf(car, byNode[car])
	if w == nil {
		return
	}
	nearest := make([]float64, len(seconds))
	for _, r := range byNode[car] {
		g, is := r.Body.(*wire.GPS)
		if !is || g.FixBootNs == nil || g.LatDeg == nil || g.LonDeg == nil || g.TimeUTC == "" {
			continue
		}
		s, within := math.Modf(float64(*g.FixBootNs-w.OpenBootNs) / 1e9)
		i, near := int(s), 1-math.Abs(within-0.5)
		if within < 0 || i < 0 || i >= len(seconds) || near <= nearest[i] {
			continue
		}
		nearest[i] = near
		seconds[i].TimeUTC, seconds[i].LatDeg, seconds[i].LonDeg = g.TimeUTC, g.LatDeg, g.LonDeg
	}
}

// Stretch is what was measured between two distances.
type Stretch struct {
	FromM, ToM float64
	Seconds    int
	// means of the moments in which they are known, and of Android's readings
	SpeedMps, SignalDbm, WiFiDbm, ThroughputBps *float64
	Sent, Lost                                  int
}

// LostPercent is the share of Lost in Sent; absent: there was no datagram.
func (s Stretch) LostPercent() *float64 { return percent(s.Sent, s.Lost) }

const (
	stretchesMost = 15
	shortestM     = 10.0 // of a stretch
)

// ByDistance is the log by distance in at most fifteen stretches of one length, nearest first:
// 10, 20, 50, 100 m and so on. Those in which the car never was are left out.
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
	step, longer := shortestM, []float64{2, 2.5, 2}
	for i := 0; farthest >= step*stretchesMost; i++ {
		step *= longer[i%len(longer)]
	}
	type means struct{ speed, signal, air, throughput mean }
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
		of[i].speed.add(s.SpeedMps, s.speeds)
		of[i].signal.add(s.SignalDbm, s.signals)
		of[i].air.add(s.WiFiDbm, s.airs)
		of[i].throughput.add(s.ThroughputBps, s.throughputs)
	}
	var out []Stretch
	for i, s := range stretches {
		if s.Seconds == 0 {
			continue
		}
		s.FromM, s.ToM = float64(i)*step, float64(i+1)*step
		s.SpeedMps, s.SignalDbm, s.WiFiDbm = of[i].speed.value(), of[i].signal.value(), of[i].air.value()
		s.ThroughputBps = of[i].throughput.value()
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

// add adds a value that is that of so many moments.
func (m *mean) add(v *float64, moments int) {
	if v != nil {
		m.sum, m.n = m.sum+*v*float64(moments), m.n+moments
	}
}

func (m mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	return new(m.sum / float64(m.n))
}
