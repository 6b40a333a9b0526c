package metrics

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// TickHz is the rate of a timeline.
const TickHz = 10

// Ticks is how many points a timeline of a window has.
func Ticks(seconds float64) int { return max(0, int(math.Round(seconds*TickHz))+1) }

// Point is one moment of an attempt. What was not known then is absent.
type Point struct {
	S             float64  // since the window opened
	ThroughputBps *float64 // over the tick that ends here, at the receiver
	SpeedMps      *float64 // newest fresh fix of the car
	DistanceM     *float64 // of the two GPS positions
	SignalDbm     *float64 // at the receiver
	CwndSegments  *float64 // sum over the sender's data sockets
	TrueSpeedMps  *float64 // rehearsal only
}

// series is a number against the time since the window opened.
type series struct{ s, v []float64 }

func (k *series) add(s, v float64) { k.s, k.v = append(k.s, s), append(k.v, v) }

// last gives the newest value no older than maxAge at a moment.
func (k series) last(s, maxAge float64) *float64 {
	i := sort.SearchFloat64s(k.s, s+1e-9) - 1 // the moment itself counts, whatever its rounding
	if i < 0 || s-k.s[i] > maxAge {
		return nil
	}
	return &k.v[i]
}

// between interpolates; before the first value it gives nothing.
func (k series) between(s float64) (float64, bool) {
	i := sort.SearchFloat64s(k.s, s)
	switch {
	case len(k.s) == 0 || (i == 0 && k.s[0] > s):
		return 0, false
	case i == 0:
		return k.v[0], true
	case i == len(k.s):
		return k.v[i-1], true
	}
	share := (s - k.s[i-1]) / (k.s[i] - k.s[i-1])
	return k.v[i-1] + share*(k.v[i]-k.v[i-1]), true
}

// Timeline is the attempt at 10 Hz, every node's records aligned by its own
// window. Only flows that are measured count. It is empty without a window.
func (at Attempt) Timeline() []Point {
	sender, receiver := verdict.WindowOf(at.trial.Sender, at.records), verdict.WindowOf(at.trial.Receiver, at.records)
	if sender == nil && receiver == nil {
		return nil
	}
	delivered := at.perSocket(at.trial.Receiver, receiver, func(b *wire.TCPSample) float64 {
		return float64(b.BytesReceived)
	})
	cwnd := at.perSocket(at.trial.Sender, sender, func(b *wire.TCPSample) float64 { return float64(b.CwndSegments) })
	speed, signal, truth := at.speeds(), at.signals(), at.truths()
	apart, beats := at.apart(), at.beats(at.trial.Receiver, receiver)
	const fresh = verdict.FixAgeMsDefault / 1e3
	const sampled = 3.0 / TickHz // a sample may miss two ticks before it is no longer told
	out := make([]Point, 0, Ticks(at.windowSeconds()))
	for i := range Ticks(at.windowSeconds()) {
		s := float64(i) / TickHz
		distance, _ := apart(s)
		p := Point{S: s, SpeedMps: speed.last(s, fresh), DistanceM: distance, SignalDbm: signal.last(s, sampled),
			TrueSpeedMps: truth.last(s, sampled)}
		if i > 0 && beats.around(s, sampled) {
			p.ThroughputBps = new((total(delivered, s) - total(delivered, s-1.0/TickHz)) * 8 * TickHz)
		}
		p.CwndSegments = sum(cwnd, s, sampled)
		out = append(out, p)
	}
	return out
}

// beats are the moments at which a node's samplers asked, whatever the answer.
func (at Attempt) beats(node string, w *wire.Window) (out series) {
	for _, r := range at.records {
		switch r.Body.(type) {
		case *wire.TCPSample, *wire.Interface, *wire.GPS:
			if w != nil && r.Node == node {
				out.add(float64(r.TBootNs-w.OpenBootNs)/1e9, 0)
			}
		}
	}
	sort.Float64s(out.s)
	return out
}

// around reports whether there are values before and after a moment, or at it,
// no more than a gap apart: without samples on both sides a throughput is absent.
func (k series) around(s, gap float64) bool {
	const rounding = 1e-9
	i := sort.SearchFloat64s(k.s, s-rounding)
	if i == len(k.s) {
		return false
	}
	return k.s[i] <= s+rounding || i > 0 && k.s[i]-k.s[i-1] <= gap+rounding
}

