package realtime

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// routeChange is what a loss for lack of a route is, in the words of the
// contract, once there is another way. It is no cause of a frame's loss: the
// channel's accounts do not have it.
const routeChange = "route_change"

const (
	// strandedKept bounds the losses that may yet turn out to be a route
	// change's; the oldest are forgotten.
	strandedKept = 4096
	// lingering is how long after a route's change what waits in queues by the
	// old one may still be lost: the default queue's 50 frames of 512 bytes,
	// each tried 7 times at 2 Mbit/s (IEEE 802.11-2020, 10.3.4.4), are on their
	// way for 0.9 s.
	lingering = time.Second
)

// stranded is a packet of a flow that was lost because there was no way on
// from a node.
type stranded struct {
	node     int
	src, dst [4]byte
	flow     string
	seq      uint32
}

// reroute is a node's change of its route to a network.
type reroute struct {
	node int
	to   netip.Prefix
	at   time.Duration
}

// strand keeps a loss for lack of a route until there is one, or tells at once
// that there is one already.
func (c *Channel) strand(loss medium.FrameLoss) {
	switch loss.Cause {
	case medium.OutOfRange, medium.RadioDead, medium.NoRoute, medium.NoNeighbour:
	default:
		return
	}
	s := stranded{loss.Node, loss.Src, loss.Dst, loss.Flow, loss.Seq}
	c.forgetReroutes()
	if slices.ContainsFunc(c.reroutes, func(r reroute) bool { return c.explains(r, s) }) {
		c.tellReroute(s)
		return
	}
	if len(c.stranded) == strandedKept {
		c.stranded = slices.Delete(c.stranded, 0, strandedKept/4) // in large steps, not one by one
	}
	c.stranded = append(c.stranded, s)
}

// explains reports whether a loss was on the route that has changed: at the
// node that lost it, or at the one where its flow begins.
func (c *Channel) explains(r reroute, s stranded) bool {
	home, known := c.homes[s.src]
	return r.to.Contains(netip.AddrFrom4(s.dst)) && (s.node == r.node || known && home == r.node)
}

func (c *Channel) forgetReroutes() {
	c.reroutes = slices.DeleteFunc(c.reroutes, func(r reroute) bool { return c.core.Now()-r.at > lingering })
}

func (c *Channel) tellReroute(s stranded) {
	line := wire.Feedback{FrameLost: &wire.FrameLost{Flow: s.flow, Seq: s.seq, Cause: routeChange}}
	c.publish(s.node, line)
	if home, known := c.homes[s.src]; known && home != s.node {
		c.publish(home, line)
	}
}

// Rerouted says that a node has another route to a network than before. What
// was lost on the old one, for lack of a route, was lost to a route change: the
// feedback sockets are told so, after they were told how it was lost. It does
// not wait.
func (c *Channel) Rerouted(node int, to netip.Prefix) {
	if !c.opts.FrameLost || !c.watched() {
		return
	}
	c.post(func() { c.rerouted(reroute{node, to, c.core.Now()}) })
}

func (c *Channel) rerouted(r reroute) {
	c.forgetReroutes()
	c.reroutes = append(c.reroutes, r)
	c.stranded = slices.DeleteFunc(c.stranded, func(s stranded) bool {
		if !c.explains(r, s) {
			return false
		}
		c.tellReroute(s)
		return true
	})
}
