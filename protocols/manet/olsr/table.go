package olsr

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// link is a link tuple (RFC 3626 section 4.2.1) with the hysteresis of section
// 14.1 and the packet counts of the ETX option. A time that is not after now
// has expired.
type link struct {
	local   int        // index of the own interface
	remote  netip.Addr // the neighbour's interface
	main    netip.Addr // the neighbour's main address
	symTime manet.Time
	asyTime manet.Time
	time    manet.Time
	failed  manet.Time // L_LOST_LINK_time: the link counts as lost until then

	pending  bool
	quality  float64
	lastSeq  uint16
	seqKnown bool
	htime    manet.Time
	silence  manet.Time // when the next packet is overdue

	etx etx
}

func (l *link) usable(now manet.Time, hysteresis bool) bool {
	return l.failed <= now && (!hysteresis || !l.pending)
}

// symmetric reports whether the link may carry data (sections 4.2.1, 14.2).
func (l *link) symmetric(now manet.Time, hysteresis bool) bool {
	return l.usable(now, hysteresis) && l.symTime > now
}

// linkType is the type to declare in a HELLO; ok is false for a link that is
// not to be declared at all (sections 6.2, 14.2).
func (l *link) linkType(now manet.Time, hysteresis bool) (kind uint8, ok bool) {
	switch {
	case l.failed > now:
		return LinkLost, true
	case hysteresis && l.pending:
		return 0, false
	case l.symTime > now:
		return LinkSymmetric, true
	case l.asyTime > now:
		return LinkAsymmetric, true
	}
	return LinkLost, true
}

// neighbor is a neighbour tuple (section 4.3.1) with its 2-hop tuples (4.3.2).
type neighbor struct {
	main        netip.Addr
	id          int32
	willingness uint8
	symmetric   bool
	mpr         bool
	best        *link // of its symmetric links, the one that data takes
	twoHop      []edge
}

// edge is a node that another one says is its symmetric neighbour, from a
// HELLO (2-hop tuple) or a TC (topology tuple, section 4.4).
type edge struct {
	to      netip.Addr
	id      int32 // of to, see graph
	expires manet.Time
	seq     uint16 // T_seq; 0 in 2-hop tuples
	quality Quality
}

// find looks for a destination, first where it was expected: messages repeat
// their order.
func find(edges []edge, to netip.Addr, expected int) int {
	if expected < len(edges) && edges[expected].to == to {
		return expected
	}
	for i := range edges {
		if edges[i].to == to {
			return i
		}
	}
	return -1
}

// origin is what the TCs of one node said.
type origin struct {
	id      int32
	ansn    uint16
	edges   []edge
	soonest manet.Time // no edge expires before
	stale   int        // TCs in a row with an older ANSN
	lastOld uint16     // message sequence number of the last of these
}

// duplicate is a duplicate tuple (section 3.4) of one originator.
type duplicate struct {
	seq       uint16
	forwarded bool
	ifaces    uint32 // bit i: received on interface i
	expires   manet.Time
}

// maxDuplicates bounds one originator's tuples: at the default intervals 30 s
// see 18 messages.
const maxDuplicates = 256

// seen finds or makes the tuple of a message; known is false when it was made.
// It is nil where the tables are full.
func (n *Node) seen(m *Message) (d *duplicate, known bool) {
	list := n.duplicates[m.Originator]
	for i := range list {
		if list[i].seq == m.Seq && list[i].expires > n.Now {
			return &list[i], true
		}
	}
	if list == nil && len(n.duplicates) >= n.config.MaxEntries {
		n.Count("full_duplicates")
		return nil, false
	}
	fresh := duplicate{seq: m.Seq, expires: n.Now + n.config.DuplicateHold}
	for i := range list {
		if list[i].expires <= n.Now {
			list[i] = fresh
			return &list[i], false
		}
	}
	if len(list) >= maxDuplicates { // a flood: the oldest gives way
		copy(list, list[1:])
		list[len(list)-1] = fresh
		return &list[len(list)-1], false
	}
	list = append(list, fresh)
	n.duplicates[m.Originator] = list
	return &list[len(list)-1], false
}

// association maps an interface address to its node (section 4.1).
type association struct {
	main    netip.Addr
	expires manet.Time
}

// mainOf is the main address of an interface address (section 5.5).
func (n *Node) mainOf(a netip.Addr) netip.Addr {
	if as, ok := n.associations[a]; ok && as.expires > n.Now {
		return as.main
	}
	return a
}

// gateway names a network behind a node (section 12.2).
type gateway struct {
	node    netip.Addr
	network netip.Prefix
}

// usableAddr reports whether an address may be another node's.
func (n *Node) usableAddr(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a != broadcast4 && !n.isOwn(a)
}

func (n *Node) isOwn(a netip.Addr) bool {
	for i := range n.ifaces {
		if n.ifaces[i].Address == a {
			return true
		}
	}
	return false
}

var broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// linkOf is the link to a neighbour's interface over one of ours.
func (n *Node) linkOf(local int, remote netip.Addr) *link {
	for _, l := range n.links {
		if l.local == local && l.remote == remote {
			return l
		}
	}
	return nil
}

