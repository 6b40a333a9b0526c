package dsdv

import (
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// Kinds of timers.
const (
	timerFull = iota + 1
	timerIncremental
	timerSweep
)

// Node is DSDV on one node; see manet.Node for how it is driven.
type Node struct {
	config    Config
	ifaces    distance.Interfaces
	jitter    *manet.Jitter
	table     *distance.Table[advert]
	neighbors *distance.Neighbors
	counters  map[string]int64

	seq           uint32 // own, even
	challenged    bool   // the own number had to grow and is to be told
	greet         bool   // a new neighbour is to learn that it is heard
	full          manet.Time
	incremental   manet.Time // when the last one was sent
	incrementalAt manet.Time // when one is due; 0: none is
	dueFull       manet.Time

	// Of the event at hand.
	now     manet.Time
	actions []manet.Action
}

// New makes a node. One that lost its state is a new one with another seed.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config, jitter: manet.NewJitter(config.Seed), counters: map[string]int64{}, seq: config.FirstSeq,
		ifaces: distance.NewInterfaces(config.Interfaces)}
	n.table = distance.NewTable[advert](config.MaxEntries, n.act)
	n.neighbors = distance.NewNeighbors(n.jitter.Uint32(), config.hold(), config.MaxEntries)
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.now = now
	n.actions = n.actions[:0]
	switch e := event.(type) {
	case manet.Start:
		n.scheduleFull(now + n.jitter.Below(n.config.Jitter))
		n.wakeToSweep()
	case manet.Packet:
		n.table.Cause = "update"
		n.receive(e)
	case manet.Timer:
		n.table.Cause = "expired"
		n.timer(e.Key.Kind)
	case manet.LinkFailed:
		n.table.Cause = "link_failed"
		n.neighbors.Remove(distance.Link{Addr: e.Neighbor, Iface: e.Interface})
		n.lost(distance.Link{Addr: e.Neighbor, Iface: e.Interface})
	case manet.InterfaceUp:
		n.interfaceUp(e.Interface)
	case manet.InterfaceDown:
		n.table.Cause = "interface_down"
		n.interfaceDown(e.Interface)
	case manet.NeedRoute:
		// A proactive protocol has a route or knows of none.
		n.act(manet.Drop{Destination: e.Destination, Reason: "no route", Unreachable: true})
	}
	return n.actions
}

func (n *Node) act(a manet.Action) { n.actions = append(n.actions, a) }

func (n *Node) count(what string) { n.counters[what]++ }

func (n *Node) timer(kind uint8) {
	switch kind {
	case timerFull:
		n.dumpFull()
	case timerIncremental:
		n.incrementalAt = 0
		n.dumpIncremental()
	case timerSweep:
		n.sweep()
		n.wakeToSweep()
	}
}

// wakeToSweep sets the clock to when something may have gone silent or stale.
func (n *Node) wakeToSweep() {
	at := min(n.neighbors.Next(n.now), n.table.Next(n.now, n.config.RouteHold(), n.config.forget()))
	n.act(manet.SetTimer{Key: manet.TimerKey{Kind: timerSweep}, At: max(at, n.now+n.config.Period/8),
		Slack: n.config.Period / 8})
}

// sweep looks for neighbours that went silent and routes that went stale.
func (n *Node) sweep() {
	n.table.Cause = "neighbor_lost"
	for _, l := range n.neighbors.Expire(n.now) {
		n.lost(l)
	}
	n.table.Cause = "expired"
	for _, r := range n.table.Stale(n.now, n.config.RouteHold()) {
		n.count("stale")
		n.broke(r)
	}
	n.table.Forget(n.now, n.config.forget())
}

// lost breaks the routes over a neighbour.
func (n *Node) lost(l distance.Link) {
	n.act(manet.Report{Kind: "neighbor_lost", Addr: l.Addr})
	for _, r := range n.table.BreakOver(n.now, l.Addr, l.Iface) {
		n.broke(r)
	}
}

func (n *Node) receive(p manet.Packet) {
	if !n.ifaces.Accept(p) {
		return
	}
	u, err := distance.Parse(p.Data)
	if err != nil || u.Kind != 0 || u.Remainder != nil {
		n.count("malformed_packets")
		return
	}
	link := distance.Link{Addr: p.From, Iface: p.Interface}
	a := n.neighbors.Heard(n.now, link, n.ifaces[p.Interface].Address, u)
	if a.Lost {
		n.lost(link)
	}
	if a.New {
		n.greet = true
		n.schedule(n.now)
	}
	if a.Became { // it can use what we know only from now on
		n.scheduleFull(max(n.now+n.jitter.Below(n.config.Jitter), n.full+n.config.Period/4))
	}
	if !a.Symmetric {
		return
	}
	for _, e := range u.Entries {
		n.take(link, e)
	}
}

// take is what the paper asks of one route that a neighbour tells.
func (n *Node) take(l distance.Link, e distance.Entry) {
	switch {
	case n.ifaces.IsOwn(e.To):
		n.ownNumber(e.Seq)
		return
	case !manet.Unicast(e.To):
		return
	}
	r, before, taken := n.table.Take(n.now, distance.Offer{To: e.To, Seq: e.Seq, Hops: int(e.Hops), From: l.Addr,
		Iface: l.Iface})
	switch {
	case taken && r.Broken():
		n.broke(r)
	case taken:
		n.changed(r, &before)
	case r == nil || e.Hops != distance.Infinite || r.Broken():
	case manet.After32(e.Seq, r.Seq):
		r.Extra.missed = true // who lost it may have ours once it is newer
	default:
		n.urge(r) // who lost it may have ours
	}
}

// ownNumber goes beyond a number of ours that we do not know: it is from before
// a reboot, or from someone who lost the route to us.
func (n *Node) ownNumber(seq uint32) {
	if manet.After32(seq, n.seq) {
		n.seq = seq&^1 + 2
		n.challenged = true
		n.schedule(n.now)
	}
}

func (n *Node) interfaceUp(i int) {
	if n.ifaces.Set(i, true) {
		n.scheduleFull(n.now + n.jitter.Below(n.config.Jitter))
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

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := manet.State{Protocol: "dsdv", Neighbors: n.neighbors.State(now), Routes: n.table.State(),
		Counters:   map[string]int64{},
		TableSizes: map[string]int{"routes": n.table.Len(), "neighbors": n.neighbors.Len()}}
	for k, v := range n.counters {
		s.Counters[k] = v
	}
	return s
}
