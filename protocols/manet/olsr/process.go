package olsr

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// restartAfter is how many TCs in a row with an older ANSN mean that their
// originator lost its state: RFC 3626 has no such rule and waits for the
// topology to time out; one late TC is not enough to disturb it.
const restartAfter = 3

// minHTime keeps a hostile emission interval from costing time.
const minHTime = 50 * 1e6 // 50 ms in ns

// receive takes a packet apart (section 3.4).
func (n *Node) receive(p manet.Packet) {
	if p.Interface < 0 || p.Interface >= len(n.ifaces) || !n.ifaces[p.Interface].up || !n.usableAddr(p.From) {
		return
	}
	n.in = p
	n.inLink = n.linkOf(p.Interface, p.From)
	if len(p.Data) >= packetHeader {
		n.inSeq = binary.BigEndian.Uint16(p.Data[2:])
	}
	n.inCounted = false
	if err := eachMessage(p.Data, n.size, n.message); err != nil {
		n.Count("malformed_packets")
		return
	}
	n.countOnce()
}

// countOnce counts the packet for its link; the first HELLO of a neighbour
// makes the link first.
func (n *Node) countOnce() {
	if n.inLink != nil && !n.inCounted {
		n.inCounted = true
		n.countPacket(n.inLink, n.inSeq)
	}
}

// message is sections 3.4 and 3.4.1: processing, then forwarding.
func (n *Node) message(m Message) {
	if m.TTL == 0 || m.Originator == n.main {
		return
	}
	if !n.usableAddr(m.Originator) {
		n.Count("bad_originators")
		return
	}
	if m.Type == TypeHello || m.Type == TypeLQHello {
		if (m.Type == TypeLQHello) == n.config.ETX {
			n.hello(&m)
		}
		return // never forwarded (section 6.2), hence not among the duplicates
	}
	// Sections 5.4, 9.5, 12.5 and 3.4.1 all begin so.
	l, ok := n.symmetricSender(n.in.Interface, n.in.From)
	if !ok {
		n.Count("from_asymmetric")
		return
	}
	d, known := n.seen(&m)
	if d == nil {
		return
	}
	if !known && !n.process(&m) {
		n.Count("malformed_messages")
		// Not forwarded, but remembered: other copies are as bad.
		d.forwarded = true
	}
	bit := uint32(1) << n.in.Interface
	if d.ifaces&bit != 0 || d.forwarded {
		n.Count("duplicates")
		return
	}
	d.ifaces |= bit
	d.expires = n.Now + n.config.DuplicateHold
	if expires, selector := n.selectors[l.main]; selector && expires > n.Now && m.TTL > 1 {
		d.forwarded = true
		n.forward(m)
	}
}

// process dispatches on the type; false is a body that cannot be read.
func (n *Node) process(m *Message) bool {
	switch m.Type {
	case TypeTC, TypeLQTC:
		if (m.Type == TypeLQTC) != n.config.ETX {
			return true
		}
		return n.tc(m)
	case TypeMID:
		return n.mid(m)
	case TypeHNA:
		return n.hna(m)
	}
	n.Count("unknown_messages")
	return true
}

// hello is sections 7.1.1 (links), 8.1.1 (willingness), 8.2.1 (2-hop
// neighbours) and 8.4.1 (MPR selectors).
func (n *Node) hello(m *Message) {
	h, err := ParseHello(m.Body, n.size, m.Type == TypeLQHello)
	if err != nil {
		n.Count("malformed_messages")
		return
	}
	valid := DecodeTime(m.VTime)
	l := n.linkFor(m, &h)
	if l == nil {
		return
	}
	l.asyTime = n.Now + valid
	mine, quality, listed := n.listed(&h)
	switch {
	case listed && mine == LinkLost:
		l.symTime = 0
		n.linksChanged = true
	case listed && (mine == LinkSymmetric || mine == LinkAsymmetric):
		if l.symTime <= n.Now {
			n.linksChanged = true
		}
		l.symTime = n.Now + valid
		l.time = l.symTime + n.config.NeighborHold
	}
	l.time = max(l.time, l.asyTime)
	if n.config.ETX {
		if listed {
			l.etx.current.NLQ = quality.LQ
		}
		l.etx.missed = 0
		l.etx.overdue = n.Now + l.htime*3/2
	}
	n.wakeForLinks(min(l.asyTime, l.time))
	if n.linksChanged {
		n.refreshNeighbors()
	}
	nb := n.neighbors[l.main]
	if nb == nil {
		return
	}
	if nb.willingness != h.Willingness {
		nb.willingness = h.Willingness
		n.mprsChanged, n.routesStale = true, true
	}
	if nb.symmetric {
		n.neighborsOf(nb, &h, n.Now+valid)
	}
}

