// Package topology reads what routing daemons recorded in a trial: who heard
// whom, which way the measured flow went when, and what routing cost. It draws
// the mesh at a moment. It reads records alone; where nodes were comes from
// the emulated field's truth, and nodes without a known place stand on a circle.
package topology

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Mesh is one attempt's routing over time. Times are seconds since the window
// opened, each node's by its own clock: GO opens the window on all of them.
type Mesh struct {
	Protocol string
	Seconds  float64 // length of the window
	Nodes    []string
	From, To string // of the measured flow

	addresses map[netip.Addr]string // → node
	byNode    map[string]netip.Addr
	macs      map[string]string // → node
	changes   map[string][]change
	counts    map[string][]count
	signals   map[string][]signal
	places    map[string][]place
	events    []event
	measured  map[string]bool     // by the name of a flow: it is no background
	tcp       bool                // one of them is TCP's
	received  map[uint64][]sample // bytes that the receiver had, over time, by data socket
	edges     map[string]bool     // of the window, at which the receiver's sockets were sampled
	stalled   bool                // the receiver's sampler, in the window
	ways      []Path              // of the flow, where its packets hold them
	probed    bool                // probes were sent, and by a sender whose sampler did not stall
	answers   []float64
	lost      []lostFrame        // out of reach
	untold    bool               // the field did not tell all that was lost
	frames    map[string]float64 // on the air a second, by class, summed over nodes
}

type change struct {
	s           float64
	action      string
	destination netip.Prefix
	next        netip.Addr
	hops        *int
}

type count struct {
	s float64
	*wire.RoutingCount
}

type signal struct {
	s    float64
	peer string
	dbm  float64
}

type place struct{ s, x, y float64 }

type event struct {
	s     float64
	name  string
	value *float64
}

type lostFrame struct {
	s        float64
	from, to string
}

type sample struct {
	s     float64
	bytes uint64
}

// Read makes a mesh of an attempt's records. It is nil when no routing daemon
// recorded anything and no probe came back, or the window never opened.
func Read(plan wire.RunPlan, t wire.Trial, records []wire.Record) *Mesh {
	m := &Mesh{Protocol: t.Routing.Protocol, Seconds: t.DurationS, Nodes: t.Nodes(), From: t.Sender, To: t.Receiver,
		addresses: map[netip.Addr]string{}, byNode: map[string]netip.Addr{}, macs: map[string]string{},
		changes: map[string][]change{}, counts: map[string][]count{}, signals: map[string][]signal{},
		places:   map[string][]place{},
		measured: map[string]bool{}, received: map[uint64][]sample{}, edges: map[string]bool{}}
	for _, f := range slices.Backward(t.Traffic) {
		if !f.Background {
			m.From, m.To, m.measured[f.Name] = f.From, f.To, true
			m.tcp = m.tcp || f.Kind == "iperf3_tcp"
		}
	}
	for _, n := range plan.Nodes {
		if p, err := netip.ParsePrefix(n.MeshPrefix); err == nil {
			m.addresses[p.Addr()], m.byNode[n.Name] = n.Name, p.Addr()
		}
	}
	opens := map[string]int64{}
	for _, n := range append(slices.Clone(m.Nodes), "field") {
		if w := verdict.WindowOf(n, records); w != nil {
			opens[n] = w.OpenBootNs
		}
	}
	if _, ok := opens["field"]; !ok {
		opens["field"] = opens[t.Initiator] // the field's clock is its nodes'
	}
	for i := range records {
		m.take(&records[i], opens)
	}
	m.stalled = Stalled(m.To, records)
	_, opened := opens[t.Sender]
	m.probed = t.Routing.ProbeHz != nil && opened && !Stalled(t.Sender, records)
	if !m.HasDaemon() && len(m.answers) == 0 {
		return nil
	}
	m.sort()
	return m
}

// stallMaxUs is how late a sampler may have been for the time between two of its
// samples to be the network's: three beats.
const stallMaxUs = 300e3

// Stalled reports whether a node's sampler was so late in the window that a
// silence of that node may have been its own.
func Stalled(node string, records []wire.Record) bool {
	for _, r := range records {
		if b, ok := r.Body.(*wire.Lateness); ok && r.Node == node && b.Source == "sampler" && b.WorstUs > stallMaxUs {
			return true
		}
	}
	return false
}

// HasDaemon reports whether a routing daemon recorded anything. Without one
// there are no ways and no links.
func (m *Mesh) HasDaemon() bool { return len(m.changes)+len(m.counts) > 0 }

// take reads one record.
func (m *Mesh) take(r *wire.Record, opens map[string]int64) {
	open, ok := opens[r.Node]
	if !ok || open == 0 {
		return
	}
	since := func(bootNs int64) float64 { return float64(bootNs-open) / 1e9 }
	s := since(r.TBootNs)
	switch b := r.Body.(type) {
	case *wire.RouteChange:
		m.takeChange(r.Node, since(b.AtBootNs), b)
	case *wire.RoutingCount:
		m.counts[r.Node] = append(m.counts[r.Node], count{s, b})
	case *wire.RoutingEvent:
		m.takeEvent(r.Node, since(b.AtBootNs), b)
	case *wire.Probe:
		m.answers = append(m.answers, s)
	case *wire.Loss:
		if b.Cause == "out_of_range" && b.RetryLimit {
			m.lost = append(m.lost, lostFrame{s, b.Of, b.Peer})
		}
	case *wire.MediumCount:
		m.untold = m.untold || b.LossesUntold > 0
		for class, n := range b.FramesPerS {
			if m.frames == nil {
				m.frames = map[string]float64{}
			}
			m.frames[class] += n
		}
	case *wire.Provenance:
		m.macs[b.MAC] = r.Node
	case *wire.Station:
		if dbm := b.SignalNow(); dbm != nil {
			m.signals[r.Node] = append(m.signals[r.Node], signal{s, b.Peer, *dbm})
		}
	case *wire.Truth:
		m.places[b.Of] = append(m.places[b.Of], place{s, b.XM, b.YM})
	case *wire.Edge:
		if r.Node == m.To {
			m.edges[b.Edge] = true
		}
	case *wire.TCPSample:
		if r.Node == m.To && b.Stream != nil && m.measured[b.Flow] {
			m.received[b.Cookie] = append(m.received[b.Cookie], sample{s, b.BytesReceived})
		}
	}
}