// symmetricSender reports whether a packet came over a symmetric link.
func (n *Node) symmetricSender(local int, from netip.Addr) (*link, bool) {
	l := n.linkOf(local, from)
	return l, l != nil && l.symmetric(n.Now, n.config.Hysteresis)
}

// refreshNeighbors derives the neighbour set from the links (section 8.1) and
// drops what hung on a neighbour that is lost (section 8.5).
func (n *Node) refreshNeighbors() {
	n.linksChanged = false
	before := map[netip.Addr]*link{}
	for main, nb := range n.neighbors {
		before[main], nb.best = nb.best, nil
	}
	kept := map[netip.Addr]bool{}
	for _, l := range n.links {
		kept[l.main] = true
		nb := n.neighbors[l.main]
		if nb == nil {
			nb = &neighbor{main: l.main, id: n.graph.intern(l.main), willingness: WillDefault}
			n.neighbors[l.main] = nb
		}
		if l.symmetric(n.Now, n.config.Hysteresis) && n.better(l, nb.best) {
			nb.best = l
		}
	}
	for main, nb := range n.neighbors {
		was := nb.symmetric
		nb.symmetric = nb.best != nil
		if was && !nb.symmetric {
			nb.twoHop, nb.mpr = nil, false
			delete(n.selectors, main)
			n.report("neighbor_lost", main)
		}
		if was && nb.symmetric && before[main] != nb.best {
			n.routesStale = true
		}
		if was != nb.symmetric {
			n.mprsChanged, n.routesChanged, n.advertisedChanged = true, true, true
		}
		if !kept[main] {
			delete(n.neighbors, main)
		}
	}
}

// better reports whether data should rather take link a than b: the cheaper
// one, then the one between main addresses, then the first interface.
func (n *Node) better(a, b *link) bool {
	switch {
	case b == nil:
		return true
	case n.config.ETX && a.etx.cost() != b.etx.cost():
		return a.etx.cost() < b.etx.cost()
	case (a.remote == a.main) != (b.remote == b.main):
		return a.remote == a.main
	case a.local != b.local:
		return a.local < b.local
	}
	return a.remote.Less(b.remote)
}

// expireLinks looks at the link set after a time has come.
func (n *Node) expireLinks() {
	kept := n.links[:0]
	for _, l := range n.links {
		if n.config.Hysteresis {
			for l.silence <= n.Now {
				n.instable(l)
				l.lastSeq++ // the packet that is now counted as lost
				l.silence += max(l.htime, minHTime)
			}
		}
		if l.time > n.Now {
			kept = append(kept, l)
		}
	}
	clear(n.links[len(kept):])
	n.links = kept
	n.linksChanged = true
}

// nextLinkTime is the earliest time at which a link's state may change.
func (n *Node) nextLinkTime() (manet.Time, bool) {
	var first manet.Time
	found := false
	consider := func(t manet.Time) {
		if t > n.Now && (!found || t < first) {
			first, found = t, true
		}
	}
	for _, l := range n.links {
		consider(l.time)
		consider(l.symTime)
		consider(l.asyTime)
		consider(l.failed)
		if n.config.Hysteresis {
			consider(l.silence)
		}
	}
	return first, found
}

// sweep drops what has expired from the tables that grow with the network.
func (n *Node) sweep() {
	for _, nb := range n.neighbors {
		if kept, _ := n.alive(nb.twoHop); len(kept) != len(nb.twoHop) {
			nb.twoHop = kept
			n.mprsChanged, n.routesStale = true, true
		}
	}
	for main, expires := range n.selectors {
		if expires <= n.Now {
			delete(n.selectors, main)
			n.advertisedChanged = true
		}
	}
	for a, o := range n.topology {
		if o.soonest <= n.Now {
			kept, soonest := n.alive(o.edges)
			n.routesStale = n.routesStale || len(kept) != len(o.edges)
			o.edges, o.soonest = kept, soonest
		}
		if len(o.edges) == 0 {
			delete(n.topology, a)
		}
	}
	for a, as := range n.associations {
		if as.expires <= n.Now {
			delete(n.associations, a)
			n.routesStale = true
		}
	}
	for g, expires := range n.gateways {
		if expires <= n.Now {
			delete(n.gateways, g)
			n.routesStale = true
		}
	}
	n.sweepDuplicates()
	n.renumber()
}

func (n *Node) sweepDuplicates() {
	for a, list := range n.duplicates {
		alive := false
		for i := range list {
			alive = alive || list[i].expires > n.Now
		}
		if !alive {
			delete(n.duplicates, a)
		}
	}
}

// alive drops the edges that have expired, and says when the first of the rest
// will.
func (n *Node) alive(edges []edge) (kept []edge, soonest manet.Time) {
	kept = slices.DeleteFunc(edges, func(e edge) bool { return e.expires <= n.Now })
	for i := range kept {
		if i == 0 || kept[i].expires < soonest {
			soonest = kept[i].expires
		}
	}
	return kept, soonest
}
