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
	trackPointsMax = 500  // of an end of the trial
	relayPointsMax = 2000 // of all relays together, but
	relayPointsMin = 10   // of each
	momentsMax     = 1200 // of the timeline: two minutes at 10 Hz, and longer windows in coarser steps
	eventsMax      = 50   // the newest
)

// quietS is for how many seconds a node that is in reach may seem silent. It makes a record at least once in a second,
// and is then left alone for a second, or, of many nodes, for as long as it takes to ask them at fifty a second
// (waitingRest and answersPerS of package run). The third second is for a segment that is sent again (RFC 6298, 2.1).
func quietS(nodes int) float64 { return 2 + max(1, float64(nodes)/50) }

// State is what a viewer sees at one moment. What is not known is absent.
type State struct {
	Run      string   `json:"run"`
	Campaign string   `json:"campaign"`
	Place    string   `json:"place"`
	Trials   int      `json:"trials"`
	Over     bool     `json:"over,omitempty"` // every trial is accepted or given up
	Done     Counts   `json:"done"`
	Left     *Left    `json:"left,omitempty"`
	Next     *Next    `json:"next,omitempty"`
	Current  *Current `json:"current,omitempty"`
}

// Counts are of trials but for the last three, which are of attempts.
type Counts struct {
	Accepted    int `json:"accepted"`
	Rejected    int `json:"rejected"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
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
	HoldS     float64           `json:"hold_s,omitempty"`   // how long the speed has to be in it
	Pass      string            `json:"pass,omitempty"`
	Direction string            `json:"direction,omitempty"`
	Phase     Phase             `json:"phase,omitempty"`
	PhaseOf   string            `json:"phase_of,omitempty"`  // the node that tells the phase
	ElapsedS  *float64          `json:"elapsed_s,omitempty"` // of the window, when the newest record of any node came
	QuietS    float64           `json:"quiet_s"`             // for how long a node in reach may seem silent
	Unasked   bool              `json:"unasked,omitempty"`   // no node is asked for records while a window is open
	Outcome   wire.Outcome      `json:"outcome,omitempty"`
	Reason    wire.Reason       `json:"reason,omitzero"`
	Nodes     []Node            `json:"nodes"`
	StepS     float64           `json:"step_s"`   // from a moment of the timeline to the next
	Timeline  []Moment          `json:"timeline"` // since the window opened
	Events    []Mark            `json:"events,omitempty"`
}

// Phase is how far an attempt has come.
type Phase string

// The phases in their order. In each but the last the next may have come already, and its records not yet.
const (
	PhaseArming   Phase = "arming"
	PhaseArmed    Phase = "armed"    // its gate has not opened
	PhaseRunning  Phase = "running"  // its window is open
	PhaseDraining Phase = "draining" // the flows end, and what the trial changed is put back
	PhaseKept     Phase = "kept"     // records are collected, and judged
	PhaseJudged   Phase = "judged"
)

// Node is one node of the attempt as its newest records tell.
type Node struct {
	Name string `json:"name"`
	// by how much its newest record is older than the newest of all nodes; absent: none came, the run is over, or its
	// time is virtual
	BehindS    *float64    `json:"behind_s,omitempty"`
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
	latest   wire.TrialKey // the attempt whose records came last
	written  time.Time     // when the newest of them came; zero: none yet
	decided  decided
	recorded int64 // bytes of the accepted attempts' records, to which late ones are added
}

// decided is how far a run's decisions have come: a person's word over one is another outcome.
type decided struct {
	counts  Counts
	stopped bool
}

func reachOf(a *archive.Archive) reach {
	decisions := a.Decisions()
	r := reach{decided: decided{count(a, decisions), a.Stopped() != nil}}
	r.latest, r.written, _ = a.Latest()
	for _, v := range decisions {
		if v.Outcome == wire.Accepted {
			bytes, _ := a.Recorded(v.TrialKey) // where it fails, the results do, and say why
			r.recorded += bytes
		}
	}
	return r
}

// stateOf is a run as its archive tells so far.
func stateOf(a *archive.Archive, at reach, tail *archive.Tail) (State, error) {
	info := a.Info()
	decided := a.Decisions()
	p := plannedOf(a, decided)
	s := State{Run: info.Run, Campaign: info.Campaign, Place: info.Place, Trials: p.total,
		Over: p.total > 0 && p.decided == p.total, Done: count(a, decided), Next: p.next}
	if at.written.IsZero() {
		return s, nil
	}
	var err error
	if s.Left, err = leftOf(a, p, decided, at.written); err != nil {
		return s, err
	}
	written := at.written
	if s.Over || a.Finished() || a.Info().Clock.Virtual() {
		written = time.Time{} // in virtual time a node that computes for long is not out of reach
	}
	s.Current, err = current(a, at.latest, decided, tail, written)
	return s, err
}

func count(a *archive.Archive, decided []wire.Verdict) (c Counts) {
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
	return c
}

// current is an attempt as its records tell. written is when the newest of them came; zero: how old they are does not
// matter.
func current(a *archive.Archive, k wire.TrialKey, decided []wire.Verdict, tail *archive.Tail,
	written time.Time) (*Current, error) {

	t, planned := a.Trial(k.Trial)
	if !planned {
		return nil, fmt.Errorf("look at trial %d, attempt %d: the plan has no such trial", k.Trial, k.Attempt)
	}
	tail.Wants = shows(t)
	at, err := metrics.LoadNew(a, k, tail)
	if err != nil {
		return nil, fmt.Errorf("look at trial %d, attempt %d: %w", k.Trial, k.Attempt, err)
	}
	c := &Current{
		Trial: k.Trial, Attempt: k.Attempt, Factors: t.Factors, Sender: t.Sender, Receiver: t.Receiver, Car: t.Car,
		Timeline: []Moment{}, DurationS: t.DurationS, TargetMps: t.SpeedMps, BandMps: t.Acceptance.SpeedBandMps,
		Pass: t.Pass, Direction: t.Direction, QuietS: quietS(len(a.Info().Plan.Nodes)),
		Unasked: a.Info().Plan.Control == wire.ControlMesh,
	}
	if t.Gate.SpeedBand {
		c.HoldS = t.Gate.HoldS
	}
	for _, v := range decided {
		if v.TrialKey == k {
			c.Outcome, c.Reason = v.Outcome, v.Reason
		}
	}
	for _, p := range at.Timeline() {
		c.Timeline = append(c.Timeline, Moment{S: p.S, Bps: p.ThroughputBps, Mps: p.SpeedMps, Dbm: p.SignalDbm,
			Cwnd: p.CwndSegments, Metres: p.DistanceM})
	}
	step := (metrics.Ticks(t.DurationS) + momentsMax - 1) / momentsMax
	c.Timeline, c.StepS = coarser(untilNow(c.Timeline), step), float64(step)/metrics.TickHz
	byNode := at.ByNode()
	for _, name := range t.Nodes() {
		most := trackPointsMax
		if slices.Contains(t.Relays, name) {
			most = min(most, max(relayPointsMax/len(t.Relays), relayPointsMin))
		}
		n, marks := nodeNow(name, byNode[name], most)
		c.Nodes, c.Events = append(c.Nodes, n), append(c.Events, marks...)
	}
	c.Events = c.Events[max(len(c.Events)-eventsMax, 0):]
	if !written.IsZero() {
		setBehind(c.Nodes, byNode, tail.Heard(), written)
	}
	c.seePhase(t, byNode)
	return c, nil
}

// setBehind tells by how much each node's newest record is older than the newest of all, which came when written says.
// A node that is in reach again sends old records at once: where windows make the nodes' clocks one, when a record was
// made counts as well.
func setBehind(nodes []Node, byNode map[string][]wire.Record, heard map[string]time.Time, written time.Time) {
	madeS := map[string]float64{}
	newestS := 0.0
	for _, n := range nodes {
		if w := verdict.WindowOf(n.Name, byNode[n.Name]); w != nil {
			madeS[n.Name] = newestIn(*w, byNode[n.Name])
			newestS = max(newestS, madeS[n.Name])
		}
	}
	for i, n := range nodes {
		came, any := heard[n.Name]
		if !any || len(byNode[n.Name]) == 0 {
			continue
		}
		behindS := max(0, written.Sub(came).Seconds())
		if s, windowed := madeS[n.Name]; windowed {
			behindS = max(behindS, newestS-s)
		}
		nodes[i].BehindS = new(rounded(behindS, 100))
	}
}

// newestIn is how many seconds of a window were over when its node's newest record was made.
func newestIn(w wire.Window, records []wire.Record) float64 {
	newest := w.OpenBootNs
	for _, r := range records {
		newest = max(newest, r.TBootNs)
	}
	return float64(newest-w.OpenBootNs) / 1e9
}

// shows returns a function that reports whether a record is shown of an attempt, or a number that is shown is made
// of it. Of nodes that only relay there may be hundreds, and of each its state, places and events are.
func shows(t wire.Trial) func(wire.Record) bool {
	return func(r wire.Record) bool {
		switch b := r.Body.(type) {
		case *wire.TrialState, *wire.Window, *wire.GPS, *wire.Event:
			return true
		case *wire.Truth:
			return b.Of == t.Car
		}
		return !t.OnlyRelays(r.Node)
	}
}

// seePhase tells how far an attempt has come, by the node whose gate opens the window or, while nothing is known
// of it, by another, and how much of the window was over when the newest record of any node came.
func (c *Current) seePhase(t wire.Trial, byNode map[string][]wire.Record) {
	if c.Outcome != "" {
		c.Phase = PhaseJudged
		return
	}
	known := slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool { return n.State == "" })
	if len(known) == 0 {
		return
	}
	n := slices.MinFunc(known, func(x, y Node) int { return rank(t, x) - rank(t, y) })
	c.PhaseOf = n.Name
	w := verdict.WindowOf(n.Name, byNode[n.Name])
	switch {
	case n.State == wire.StateKept:
		c.Phase = PhaseKept
	case n.State == wire.StateRestoring:
		c.Phase = PhaseDraining
	case w == nil && n.State == wire.StateLoaded:
		c.Phase = PhaseArming
	case w == nil:
		c.Phase = PhaseArmed
	default:
		elapsedS := newestIn(*w, byNode[n.Name])
		if n.BehindS != nil {
			elapsedS += *n.BehindS
		}
		c.Phase, c.ElapsedS = PhaseRunning, new(rounded(min(elapsedS, t.DurationS), 100))
	}
}

// rank puts the node whose gate opens the window first, and relays last.
func rank(t wire.Trial, n Node) int {
	switch {
	case n.Name == t.Initiator:
		return 0
	case slices.Contains(t.Relays, n.Name):
		return 2
	}
	return 1
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

// nodeNow is a node as its own records tell so far, with most points of its track, and what happened at it.
func nodeNow(name string, records []wire.Record, most int) (Node, []Mark) {
	n := Node{Name: name}
	var marks []Mark
	places := 0
	w := verdict.WindowOf(name, records)
	sockets := map[uint64]*wire.TCPSample{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.TrialState:
			n.State = b.State
		case *wire.GPS:
			n.seeGPS(b)
			if placed(b) {
				places++
			}
		case *wire.TCPSample:
			if b.Stream != nil {
				sockets[b.Cookie] = b
			}
		case *wire.Event:
			marks = append(marks, Mark{S: since(w, r.TBootNs), Node: name, Text: b.Text})
		}
	}
	n.seeSockets(sockets)
	n.Track = track(records, w, places, most)
	return n, marks
}

func placed(g *wire.GPS) bool { return g.LatDeg != nil && g.LonDeg != nil }

// track leaves most of the places at equal steps, the newest among them.
func track(records []wire.Record, w *wire.Window, places, most int) (out [][]float64) {
	step := max((places+most-1)/most, 1)
	for _, r := range records {
		g, ok := r.Body.(*wire.GPS)
		if !ok || !placed(g) {
			continue
		}
		if places--; places%step != 0 {
			continue
		}
		at := []float64{rounded(*g.LatDeg, 1e7), rounded(*g.LonDeg, 1e7)} // to a centimetre
		if s := since(w, r.TBootNs); s != nil {
			at = append(at, rounded(*s, 100))
		}
		out = append(out, at)
	}
	return out
}

func since(w *wire.Window, bootNs int64) *float64 {
	if w == nil {
		return nil
	}
	return new(float64(bootNs-w.OpenBootNs) / 1e9)
}

func (n *Node) seeGPS(g *wire.GPS) {
	n.GPSMode, n.FixAgeMs = &g.Mode, g.FixAgeMs
	switch {
	case g.SpeedMps != nil:
		n.SpeedMps = g.SpeedMps
	case g.FixAgeMs == nil || *g.FixAgeMs > verdict.FixAgeMsDefault:
		n.SpeedMps = nil // too old to be shown as a speed
	}
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
