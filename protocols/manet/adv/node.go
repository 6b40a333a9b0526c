package adv

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// Kinds of timers.
const (
	timerFull = iota + 1
	timerPartial
	timerFlood
	timerSweep
)

// Node is ADV on one node; see manet.Node for how it is driven.
type Node struct {
	config    Config
	ifaces    distance.Interfaces
	jitter    *manet.Jitter
	table     *distance.Table[extra]
	neighbors *distance.Neighbors
	counters  map[string]int64

	seq         uint32 // own, even
	id          uint32 // of own floods
	receivers   map[netip.Addr]*receiver
	sources     map[netip.Addr]manet.Time  // who sends data to us: when it last did
	connections map[netip.Addr]*connection // to whom we send data
	waiting     map[netip.Addr]*wait
	seen        map[floodID]manet.Time
	floods      []delayed // by time

	meter     float64
	threshold float64
	partials  int
	greet     bool
	updated   manet.Time // the last update of either kind
	full      manet.Time
	dueFull   manet.Time // 0: none is due
	duePart   manet.Time
	alerted   manet.Time
	fell      manet.Time // when the threshold last fell
	sweepAt   manet.Time // when to look for what has gone silent

	// Of the event at hand.
	now     manet.Time
	actions []manet.Action
}

// extra is what is kept with a route.
type extra struct {
	told bool // as it is; else it belongs into the next update
	used manet.Time
}

type route = distance.Route[extra]

// New makes a node. One that lost its state is a new one with another seed.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config, jitter: manet.NewJitter(config.Seed), counters: map[string]int64{}, seq: config.FirstSeq,
		ifaces:    distance.NewInterfaces(config.Interfaces),
		receivers: map[netip.Addr]*receiver{}, sources: map[netip.Addr]manet.Time{},
		connections: map[netip.Addr]*connection{},
		waiting:     map[netip.Addr]*wait{}, seen: map[floodID]manet.Time{}, threshold: config.Threshold}
	n.table = distance.NewTable[extra](config.MaxEntries, n.act)
	n.neighbors = distance.NewNeighbors(n.jitter.Uint32(), config.hold(), config.MaxEntries)
	n.id = n.jitter.Uint32() // those from before a reboot are still remembered
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.now = now
	n.actions = n.actions[:0]
	switch e := event.(type) {
	case manet.Start:
		n.fell = now
		n.wakeToSweep()
	case manet.Packet:
		n.table.Cause = "update"
		n.receive(e)
	case manet.Timer:
		n.timer(e.Key.Kind)
	case manet.NeedRoute:
		n.needRoute(e)
	case manet.RouteUsed:
		n.routeUsed(e)
	case manet.LinkFailed:
		n.table.Cause = "link_failed"
		n.neighbors.Remove(distance.Link{Addr: e.Neighbor, Iface: e.Interface})
		n.lost(distance.Link{Addr: e.Neighbor, Iface: e.Interface})
	case manet.InterfaceUp:
		if n.ifaces.Set(e.Interface, true) {
			n.fullBy(now + n.jitter.Below(n.config.Jitter))
		}
	case manet.InterfaceDown:
		n.table.Cause = "interface_down"
		n.interfaceDown(e.Interface)
	}
	if n.busy() && n.sweepAt > n.now+n.config.UpdateInterval/8 {
		n.wakeToSweep()
	}
	return n.actions
}

func (n *Node) act(a manet.Action) { n.actions = append(n.actions, a) }

func (n *Node) count(what string) { n.counters[what]++ }

func (n *Node) timer(kind uint8) {
	switch kind {
	case timerFull:
		n.dueFull = 0
		n.updateFull()
	case timerPartial:
		n.duePart = 0
		n.updatePartial()
	case timerFlood:
		n.sendFloods()
	case timerSweep:
		n.sweep()
		n.wakeToSweep()
	}
}

// busy says that there is something which sweep does often: the threshold is to
// fall, or packets wait.
func (n *Node) busy() bool { return n.threshold > n.config.Threshold || len(n.waiting) > 0 }

// wakeToSweep sets the clock to when there is something for sweep to do, which
// at rest is seldom.
func (n *Node) wakeToSweep() {
	at := min(n.neighbors.Next(n.now), n.table.Next(n.now, n.config.RouteHold(), n.config.forget()), n.nextIdle())
	soon := n.now + n.config.UpdateInterval/8
	if n.busy() {
		at = soon
	}
	n.sweepAt = max(at, soon)
	n.act(manet.SetTimer{Key: manet.TimerKey{Kind: timerSweep}, At: n.sweepAt, Slack: n.config.UpdateInterval / 8})
}

