package dsr

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// hop is the maintenance of one next hop (8.3), where the link layer does not
// do it: one packet at a time asks for a confirmation, those that are sent
// meanwhile share its fate.
type hop struct {
	confirmed manet.Time
	sure      bool // confirmed at all
	probe     []byte
	others    [][]byte
	id        uint16
	passive   bool
	tries     int
	sent      manet.Time
	rtt, dev  time.Duration // as TCP estimates them (RFC 6298 section 2)
}

// First and shortest wait for an acknowledgement. The RFC asks for an adaptive
// one and gives no first; 100 ms is its PassiveAckTimeout.
const (
	firstAckWait    = 100 * time.Millisecond
	shortestAckWait = 10 * time.Millisecond
)

// carry hands a packet to its next hop and sees to it that it is known whether
// the hop gets it.
func (n *Node) carry(next netip.Addr, p []byte) {
	if n.config.Maintenance == LinkLayer {
		n.transmit(next, p)
		return
	}
	h := n.hops[next]
	if h == nil {
		if len(n.hops) >= n.config.MaxEntries {
			n.transmit(next, p)
			return
		}
		h = &hop{}
		n.hops[next] = h
	}
	switch {
	case h.probe != nil:
		// A full buffer lets packets go unconfirmed; to drop them, as 4.5 has it,
		// would end a fast flow at every confirmation.
		if n.held < n.config.RexmtBufferSize {
			h.others = append(h.others, bytes.Clone(p))
			n.held++
		}
	case !h.sure || n.Now-h.confirmed >= n.config.MaintHoldoffTime:
		h.tries, h.passive = 0, n.config.Maintenance == PassiveAcks && next != destination(p)
		h.probe = p
		n.held++
		n.probe(next, h)
		return
	}
	n.transmit(next, p)
}

// probe sends the packet that asks for a confirmation, with a request unless
// its being forwarded will do.
func (n *Node) probe(next netip.Addr, h *hop) {
	wait := n.config.PassiveAckTimeout
	if !h.passive || h.tries > n.config.TryPassiveAcks {
		n.ackID++
		asking, err := requestAck(h.probe, n.ackID)
		if err != nil {
			n.settle(next, h)
			return
		}
		h.probe, h.id = asking, n.ackID
		wait = firstAckWait
		if h.rtt > 0 {
			wait = max(h.rtt+4*h.dev, shortestAckWait)
		}
		wait <<= min(h.tries, 6)
	}
	h.sent = n.Now
	n.transmit(next, bytes.Clone(h.probe))
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerMaintain, Addr: next}, At: n.Now + wait})
}

func (n *Node) unconfirmed(next netip.Addr) {
	h := n.hops[next]
	if h == nil || h.probe == nil {
		return
	}
	h.tries++
	limit := n.config.MaxMaintRexmt
	if h.passive {
		limit += n.config.TryPassiveAcks
	}
	if h.tries <= limit {
		n.Count("retransmitted")
		n.probe(next, h)
		return
	}
	n.linkFailed(next)
}

// settle ends a wait for a confirmation and gives the packets it was for.
func (n *Node) settle(next netip.Addr, h *hop) [][]byte {
	if h.probe == nil {
		return nil
	}
	packets := append([][]byte{h.probe}, h.others...)
	n.held -= len(packets)
	h.probe, h.others = nil, nil
	n.Act(manet.StopTimer{Key: manet.TimerKey{Kind: timerMaintain, Addr: next}})
	return packets
}

func (n *Node) confirm(next netip.Addr, h *hop) {
	n.settle(next, h)
	h.sure, h.confirmed = true, n.Now
	delete(n.blacklist, next)
}

// acknowledged is section 8.3.3.
func (n *Node) acknowledged(o Ack) {
	if o.Destination != n.self || !usable(o.Source) || o.Source == n.self {
		return
	}
	h := n.hops[o.Source]
	if h == nil || h.probe == nil || h.id != o.ID {
		return
	}
	if h.tries == 0 {
		h.measure(n.Now - h.sent)
	}
	n.confirm(o.Source, h)
	n.cache.learn(n.Now, []netip.Addr{n.self, o.Source}, true, netip.Addr{})
}

func (h *hop) measure(rtt time.Duration) {
	if h.rtt == 0 {
		h.rtt, h.dev = max(rtt, time.Microsecond), rtt/2
		return
	}
	h.dev += ((h.rtt - rtt).Abs() - h.dev) / 4
	h.rtt += (rtt - h.rtt) / 8
}

// passedOn takes a packet that a neighbour was heard to send as its
// acknowledgement (8.3.2). at is the index of the node it is meant for next.
func (n *Node) passedOn(p []byte, c *carried, at int) {
	if n.config.Maintenance != PassiveAcks || at < 2 {
		return
	}
	by := c.hop(p, at-1)
	h := n.hops[by]
	if h == nil || h.probe == nil || !h.passive {
		return
	}
	mine, err := look(h.probe)
	if err != nil || mine.option == 0 || c.left(p) >= mine.left(h.probe) {
		return
	}
	// Source, destination, identification and fragment, and the next protocol.
	if bytes.Equal(p[12:20], h.probe[12:20]) && bytes.Equal(p[4:6], h.probe[4:6]) &&
		bytes.Equal([]byte{p[6] & 0x1f, p[7], p[c.ip]}, []byte{h.probe[6] & 0x1f, h.probe[7], h.probe[mine.ip]}) {
		n.confirm(by, h)
	}
}

