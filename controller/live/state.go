package live

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Bounds of what a viewer is sent every second, however large the run is.
const (
	recentMax      = 12   // decided attempts
	trackPointsMax = 500  // of an end of the trial
	relayPointsMax = 2000 // of all relays together, but
	relayPointsMin = 10   // of each
	momentsMax     = 1200 // of the timeline: two minutes at 10 Hz, and longer windows in coarser steps
	eventsMax      = 50   // the newest
)

// State is what a viewer sees at one moment. What is not known is absent.
type State struct {
	Run      string    `json:"run"`
	Campaign string    `json:"campaign"`
	Place    string    `json:"place"`
	Trials   int       `json:"trials"`
	Done     Counts    `json:"done"`
	Recent   []Decided `json:"recent"` // newest first
	Current  *Current  `json:"current,omitempty"`
}

// Counts are of trials but for the last three, which are of attempts.
type Counts struct {
	Accepted    int `json:"accepted"`
	Rejected    int `json:"rejected"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
}

// Decided is an attempt that the controller judged.
type Decided struct {
	Trial   int               `json:"trial"`
	Attempt int               `json:"attempt"`
	Factors map[string]string `json:"factors,omitempty"`
	Outcome wire.Outcome      `json:"outcome"`
	Reason  wire.Reason       `json:"reason,omitzero"`
}

// Current is the attempt whose records came last.
type Current struct {
	Trial     int               `json:"trial"`
	Attempt   int               `json:"attempt"`
	Factors   map[string]string `json:"factors,omitempty"`
	Sender    string            `json:"sender"`
	Receiver  string            `json:"receiver"`
	Car       string            `json:"car,omitempty"`
	DurationS float64           `json:"duration_s"`
	TargetMps *float64          `json:"target_mps,omitempty"`
	BandMps   *float64          `json:"band_mps,omitempty"` // half width of the band round the target
	Outcome   wire.Outcome      `json:"outcome,omitempty"`
	Nodes     []Node            `json:"nodes"`
	StepS     float64           `json:"step_s"`   // from a moment of the timeline to the next
	Timeline  []Moment          `json:"timeline"` // since the window opened
	Events    []Mark            `json:"events,omitempty"`
}

// Node is one node of the attempt as its newest records tell.
type Node struct {
	Name       string      `json:"name"`
	State      wire.State  `json:"state,omitempty"` // of its trial
	GPSMode    *int        `json:"gps_mode,omitempty"`
	FixAgeMs   *float64    `json:"fix_age_ms,omitempty"`
	SpeedMps   *float64    `json:"speed_mps,omitempty"` // of its newest fix, not older than a fix may be
	Congestion string      `json:"congestion,omitempty"`
	RTTMs      *float64    `json:"rtt_ms,omitempty"` // mean of its data sockets' newest samples
	RetransN   *uint64     `json:"retransmits,omitempty"`
	Track      [][]float64 `json:"track,omitempty"` // latitude, longitude, seconds since the window opened
}

// Moment is one point of the timeline.
type Moment struct {
	S      float64  `json:"s"`
	Bps    *float64 `json:"bps,omitempty"`
	Mps    *float64 `json:"mps,omitempty"`
	Dbm    *float64 `json:"dbm,omitempty"`
	Cwnd   *float64 `json:"cwnd,omitempty"`
	Metres *float64 `json:"m,omitempty"`
}

// Mark is something that happened at a node.
type Mark struct {
	S    *float64 `json:"s,omitempty"` // since the node's window opened; absent before
	Node string   `json:"node"`
	Text string   `json:"text"`
}

// reach is how far an archive has come: two states of the same reach are equal.
type reach struct {
	latest  wire.TrialKey // the attempt whose records came last
	written time.Time     // when the newest of them came; zero: none yet
	decided int
}

func reachOf(a *archive.Archive) reach {
	r := reach{decided: len(a.Decisions())}
	r.latest, r.written, _ = a.Latest()
	return r
}

// stateOf is a run as its archive tells so far.
func stateOf(a *archive.Archive, at reach, tail *archive.Tail) (State, error) {
	info := a.Info()
	s := State{Run: info.Run, Campaign: info.Campaign, Place: info.Place}
	for _, t := range info.Plan.Trials {
		if a.Drives(t) {
			s.Trials++
		}
	}
	decided := a.Decisions()
	s.Done, s.Recent = count(a, decided)
	if at.written.IsZero() {
		return s, nil
	}
	var err error
	s.Current, err = current(a, at.latest, decided, tail)
	return s, err
}

func count(a *archive.Archive, decided []wire.Verdict) (c Counts, recent []Decided) {
	for _, v := range decided {
		switch v.Outcome {
		case wire.Accepted:
			if t, planned := a.Trial(v.Trial); planned && a.Drives(t) { // as the trials that it is a part of
				c.Accepted++
			}
		case wire.Rejected:
			c.Rejected++
		case wire.Failed:
			c.Failed++
		case wire.Interrupted:
			c.Interrupted++
		}
	}
	for i := len(decided) - 1; i >= 0 && len(recent) < recentMax; i-- {
		v := decided[i]
		t, _ := a.Trial(v.Trial) // one that the plan lacks has no factors to show
		recent = append(recent, Decided{Trial: v.Trial, Attempt: v.Attempt, Factors: t.Factors, Outcome: v.Outcome,
			Reason: v.Reason})
	}
	return c, recent
}

func current(a *archive.Archive, k wire.TrialKey, decided []wire.Verdict, tail *archive.Tail) (*Current, error) {
	at, err := metrics.LoadNew(a, k, tail)
	if err != nil {
		return nil, fmt.Errorf("look at trial %d, attempt %d: %w", k.Trial, k.Attempt, err)
	}
	t, _ := a.Trial(k.Trial) // Load found it
	c := &Current{
		Trial: k.Trial, Attempt: k.Attempt, Factors: t.Factors, Sender: t.Sender, Receiver: t.Receiver, Car: t.Car,
		Timeline: []Moment{}, DurationS: t.DurationS, TargetMps: t.SpeedMps, BandMps: t.Acceptance.SpeedBandMps,
	}
	for _, v := range decided {
		if v.TrialKey == k {
			c.Outcome = v.Outcome
		}
	}
	for _, p := range at.Timeline() {
		c.Timeline = append(c.Timeline, Moment{S: p.S, Bps: p.ThroughputBps, Mps: p.SpeedMps, Dbm: p.SignalDbm,
			Cwnd: p.CwndSegments, Metres: p.DistanceM})
	}
	step := (metrics.Ticks(t.DurationS) + momentsMax - 1) / momentsMax
	c.Timeline, c.StepS = coarser(untilNow(c.Timeline), step), float64(step)/metrics.TickHz
	byNode := map[string][]wire.Record{}
	for _, r := range at.Records() {
		byNode[r.Node] = append(byNode[r.Node], r)
	}
	for _, name := range t.Nodes() {
		n, marks := nodeNow(name, byNode[name])
		most := trackPointsMax
		if slices.Contains(t.Relays, name) {
			most = min(most, max(relayPointsMax/len(t.Relays), relayPointsMin))
		}
		n.Track = thin(n.Track, most)
		c.Nodes, c.Events = append(c.Nodes, n), append(c.Events, marks...)
	}
	c.Events = c.Events[max(len(c.Events)-eventsMax, 0):]
	return c, nil
}

// thin leaves most points at equal steps, the newest among them.
func thin(track [][]float64, most int) [][]float64 {
	step := (len(track) + most - 1) / most
	if step <= 1 {
		return track
	}
	var out [][]float64
	for i := (len(track) - 1) % step; i < len(track); i += step {
		out = append(out, track[i])
	}
	return out
}

// untilNow cuts the part of a timeline that has not happened: its end, where
// nothing is known.
func untilNow(points []Moment) []Moment {
	n := len(points)
	for n > 0 && points[n-1].Bps == nil && points[n-1].Mps == nil && points[n-1].Dbm == nil && points[n-1].Cwnd == nil {
		n--
	}
	return points[:n]
}

// coarser leaves the last of each step moments, with the mean of their throughput.
func coarser(points []Moment, step int) []Moment {
	out := points[:0]
	for some := range slices.Chunk(points, step) {
		m, sum, known := some[len(some)-1], 0.0, 0
		for _, p := range some {
			if p.Bps != nil {
				sum, known = sum+*p.Bps, known+1
			}
		}
		if m.Bps = nil; known > 0 {
			m.Bps = new(sum / float64(known))
		}
		out = append(out, m)
	}
	return out
}

// nodeNow is a node as its own records tell so far, and what happened at it.
func nodeNow(name string, records []wire.Record) (Node, []Mark) {
	n := Node{Name: name}
	var marks []Mark
	w := verdict.WindowOf(name, records)
	sockets := map[uint64]*wire.TCPSample{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.TrialState:
			n.State = b.State
		case *wire.GPS:
			n.seeGPS(b, r.TBootNs, w)
		case *wire.TCPSample:
			if b.Stream != nil {
				sockets[b.Cookie] = b
			}
		case *wire.Event:
			marks = append(marks, Mark{S: since(w, r.TBootNs), Node: name, Text: b.Text})
		}
	}
	n.seeSockets(sockets)
	return n, marks
}

func since(w *wire.Window, bootNs int64) *float64 {
	if w == nil {
		return nil
	}
	return new(float64(bootNs-w.OpenBootNs) / 1e9)
}

func (n *Node) seeGPS(g *wire.GPS, bootNs int64, w *wire.Window) {
	n.GPSMode, n.FixAgeMs = &g.Mode, g.FixAgeMs
	switch {
	case g.SpeedMps != nil:
		n.SpeedMps = g.SpeedMps
	case g.FixAgeMs == nil || *g.FixAgeMs > verdict.FixAgeMsDefault:
		n.SpeedMps = nil // too old to be shown as a speed
	}
	if g.LatDeg == nil || g.LonDeg == nil {
		return
	}
	at := []float64{rounded(*g.LatDeg, 1e7), rounded(*g.LonDeg, 1e7)} // to a centimetre
	if s := since(w, bootNs); s != nil {
		at = append(at, rounded(*s, 100))
	}
	n.Track = append(n.Track, at)
}

func rounded(v, parts float64) float64 { return math.Round(v*parts) / parts }

func (n *Node) seeSockets(sockets map[uint64]*wire.TCPSample) {
	var rttMs float64
	var measured int
	var retransmits uint64
	for _, b := range sockets {
		n.Congestion = b.Congestion
		retransmits += uint64(b.Retransmits)
		if b.RTTUs > 0 {
			rttMs += float64(b.RTTUs) / 1e3
			measured++
		}
	}
	if len(sockets) > 0 {
		n.RetransN = &retransmits
	}
	if measured > 0 {
		n.RTTMs = new(rttMs / float64(measured))
	}
}
