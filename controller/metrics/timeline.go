package metrics

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics/series"
	"fieldmesh.dev/fieldmesh/controller/metrics/wifi"
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
	ThroughputBps *float64 // over the tick that ends here, at the ends of the measured flows
	SpeedMps      *float64 // newest fresh fix of the car
	LatDeg        *float64 // of the car
	LonDeg        *float64
	DistanceM     *float64 // of the two GPS positions
	SignalDbm     *float64 // at the receiver
	WiFiDbm       *float64 // of the access point at the car, or where none drives at the receiver; once a reading
	CwndSegments  *float64 // sum over the sender's data sockets
	TrueSpeedMps  *float64 // rehearsal only
}

// Timeline is the attempt at 10 Hz, every node's records aligned by its own
// window. Only flows that are measured count. It is empty without a window.
func (at Attempt) Timeline() []Point {
	mac := at.macs()[at.trial.Sender] // by the records of relays, too
	at.records = at.beyondRelays()
	sender, receiver := verdict.WindowOf(at.trial.Sender, at.records), verdict.WindowOf(at.trial.Receiver, at.records)
	if sender == nil && receiver == nil {
		return nil
	}
	cwnd := at.perSocket(at.trial.Sender, sender, true, func(f wire.Flow) string { return f.From },
		func(b *wire.TCPSample) float64 { return float64(b.CwndSegments) })
	air := wifi.Signals(cmp.Or(at.trial.Car, at.trial.Receiver), at.records)
	speed, signal, truth := at.speeds(), at.signals(mac), at.truths()
	apart, received, car := at.apart(), at.received(), at.track(at.trial.Car)
	const fresh = verdict.FixAgeMsDefault / 1e3
	const sampled = 3.0 / TickHz // a sample may miss two ticks before it is no longer told
	out := make([]Point, 0, Ticks(at.windowSeconds()))
	for i := range Ticks(at.windowSeconds()) {
		s := float64(i) / TickHz
		distance, _ := apart(s)
		p := Point{S: s, SpeedMps: speed.Last(s, fresh), DistanceM: distance, SignalDbm: signal.Last(s, sampled),
			WiFiDbm: air.Last(s, 1.0/TickHz-1e-6), TrueSpeedMps: truth.Last(s, sampled)}
		if i > 0 {
			p.ThroughputBps = received(s, sampled)
		}
		if place, known := car.Place(s); known {
			p.LatDeg, p.LonDeg = &place.Lat, &place.Lon
		}
		p.CwndSegments = sum(cwnd, s, sampled)
		out = append(out, p)
	}
	return out
}

// beyondRelays are the records of nodes that do more than relay, and the field's, each node's in their order. Of
// relays there may be hundreds.
func (at Attempt) beyondRelays() []wire.Record {
	byNode := at.ByNode()
	maps.DeleteFunc(byNode, func(node string, _ []wire.Record) bool {
		return node != archive.FieldNode && at.trial.OnlyRelays(node)
	})
	return slices.Concat(slices.Collect(maps.Values(byNode))...)
}

// received returns the throughput of all measured flows over the tick that ends at a moment, each at its own end;
// absent where there is no such flow, or one's end was not looked at for longer than a gap.
func (at Attempt) received() func(s, gap float64) *float64 {
	ends := map[string][]*series.Series{}
	looked := map[string]func(s, gap float64) bool{}
	for _, f := range at.trial.Measured() {
		w := verdict.WindowOf(f.To, at.records)
		ends[f.To] = at.perSocket(f.To, w, false, func(f wire.Flow) string { return f.To },
			func(b *wire.TCPSample) float64 { return float64(b.BytesReceived) })
		looked[f.To] = at.looked(f.To, ends[f.To], w)
	}
	return func(s, gap float64) *float64 {
		var bytes *float64
		for _, node := range slices.Sorted(maps.Keys(ends)) { // sums must come out the same each time
			if !looked[node](s, gap) {
				return nil
			}
			if bytes == nil {
				bytes = new(0.0)
			}
			*bytes += total(ends[node], s) - total(ends[node], s-1.0/TickHz)
		}
		if bytes != nil {
			*bytes = *bytes * 8 * TickHz
		}
		return bytes
	}
}

// looked returns a function that reports whether samples of all a receiver's sockets that live at a
// moment are around it, no more than a gap apart; where none lives, whether its samplers asked then.
// A socket lives from its first sample until the kernel reports its end, or the window is over.
func (at Attempt) looked(node string, sockets []*series.Series, w *wire.Window) func(s, gap float64) bool {
	beats := at.beats(node, w)
	return func(s, gap float64) bool {
		lives := false
		for _, k := range sockets {
			last := k.S[len(k.S)-1]
			switch {
			case s < k.S[0] || s > last && (k.Closed || last >= float64(w.CloseBootNs-w.OpenBootNs)/1e9):
				continue
			case !k.Around(s, gap):
				return false
			}
			lives = true
		}
		return lives || beats.Around(s, gap)
	}
}