// linkFor finds or makes the link that a HELLO came over.
func (n *Node) linkFor(m *Message, h *Hello) *link {
	l := n.inLink
	if l == nil {
		if len(n.links) >= n.config.MaxEntries {
			n.Count("full_links")
			return nil
		}
		l = &link{local: n.in.Interface, remote: n.in.From, main: m.Originator, pending: n.config.Hysteresis,
			etx: newETX(n.inSeq)}
		n.links = append(n.links, l)
		n.inLink = l
		n.linksChanged = true
	}
	if l.main != m.Originator { // the neighbour has another main address now
		l.main = m.Originator
		n.linksChanged = true
	}
	l.htime = max(DecodeTime(h.HTime), minHTime)
	l.time = max(l.time, n.Now+DecodeTime(m.VTime))
	n.countOnce()
	if n.config.Hysteresis {
		n.wakeForLinks(l.silence)
	}
	return l
}

// listed looks for the receiving interface in a HELLO.
func (n *Node) listed(h *Hello) (kind uint8, q Quality, ok bool) {
	own := n.ifaces[n.in.Interface].Address
	for _, group := range h.Links {
		for _, a := range group.Addresses {
			if a.Addr == own && group.Link != LinkUnspecified {
				return group.Link, a.Quality, true
			}
		}
	}
	return 0, Quality{}, false
}

// neighborsOf takes in what a symmetric neighbour says of its neighbours.
func (n *Node) neighborsOf(nb *neighbor, h *Hello, until manet.Time) {
	position := 0
	for _, group := range h.Links {
		symmetric := group.Neighbor == NeighborSym || group.Neighbor == NeighborMPR
		for _, a := range group.Addresses {
			if n.isOwn(a.Addr) {
				if group.Neighbor == NeighborMPR {
					if n.selectors[nb.main] <= n.Now {
						n.advertisedChanged = true
					}
					n.selectors[nb.main] = until
				}
				continue
			}
			main := n.mainOf(a.Addr)
			if !n.usableAddr(main) || main == nb.main {
				continue
			}
			at := find(nb.twoHop, main, position)
			switch {
			case symmetric:
				n.addTwoHop(nb, at, edge{to: main, id: -1, expires: until, quality: a.Quality})
			case at >= 0:
				nb.twoHop = append(nb.twoHop[:at], nb.twoHop[at+1:]...)
				n.mprsChanged, n.routesStale = true, true
			}
			position++
		}
	}
}

func (n *Node) addTwoHop(nb *neighbor, at int, e edge) {
	changed, ok := n.put(&nb.twoHop, at, e)
	if !ok {
		n.Count("full_two_hop")
	}
	if changed {
		n.mprsChanged, n.routesStale = true, true
	}
}

// put takes an edge in place of the one at an index, or as another where that
// is -1. It reports whether anything follows from it (the edge is new, its cost
// is another, or it had expired and was only not swept away yet), and whether
// there was room.
func (n *Node) put(edges *[]edge, at int, e edge) (changed, ok bool) {
	if at < 0 {
		if len(*edges) >= n.config.MaxEntries/16 {
			return false, false
		}
		e.id = n.graph.intern(e.to)
		*edges = append(*edges, e)
		return true, true
	}
	old := &(*edges)[at]
	changed = old.expires <= n.Now || n.config.ETX && cost(old.quality) != cost(e.quality)
	e.id = old.id
	*old = e
	return changed, true
}