// perSocket gives a number of each data socket of the measured flows over time.
func (at Attempt) perSocket(node string, w *wire.Window, number func(*wire.TCPSample) float64) []*series {
	var out []*series // in the order of their first samples, so that sums are the same each time
	if w == nil {
		return nil
	}
	known := map[uint64]*series{}
	measured := map[string]bool{}
	for _, f := range at.trial.Traffic {
		measured[f.Name] = !f.Background
	}
	for _, r := range at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.Node != node || b.Stream == nil || !measured[b.Flow] {
			continue
		}
		if known[b.Cookie] == nil {
			known[b.Cookie] = &series{}
			out = append(out, known[b.Cookie])
		}
		k, s := known[b.Cookie], float64(r.TBootNs-w.OpenBootNs)/1e9
		if n := len(k.s); n > 0 && s <= k.s[n-1] { // a tick beside an edge: the same moment twice
			continue
		}
		k.add(s, number(b))
	}
	return out
}

// discoveryS is how long a new socket may live before the samplers find it.
const discoveryS = 1.0

// total sums the bytes of all sockets at a moment. A socket that its first
// sample shows with bytes already got them since the window opened and since
// the samplers last looked for sockets: they are spread over that time.
func total(sockets []*series, s float64) float64 {
	var out float64
	for _, k := range sockets {
		if v, ok := k.between(s); ok {
			out += v
			continue
		}
		since := max(0, k.s[0]-discoveryS)
		if k.s[0] > since && s > since {
			out += k.v[0] * (s - since) / (k.s[0] - since)
		}
	}
	return out
}

// sum adds the sockets' newest values; absent when no socket has one.
func sum(sockets []*series, s, maxAge float64) *float64 {
	var out *float64
	for _, k := range sockets {
		if v := k.last(s, maxAge); v != nil {
			if out == nil {
				out = new(0.0)
			}
			*out += *v
		}
	}
	return out
}

func (at Attempt) speeds() series {
	var out series
	w := verdict.WindowOf(at.trial.Car, at.records)
	if at.trial.Car == "" || w == nil {
		return out
	}
	for _, f := range verdict.Fixes(at.trial.Car, at.records) {
		if f.SpeedMps != nil {
			out.add(float64(f.BootNs-w.OpenBootNs)/1e9, *f.SpeedMps)
		}
	}
	return out
}

func (at Attempt) signals() series {
	var out series
	w := verdict.WindowOf(at.trial.Receiver, at.records)
	mac := at.mac(at.trial.Sender)
	for _, r := range at.records {
		b, ok := r.Body.(*wire.Station)
		if !ok || w == nil || r.Node != at.trial.Receiver || (mac != "" && b.Peer != mac) {
			continue
		}
		if dbm := signalNow(b); dbm != nil {
			out.add(float64(r.TBootNs-w.OpenBootNs)/1e9, *dbm)
		}
	}
	return out
}

func (at Attempt) truths() series {
	var out series
	w := at.fieldWindow()
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Truth); ok && w != nil && b.Of == at.trial.Car {
			out.add(float64(r.TBootNs-w.OpenBootNs)/1e9, b.SpeedMps)
		}
	}
	return out
}

// timelineTable writes timelines as CSV, one after the other; nil writes none.
type timelineTable struct {
	csv *csv.Writer
	run string
}

func newTimelineTable(w io.Writer, run string) (*timelineTable, error) {
	t := &timelineTable{csv: csv.NewWriter(w), run: Cell(run)}
	head := []string{"run", "trial", "attempt", "s", "throughput_bps", "speed_mps", "distance_m", "signal_dbm",
		"cwnd_segments", "truth_speed_mps"}
	if err := t.csv.Write(head); err != nil {
		return nil, fmt.Errorf("write timelines: %w", err)
	}
	return t, nil
}

func (t *timelineTable) write(k wire.TrialKey, points []Point) error {
	for _, p := range points {
		line := []string{t.run, strconv.Itoa(k.Trial), strconv.Itoa(k.Attempt), Number(p.S)}
		for _, v := range []*float64{p.ThroughputBps, p.SpeedMps, p.DistanceM, p.SignalDbm, p.CwndSegments,
			p.TrueSpeedMps} {
			line = append(line, maybe(v))
		}
		if err := t.csv.Write(line); err != nil {
			return fmt.Errorf("write timelines: %w", err)
		}
	}
	return nil
}

func (t *timelineTable) flush() error {
	if t == nil {
		return nil
	}
	t.csv.Flush()
	if err := t.csv.Error(); err != nil {
		return fmt.Errorf("write timelines: %w", err)
	}
	return nil
}

// maybe writes an absent number as an empty cell.
func maybe(v *float64) string {
	if v == nil {
		return ""
	}
	return Number(*v)
}
