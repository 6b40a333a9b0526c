package realtime

import (
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ipv4"
)

// learnHome remembers where an IPv4 address sends from. A flow's frames enter
// the channel at its first node before any other has them to forward, so the
// first to send from an address is its home.
func (c *Channel) learnHome(node int, ethernet []byte) {
	if src, is := ipv4.Source(ethernet); is && src != [4]byte{} { // DHCP's "none yet"
		if _, known := c.homes[src]; !known {
			c.homes[src] = node
		}
	}
}

// learnWay notices that a flow's source sends by another source route of DSR than before: no kernel
// has another route then.
func (c *Channel) learnWay(node int, ethernet []byte) {
	ip, is := ipv4.In(ethernet)
	if !is || !ipv4.IsDSR(ip) || c.homes[[4]byte(ip[12:16])] != node {
		return
	}
	way, ok := dsr.WayOfSource(ip)
	if !ok {
		return
	}
	ends := [8]byte(ip[12:20])
	was, known := c.ways[ends]
	if known && was == string(way) {
		return
	}
	c.ways[ends] = string(way)
	if known {
		c.rerouted(reroute{node, netip.PrefixFrom(netip.AddrFrom4([4]byte(ip[16:20])), 32), c.core.Now()})
	}
}

// tellLoss passes losses on to a hook, if any, and to the feedback sockets of
// the node that lost the frame and of the one that its flow starts at: a TCP
// that is to know what happened to its segments reads its own node's socket.
func (c *Channel) tellLoss(hook func(medium.FrameLoss)) func(medium.FrameLoss) {
	return func(loss medium.FrameLoss) {
		if hook != nil {
			hook(loss)
		}
		c.tellFeeds(loss)
	}
}

// Tell passes a loss that happened outside the channel on to the feedback
// sockets, as if the channel had lost it. It does not wait.
func (c *Channel) Tell(loss medium.FrameLoss) {
	if c.opts.FrameLost && c.watched() {
		c.post(func() { c.tellFeeds(loss) })
	}
}

func (c *Channel) tellFeeds(loss medium.FrameLoss) {
	cause, told := wireCause(loss.Cause)
	if !told || loss.Flow == "" || !c.watched() {
		return
	}
	line := wire.Feedback{FrameLost: &wire.FrameLost{Flow: loss.Flow, Seq: loss.Seq, Cause: cause}}
	c.publish(loss.Node, line)
	if home, known := c.homes[loss.Src]; known && home != loss.Node {
		c.publish(home, line)
	}
	c.strand(loss)
}

func (c *Channel) publish(node int, line wire.Feedback) {
	if f := c.feeds[node]; f != nil && f.active.Load() > 0 {
		f.publish(line)
	}
}

// wireCause is a cause in the words of the contract. A dead radio is out of
// everybody's range; what a host refuses or should not have sent is no loss of
// the radio's.
func wireCause(why medium.Cause) (cause string, told bool) {
	switch why {
	case medium.RadioDead:
		return medium.OutOfRange.String(), true
	case medium.Collision, medium.ChannelError, medium.OutOfRange, medium.QueueFull, medium.NoRoute, medium.NoNeighbour:
		return why.String(), true
	}
	return "", false
}