// tc is section 9.5, after its first step.
func (n *Node) tc(m *Message) bool {
	quality := m.Type == TypeLQTC
	t, err := ParseTC(m.Body, n.size, quality)
	if err != nil {
		return false
	}
	o := n.topology[m.Originator]
	if o == nil {
		if len(n.topology) >= n.config.MaxEntries {
			n.Count("full_topology")
			return true
		}
		o = &origin{id: n.graph.intern(m.Originator), ansn: t.ANSN}
		n.topology[m.Originator] = o
	}
	if manet.After16(o.ansn, t.ANSN) {
		if o.stale == 0 || manet.After16(m.Seq, o.lastOld) {
			o.stale++
			o.lastOld = m.Seq
		}
		if o.stale < restartAfter {
			n.Count("old_tcs")
			return true
		}
		o.edges = o.edges[:0]
		n.routesStale = true
		n.report("restart_seen", m.Originator)
	}
	o.stale = 0
	o.ansn = t.ANSN
	n.advertised(o, &t, n.Now+DecodeTime(m.VTime))
	return true
}

// advertised updates an originator's topology tuples and drops those of an
// older ANSN.
func (n *Node) advertised(o *origin, t *TC, until manet.Time) {
	for i, a := range t.Neighbors {
		if !a.Addr.IsValid() || a.Addr.IsUnspecified() || a.Addr.IsMulticast() || a.Addr == broadcast4 {
			continue
		}
		e := edge{to: a.Addr, expires: until, seq: t.ANSN, quality: a.Quality}
		changed, ok := n.put(&o.edges, find(o.edges, a.Addr, i), e)
		if !ok {
			n.Count("full_topology")
			break
		}
		n.routesStale = n.routesStale || changed
	}
	o.soonest = min(o.soonest, until)
	before := len(o.edges)
	o.edges = slices.DeleteFunc(o.edges, func(e edge) bool { return e.seq != t.ANSN })
	if len(o.edges) != before {
		n.routesStale = true
	}
}

// mid is section 5.4.
func (n *Node) mid(m *Message) bool {
	addresses, err := ParseMID(m.Body, n.size)
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if !n.usableAddr(a) || a == m.Originator {
			continue
		}
		old, ok := n.associations[a]
		if !ok && len(n.associations) >= n.config.MaxEntries {
			n.Count("full_associations")
			break
		}
		if old.main != m.Originator || old.expires <= n.Now {
			n.routesStale, n.mprsChanged = true, true
			n.renameTwoHop(a, m.Originator)
		}
		n.associations[a] = association{m.Originator, n.Now + DecodeTime(m.VTime)}
	}
	return true
}

// renameTwoHop puts a main address in place of an interface address that was
// taken for one (section 5.5).
func (n *Node) renameTwoHop(iface, main netip.Addr) {
	for _, nb := range n.neighbors {
		at := find(nb.twoHop, iface, 0)
		if at < 0 {
			continue
		}
		if main == nb.main || find(nb.twoHop, main, 0) >= 0 {
			nb.twoHop = append(nb.twoHop[:at], nb.twoHop[at+1:]...)
		} else {
			nb.twoHop[at].to, nb.twoHop[at].id = main, n.graph.intern(main)
		}
	}
}

// hna is section 12.5.
func (n *Node) hna(m *Message) bool {
	networks, err := ParseHNA(m.Body, n.size)
	if err != nil {
		return false
	}
	for _, network := range networks {
		g := gateway{m.Originator, network}
		if expires, ok := n.gateways[g]; !ok || expires <= n.Now {
			if !ok && len(n.gateways) >= n.config.MaxEntries {
				n.Count("full_gateways")
				break
			}
			n.routesStale = true
		}
		n.gateways[g] = n.Now + DecodeTime(m.VTime)
	}
	return true
}

// linkFailed is section 13: the link layer says that a neighbour is gone.
func (n *Node) linkFailed(e manet.LinkFailed) {
	l := n.linkOf(e.Interface, e.Neighbor)
	if l == nil || !n.config.LinkFailures || l.failed > n.Now {
		return
	}
	l.failed = min(l.time, n.Now+n.config.NeighborHold)
	l.symTime = 0
	n.wakeForLinks(l.failed)
	n.linksChanged = true
	n.Count("link_failures")
}