func (m *Mesh) takeChange(node string, s float64, b *wire.RouteChange) {
	destination, err := netip.ParsePrefix(b.Destination)
	if err != nil {
		return // no IPv4 route of a daemon
	}
	c := change{s: s, action: b.Action, destination: destination, hops: b.Hops}
	if len(b.NextHops) > 0 {
		if c.next, err = netip.ParseAddr(b.NextHops[0]); err != nil {
			return
		}
	}
	m.changes[node] = append(m.changes[node], c)
}

// takeEvent reads what a daemon found worth telling. A protocol whose packets
// hold their route tells the sender's: the nodes between, or, without hops,
// that there is none.
func (m *Mesh) takeEvent(node string, s float64, b *wire.RoutingEvent) {
	m.events = append(m.events, event{s, b.Report, b.Value})
	if b.Report != "source_route" || node != m.From || b.Addr != m.byNode[m.To].String() {
		return
	}
	p := Path{S: s, Nodes: []string{m.From}}
	if b.Value != nil {
		for text := range strings.FieldsSeq(b.Note) {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return
			}
			p.Nodes = append(p.Nodes, cmp.Or(m.addresses[addr], text))
		}
		p.Nodes, p.Whole = append(p.Nodes, m.To), true
	}
	m.ways = append(m.ways, p)
}

// toldByKernel are the daemons whose routes are the kernel's word. They change a route by
// deleting it and setting another, microseconds later, and babeld has an unreachable one in
// between; the kernel tells each.
var toldByKernel = []string{"babeld", "olsrd"}

// rerouteS is how long after a route's deletion it may be told to be set again for the two to
// be one change: a busy node tells later.
const rerouteS = 0.02

// rerouted leaves out of a node's changes the deletion of a route that is set again at once,
// and that of one that the node did not have: of an unreachable route only the end is told.
func rerouted(list []change) (out []change) {
	held := map[netip.Prefix]bool{}
	for i, c := range list {
		deleted := c.action == "delete"
		if deleted {
			next := slices.IndexFunc(list[i+1:], func(n change) bool {
				return n.destination == c.destination && n.action == "set" || n.s > c.s+rerouteS
			})
			again := next >= 0 && list[i+1+next].s <= c.s+rerouteS
			if again || !held[c.destination] {
				continue
			}
		}
		held[c.destination] = !deleted
		out = append(out, c)
	}
	return out
}

func (m *Mesh) sort() {
	for node, list := range m.changes {
		slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.s, b.s) })
		if slices.Contains(toldByKernel, m.Protocol) {
			m.changes[node] = rerouted(list)
		}
	}
	slices.Sort(m.answers)
	slices.SortStableFunc(m.lost, func(a, b lostFrame) int { return cmp.Compare(a.s, b.s) })
	slices.SortStableFunc(m.ways, func(a, b Path) int { return cmp.Compare(a.S, b.S) })
	for _, list := range m.received {
		slices.SortStableFunc(list, func(a, b sample) int { return cmp.Compare(a.s, b.s) })
	}
}

// Link is one node's view of another that it hears.
type Link struct {
	From, To  string
	Symmetric bool
	Cost      *float64 // as the protocol measures it
	SignalDbm *float64 // as the radio does
}

// staleS is how old the newest word of a neighbour may be: daemons are asked
// every second.
const staleS = 3

// Links are those that daemons knew of at a moment.
func (m *Mesh) Links(s float64) []Link {
	var out []Link
	for _, node := range m.Nodes {
		c := latest(m.counts[node], s, func(c count) float64 { return c.s })
		if c == nil || s-c.s > staleS {
			continue
		}
		for _, n := range c.Neighbors {
			addr, err := netip.ParseAddr(n.Addr)
			peer := m.addresses[addr]
			if err != nil || peer == "" {
				continue
			}
			out = append(out, Link{From: node, To: peer, Symmetric: n.Symmetric, Cost: n.Cost,
				SignalDbm: m.signal(node, peer, s)})
		}
	}
	return out
}

func (m *Mesh) signal(node, peer string, s float64) *float64 {
	var of []signal
	for _, x := range m.signals[node] {
		if m.macs[x.peer] == peer {
			of = append(of, x)
		}
	}
	if x := latest(of, s, func(x signal) float64 { return x.s }); x != nil && s-x.s <= staleS {
		return &x.dbm
	}
	return nil
}

// latest is the last of a sorted list at or before a moment.
func latest[T any](list []T, s float64, at func(T) float64) *T {
	i, _ := slices.BinarySearchFunc(list, s, func(v T, s float64) int {
		if at(v) <= s {
			return -1
		}
		return 1
	})
	if i == 0 {
		return nil
	}
	return &list[i-1]
}
