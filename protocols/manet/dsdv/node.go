package dsdv

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// Kinds of timers.
const (
	timerFull = iota + 1
	timerIncremental
	timerGreet
	timerSweep
)

// Node is DSDV on one node; see manet.Node for how it is driven.
type Node struct {
	*base
	config Config

	dumped        manet.Time // when the last dump of either kind was sent
	incrementalAt manet.Time // when one is due; 0: none is
	dueFull       manet.Time
	greeted       manet.Time // when a new neighbour last was told that it is heard
	greetAt       manet.Time // when one is to be; 0: none is
}

// New makes a node. One that lost its state is a new one with another seed.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config}
	n.base = distance.NewNode(config.Config, config.hold(), n.broke)
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.Begin(now)
	switch e := event.(type) {
	case manet.Start: // what is sent too soon, those who start a moment later do not hear
		n.scheduleFull(now + n.Jitter.Below(n.config.Period/8))
		n.wakeToSweep()
	case manet.Packet:
		n.Table.Cause = "update"
		n.receive(e)
	case manet.Timer:
		n.Table.Cause = "expired"
		n.timer(e.Key.Kind)
	case manet.InterfaceUp:
		if n.Interfaces.Set(e.Interface, true) {
			n.scheduleFull(now + n.Jitter.Below(n.config.Jitter))
		}
	case manet.NeedRoute:
		if r := n.Table.Get(e.Destination); r != nil && !r.Broken() {
			n.Act(manet.Release{Destination: e.Destination})
		}
	default:
		n.Lose(event)
	}
	return n.Actions()
}

func (n *Node) timer(kind uint8) {
	switch kind {
	case timerFull:
		n.dumpFull()
	case timerIncremental:
		n.incrementalAt = 0
		n.dumpIncremental()
	case timerGreet:
		n.greetAt, n.greeted = 0, n.Now
		n.Send(distance.Update{}, "INCREMENTAL", false)
	case timerSweep:
		n.sweep()
		n.wakeToSweep()
	}
}

// wakeToSweep sets the clock to when something may have gone silent or stale.
func (n *Node) wakeToSweep() {
	at := min(n.Neighbors.Next(n.Now), n.Table.Next(n.Now, n.config.RouteHold(), n.config.forget()))
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerSweep}, At: max(at, n.Now+n.config.Period/8),
		Slack: n.config.Period / 8})
}

// sweep looks for neighbours that went silent and routes that went stale.
func (n *Node) sweep() {
	n.ExpireNeighbors()
	n.Table.Cause = "expired"
	for _, r := range n.Table.Stale(n.Now, n.config.RouteHold()) {
		n.Count("stale")
		n.broke(r)
	}
	n.Table.Forget(n.Now, n.config.forget())
}

func (n *Node) receive(p manet.Packet) {
	if !n.Interfaces.Accept(p) {
		return
	}
	u, err := distance.Parse(p.Data)
	if err != nil || u.Kind != 0 || u.Remainder != nil {
		n.Count("malformed_packets")
		return
	}
	link, a := n.Hear(p, u)
	if a.New {
		soon := max(n.Now, n.greeted+n.config.Aggregation/10) + n.Jitter.Below(n.config.Jitter)
		n.WakeBy(soon, timerGreet, &n.greetAt)
	}
	if !a.Symmetric {
		return
	}
	for _, e := range slices.Concat(a.Early, u.Entries) {
		n.take(link, e)
	}
}

// take is what the paper asks of one route that a neighbour tells.
func (n *Node) take(l distance.Link, e distance.Entry) {
	switch {
	case n.Interfaces.IsOwn(e.To):
		// Who lost the way to us, or knows a number of before a reboot, hears a newer one.
		if n.Outgrow(e.Seq) || e.Hops == distance.Infinite {
			n.scheduleFull(n.dumped + n.config.Aggregation)
		}
		return
	case !manet.Unicast(e.To):
		return
	}
	r, before, taken := n.Table.Take(n.Now, l, e)
	switch {
	case taken:
		n.changed(r, &before)
		if before.Broken() {
			n.Act(manet.Release{Destination: r.To})
		}
	case r != nil && e.Hops == distance.Infinite && !r.Broken() && !manet.After32(e.Seq, r.Seq):
		n.urge(r) // who lost it may have ours
	}
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State { return n.Describe("dsdv", now) }