// sweep looks for what has gone silent, stale or idle.
func (n *Node) sweep() {
	n.table.Cause = "neighbor_lost"
	for _, l := range n.neighbors.Expire(n.now) {
		n.lost(l)
	}
	n.table.Cause = "expired"
	for _, r := range n.table.Stale(n.now, n.config.RouteHold()) {
		n.broke(r)
	}
	n.table.Forget(n.now, n.config.forget())
	n.fall()
	n.idle()
	n.retry()
	for id, until := range n.seen {
		if until <= n.now {
			delete(n.seen, id)
		}
	}
}

// lost breaks the routes over a neighbour.
func (n *Node) lost(l distance.Link) {
	n.act(manet.Report{Kind: "neighbor_lost", Addr: l.Addr})
	for _, r := range n.table.BreakOver(n.now, l.Addr, l.Iface) {
		n.broke(r)
	}
}

func (n *Node) interfaceDown(i int) {
	if !n.ifaces.Set(i, false) {
		return
	}
	for _, l := range n.neighbors.RemoveInterface(i) {
		n.lost(l)
	}
}

func (n *Node) receive(p manet.Packet) {
	if !n.ifaces.Accept(p) {
		return
	}
	u, flood, err := Parse(p.Data)
	if err != nil {
		n.count("malformed_packets")
		return
	}
	link := distance.Link{Addr: p.From, Iface: p.Interface}
	a := n.neighbors.Heard(n.now, link, n.ifaces[p.Interface].Address, u)
	if a.Lost {
		n.lost(link)
	}
	if flood != nil {
		n.flooded(*flood)
	}
	if a.New && n.interested() {
		n.greet = true
		n.partialBy(n.now)
	}
	if a.Became && n.interested() { // it can use what we know only from now on
		n.fullBy(max(n.now+n.jitter.Below(n.config.Jitter), n.full+n.config.UpdateInterval/4))
	}
	for _, e := range u.Entries {
		n.told(link, e, a.Symmetric)
	}
}

// told takes in one route that a neighbour tells or asks for.
func (n *Node) told(l distance.Link, e distance.Entry, symmetric bool) {
	request, known := e.Flags&flagRequest != 0, e.Flags&flagUnknown == 0
	if n.ifaces.IsOwn(e.To) {
		if known {
			n.ownNumber(e.Seq)
		}
		if request {
			n.wanted(l.Addr)
		}
		return
	}
	if !manet.Unicast(e.To) || n.receiver(e.To, request || e.Hops != distance.Infinite) == nil {
		return
	}
	r := n.table.Get(e.To)
	if known && symmetric {
		n.take(l, e)
		r = n.table.Get(e.To)
	}
	if r == nil || r.Broken() || r.Next == l.Addr || known && manet.After32(e.Seq, r.Seq) {
		return
	}
	if request || e.Hops == distance.Infinite {
		r.Extra.told = false
		n.urge(n.config.Weights.Request, r)
	}
}

func (n *Node) take(l distance.Link, e distance.Entry) {
	r, before, taken := n.table.Take(n.now, distance.Offer{To: e.To, Seq: e.Seq, Hops: int(e.Hops), From: l.Addr,
		Iface: l.Iface})
	switch {
	case !taken:
	case r.Broken():
		n.broke(r)
	default:
		n.receivers[r.To].heard = n.now
		r.Extra.told = false
		if before.Hops != r.Hops {
			n.urge(n.config.Weights.Changed, r)
		} else {
			n.urge(n.config.Weights.Number, r)
		}
		n.arrived(r)
	}
}

// ownNumber goes beyond a number of ours that we do not know: it is from before
// a reboot, or from someone who lost the route to us.
func (n *Node) ownNumber(seq uint32) {
	if manet.After32(seq, n.seq) {
		n.seq = seq&^1 + 2
		if n.isReceiver() {
			n.greet = true
			n.partialBy(n.now)
		}
	}
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := manet.State{Protocol: "adv", Neighbors: n.neighbors.State(now), Routes: n.table.State(),
		Counters: map[string]int64{},
		TableSizes: map[string]int{"routes": n.table.Len(), "neighbors": n.neighbors.Len(),
			"receivers": len(n.receivers), "sources": len(n.sources),
			"connections": len(n.connections), "waiting": len(n.waiting), "seen": len(n.seen), "floods": len(n.floods)}}
	for to := range n.waiting {
		s.Discovery = append(s.Discovery, to)
	}
	slices.SortFunc(s.Discovery, netip.Addr.Compare)
	for k, v := range n.counters {
		s.Counters[k] = v
	}
	return s
}