// beats are the moments at which a node's samplers asked, whatever the answer.
func (at Attempt) beats(node string, w *wire.Window) (out series.Series) {
	for _, r := range at.records {
		switch r.Body.(type) {
		case *wire.TCPSample, *wire.Interface, *wire.GPS:
			if w != nil && r.Node == node {
				out.Add(float64(r.TBootNs-w.OpenBootNs)/1e9, 0)
			}
		}
	}
	sort.Float64s(out.S)
	return out
}

// perSocket gives a number of each data socket over time, or over that of its connection, of the measured flows of
// which a node is that end.
func (at Attempt) perSocket(node string, w *wire.Window, connected bool, end func(wire.Flow) string,
	number func(*wire.TCPSample) float64) []*series.Series {
	var out []*series.Series // in the order of their first samples, so that sums are the same each time
	if w == nil {
		return nil
	}
	known := map[uint64]*series.Series{}
	measured := map[string]bool{}
	for _, f := range at.trial.Measured() {
		measured[f.Name] = end(f) == node
	}
	for _, r := range at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.Node != node || b.Stream == nil || !measured[b.Flow] || connected && b.Unconnected() {
			continue
		}
		if known[b.Cookie] == nil {
			known[b.Cookie] = &series.Series{}
			out = append(out, known[b.Cookie])
		}
		k, s := known[b.Cookie], float64(r.TBootNs-w.OpenBootNs)/1e9
		k.Closed = k.Closed || b.State == "CLOSE"
		if n := len(k.S); n > 0 && s <= k.S[n-1] { // a tick beside an edge: the same moment twice
			continue
		}
		k.Add(s, number(b))
	}
	return out
}

// discoveryS is how long a new socket may live before the samplers find it.
const discoveryS = 1.0

// total sums the bytes of all sockets at a moment. A socket that its first
// sample shows with bytes already got them since the window opened and since
// the samplers last looked for sockets: they are spread over that time.
func total(sockets []*series.Series, s float64) float64 {
	var out float64
	for _, k := range sockets {
		if v, ok := k.Between(s); ok {
			out += v
			continue
		}
		since := max(0, k.S[0]-discoveryS)
		if k.S[0] > since && s > since {
			out += k.V[0] * (s - since) / (k.S[0] - since)
		}
	}
	return out
}

// sum adds the sockets' newest values; absent when no socket has one.
func sum(sockets []*series.Series, s, maxAge float64) *float64 {
	var out *float64
	for _, k := range sockets {
		if v := k.Last(s, maxAge); v != nil {
			if out == nil {
				out = new(0.0)
			}
			*out += *v
		}
	}
	return out
}

func (at Attempt) speeds() series.Series {
	var out series.Series
	w := verdict.WindowOf(at.trial.Car, at.records)
	if at.trial.Car == "" || w == nil {
		return out
	}
	for _, f := range verdict.Fixes(at.trial.Car, at.records) {
		if f.SpeedMps != nil {
			out.Add(float64(f.BootNs-w.OpenBootNs)/1e9, *f.SpeedMps)
		}
	}
	return out
}

func (at Attempt) signals(mac string) series.Series {
	var out series.Series
	w := verdict.WindowOf(at.trial.Receiver, at.records)
	for _, r := range at.records {
		b, ok := r.Body.(*wire.Station)
		if !ok || w == nil || r.Node != at.trial.Receiver || b.Peer != mac {
			continue
		}
		if dbm := b.SignalNow(); dbm != nil {
			out.Add(float64(r.TBootNs-w.OpenBootNs)/1e9, *dbm)
		}
	}
	return out
}

func (at Attempt) truths() series.Series {
	var out series.Series
	w := at.fieldWindow()
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Truth); ok && w != nil && b.Of == at.trial.Car {
			out.Add(float64(r.TBootNs-w.OpenBootNs)/1e9, b.SpeedMps)
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
		"cwnd_segments", "truth_speed_mps", "wifi_signal_dbm"}
	if err := t.csv.Write(head); err != nil {
		return nil, fmt.Errorf("write timelines: %w", err)
	}
	return t, nil
}

func (t *timelineTable) write(k wire.TrialKey, points []Point) error {
	for _, p := range points {
		line := []string{t.run, strconv.Itoa(k.Trial), strconv.Itoa(k.Attempt), Number(p.S)}
		for _, v := range []*float64{p.ThroughputBps, p.SpeedMps, p.DistanceM, p.SignalDbm, p.CwndSegments,
			p.TrueSpeedMps, p.WiFiDbm} {
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