// linkFailed is a link that does not work, with what is known to have been on
// its routes over it.
func (n *Node) linkFailed(next netip.Addr) {
	n.linkBroken(next)
	if h := n.hops[next]; h != nil {
		h.sure = false
		if packets := n.settle(next, h); packets != nil {
			for _, p := range packets {
				n.rescue(p, next)
			}
			return
		}
	}
	// Of what the link layer lost nothing is left but where it came from.
	var keys [][2]netip.Addr
	for key, f := range n.flows {
		if f.next == next && n.Now-f.at < 2*time.Second && f.first != n.self {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b [2]netip.Addr) int { return slices.CompareFunc(a[:], b[:], netip.Addr.Compare) })
	for _, key := range keys {
		f := n.flows[key]
		n.tell(f.first, n.unreachable(f.first, next, f.level), f.back)
	}
}

func (n *Node) linkBroken(next netip.Addr) {
	if !next.IsValid() || next == n.self {
		return
	}
	if n.cache.lose(n.Now, n.self, next) {
		n.Count("neighbors_lost")
		n.Act(manet.Report{Kind: "neighbor_lost", Addr: next})
	}
	if n.config.Paths == nil { // ns-2 spreads only what it was told
		n.lastError, n.erredAt = n.unreachable(n.self, next, 0), n.Now
	}
}

func (n *Node) unreachable(to, next netip.Addr, salvage uint8) RouteError {
	return RouteError{Type: NodeUnreachable, Salvage: salvage, Source: n.self, Destination: to, Unreachable: next}
}

// tell sends a Route Error (8.3.4) back the way that a packet came or, where that
// is nil, along the cache's route. Where there is none it is not sent: whoever
// used a route here is in the cache by its own packet.
func (n *Node) tell(to netip.Addr, o RouteError, back []netip.Addr) {
	route, ok := back, true
	if back == nil {
		route, ok = n.cache.route(n.Now, to)
	}
	if !ok || to == n.self {
		n.Count("errors_without_route")
		return
	}
	n.Count("errors")
	next, p := n.routed(to, route, o)
	n.carry(next, p)
}

// cameBy is the way back that an error goes; nil: the cache's. A cache of paths
// learns no ways back from what is forwarded, and ns-2 reverses the packet's own.
func (n *Node) cameBy(p []byte, c *carried) []netip.Addr {
	if n.config.Paths == nil {
		return nil
	}
	return c.back(p)
}

// rescue does what can be done for a packet that its next hop did not get: a
// Route Error to where its route came from, then another route (8.3.4, 8.3.6).
func (n *Node) rescue(p []byte, next netip.Addr) {
	c, err := look(p)
	if err != nil {
		return
	}
	if c.option == 0 { // the test of a link that may work in one direction only
		n.suspect(next)
		return
	}
	h, _, err := Parse(p[c.ip:])
	if err != nil {
		return
	}
	if _, reply := find[RouteReply](&h); reply {
		n.suspect(next)
		n.Count("replies_lost")
	}
	level := c.salvage(p)
	if source(p) == n.self && level == 0 {
		if to := destination(p); h.Next != noNextHeader {
			n.send(c.strip(p), to) // which moves the header that to was in
		}
		return
	}
	first := source(p)
	if level > 0 {
		first = c.hop(p, 1)
	}
	if first != n.self {
		n.tell(first, n.unreachable(first, next, uint8(level)), n.cameBy(p, &c))
	}
	n.salvage(p, &c, &h, next)
}

// salvage sends a packet of another on by a route of the cache (8.3.6). A reply is
// to test its way back, and goes no other; over a cache of paths it does, unless
// it names the link that it was lost on.
func (n *Node) salvage(p []byte, c *carried, h *Header, lost netip.Addr) {
	level := c.salvage(p)
	to := destination(p)
	h.Options = slices.DeleteFunc(h.Options, func(o Option) bool {
		switch o := o.(type) {
		case SourceRoute, AckRequest:
			return true
		case RouteReply:
			return n.config.Paths == nil || joins(append([]netip.Addr{to}, o.Route...), n.self, lost)
		}
		return false
	})
	route, ok := n.cache.route(n.Now, to)
	if !ok || !n.config.Salvaging || level >= MaxSalvageCount || h.Next == noNextHeader && len(h.Options) == 0 ||
		to == n.self {
		n.Count("lost")
		if h.Next != noNextHeader {
			n.Act(manet.Drop{Destination: to, Reason: "not salvaged", Packets: [][]byte{p}})
		}
		return
	}
	if n.config.Paths == nil { // which moves only what its own node uses
		n.cache.use(n.Now, to)
	}
	way := append([]netip.Addr{n.self}, route...)
	h.Options = append([]Option{SourceRoute{Salvage: uint8(level + 1), SegmentsLeft: uint8(len(route)), Route: way}},
		h.Options...)
	n.along(route, to, rewrite(p, c, h), "salvaged")
}

// joins reports whether two nodes follow one another on a path, either first.
func joins(path []netip.Addr, a, b netip.Addr) bool {
	for i := 1; i < len(path); i++ {
		if path[i-1] == a && path[i] == b || path[i-1] == b && path[i] == a {
			return true
		}
	}
	return false
}
