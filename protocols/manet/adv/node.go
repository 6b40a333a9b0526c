package adv

import (
	"maps"
	"net/netip"

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
	*base
	config Config

	id          uint32 // of own floods
	receivers   map[netip.Addr]*receiver
	sources     map[netip.Addr]manet.Time  // who sends data to us: when it last did
	connections map[netip.Addr]*connection // to whom we send data
	waiting     map[netip.Addr]*wait
	seen        map[floodID]manet.Time
	floods      *manet.Delayed[Flood]

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
}

// extra is what is kept with a route.
type extra struct {
	told bool // as it is; else it belongs into the next update
	used manet.Time
}

type (
	base  = distance.Node[extra]
	route = distance.Route[extra]
)

// New makes a node. One that lost its state is a new one with another seed.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config, receivers: map[netip.Addr]*receiver{}, sources: map[netip.Addr]manet.Time{},
		connections: map[netip.Addr]*connection{},
		waiting:     map[netip.Addr]*wait{}, seen: map[floodID]manet.Time{}, threshold: config.Threshold}
	n.base = distance.NewNode(config.Config, config.hold(), n.broke)
	n.floods = manet.NewDelayed[Flood](&n.Turn, timerFlood, "full_floods")
	n.id = n.Jitter.Uint32() // those from before a reboot are still remembered
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.Begin(now)
	switch e := event.(type) {
	case manet.Start:
		n.fell = now
		n.wakeToSweep()
	case manet.Packet:
		n.Table.Cause = "update"
		n.receive(e)
	case manet.Timer:
		n.timer(e.Key.Kind)
	case manet.NeedRoute:
		n.needRoute(e)
	case manet.RouteUsed:
		n.routeUsed(e)
	case manet.InterfaceUp:
		if n.Interfaces.Set(e.Interface, true) {
			n.fullBy(now + n.Jitter.Below(n.config.Jitter))
		}
	default:
		n.Lose(event)
	}
	if n.busy() && n.sweepAt > n.Now+n.config.UpdateInterval/8 {
		n.wakeToSweep()
	}
	return n.Actions()
}

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
	at := min(n.Neighbors.Next(n.Now), n.Table.Next(n.Now, n.config.RouteHold(), n.config.forget()), n.nextIdle())
	soon := n.Now + n.config.UpdateInterval/8
	if n.busy() {
		at = soon
	}
	n.sweepAt = max(at, soon)
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerSweep}, At: n.sweepAt, Slack: n.config.UpdateInterval / 8})
}

// sweep looks for what has gone silent, stale or idle.
func (n *Node) sweep() {
	n.ExpireNeighbors()
	n.Table.Cause = "expired"
	for _, r := range n.Table.Stale(n.Now, n.config.RouteHold()) {
		n.broke(r)
	}
	n.Table.Forget(n.Now, n.config.forget())
	n.fall()
	n.idle()
	n.retry()
	for id, until := range n.seen {
		if until <= n.Now {
			delete(n.seen, id)
		}
	}
}

func (n *Node) receive(p manet.Packet) {
	if !n.Interfaces.Accept(p) {
		return
	}
	u, flood, err := Parse(p.Data)
	if err != nil {
		n.Count("malformed_packets")
		return
	}
	link, a := n.Hear(p, u)
	if flood != nil {
		n.flooded(*flood)
	}
	if a.New && n.interested() {
		n.greet = true
		n.partialBy(n.Now)
	}
	if a.Became && n.interested() { // it can use what we know only from now on
		n.fullBy(max(n.Now+n.Jitter.Below(n.config.Jitter), n.full+n.config.UpdateInterval/4))
	}
	for _, e := range u.Entries {
		n.told(link, e, a.Symmetric)
	}
}

// told takes in one route that a neighbour tells or asks for.
func (n *Node) told(l distance.Link, e distance.Entry, symmetric bool) {
	request, known := e.Flags&flagRequest != 0, e.Flags&flagUnknown == 0
	if n.Interfaces.IsOwn(e.To) {
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
	r := n.Table.Get(e.To)
	if known && symmetric {
		n.take(l, e)
		r = n.Table.Get(e.To)
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
	r, before, taken := n.Table.Take(n.Now, l, e)
	switch {
	case !taken:
	case r.Broken():
		n.broke(r)
	default:
		n.receivers[r.To].heard = n.Now
		r.Extra.told = false
		if before.Hops != r.Hops {
			n.urge(n.config.Weights.Changed, r)
		} else {
			n.urge(n.config.Weights.Number, r)
		}
		n.arrived(r)
	}
}

// ownNumber takes in a number of ours that somebody else tells.
func (n *Node) ownNumber(seq uint32) {
	if n.Outgrow(seq) && n.isReceiver() {
		n.greet = true
		n.partialBy(n.Now)
	}
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := n.Describe("adv", now)
	maps.Copy(s.TableSizes, map[string]int{"receivers": len(n.receivers), "sources": len(n.sources),
		"connections": len(n.connections), "waiting": len(n.waiting), "seen": len(n.seen), "floods": n.floods.Len()})
	s.Discovery = sorted(n.waiting)
	return s
}
