package medium

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// routeChange is what a loss for want of a way is, in the words of the
// contract, once there is another way. It is no cause of a frame's loss: the
// channel's accounts do not have it.
const routeChange = "route_change"

// strandedKept bounds the losses that may yet turn out to be a route change's;
// the oldest are forgotten.
const strandedKept = 4096

// stranded is a packet of a flow that was lost because there was no way on
// from a node.
type stranded struct {
	node     int
	src, dst [4]byte
	flow     string
	seq      uint32
}

// strand remembers a loss for want of a way.
func (l *Live) strand(loss FrameLoss) {
	switch loss.Cause {
	case OutOfRange, RadioDead, NoRoute, NoNeighbour:
	default:
		return
	}
	if len(l.stranded) == strandedKept {
		l.stranded = slices.Delete(l.stranded, 0, strandedKept/4) // in large steps, not one by one
	}
	l.stranded = append(l.stranded, stranded{loss.Node, loss.src, loss.dst, loss.Flow, loss.Seq})
}

// Rerouted says that a node has another route to a network than before. What was
// lost at this node on its way there, or of a flow that begins at it, was
// lost to a route change: the feedback sockets are told so, after they were
// told how it was lost. It does not wait.
func (l *Live) Rerouted(node int, to netip.Prefix) {
	if !l.opts.FrameLost || !l.watched() {
		return
	}
	l.post(func() {
		l.stranded = slices.DeleteFunc(l.stranded, func(s stranded) bool {
			home, known := l.homes[s.src]
			if !to.Contains(netip.AddrFrom4(s.dst)) || s.node != node && (!known || home != node) {
				return false
			}
			line := wire.Feedback{FrameLost: &wire.FrameLost{Flow: s.flow, Seq: s.seq, Cause: routeChange}}
			l.publish(s.node, line)
			if known && home != s.node {
				l.publish(home, line)
			}
			return true
		})
	})
}
