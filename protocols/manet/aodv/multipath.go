package aodv

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// This file is what AOMDV does otherwise (Marina and Das, "Ad hoc on-demand
// multipath distance vector routing", WCMC 2006). Package aomdv says where the
// paper asks for what.

// Multipath is how a node keeps several paths to a destination.
type Multipath struct {
	Paths        int  // to a destination at most, and RREQ copies that a destination answers
	NodeDisjoint bool // a relay offers one way only; else ways may meet in a node, not in a link
}

// maxPaths bounds Multipath.Paths.
const maxPaths = 16

// protocol is the name that State gives.
func (c *Config) protocol() string {
	if c.Multipath != nil {
		return "aomdv"
	}
	return "aodv"
}

// path is one way to a destination.
type path struct {
	next    netip.Addr
	iface   int
	hops    int
	last    netip.Addr // the destination's neighbour on it; our own address where that is us
	expires manet.Time
}

// paths is what a route has besides the way that its own fields are.
type paths struct {
	others     []path // none of them shorter than the route itself
	last       netip.Addr
	advertised int // hops that others were told; notAdvertised: none were
	// by destination: next hops of this route that RREPs went since its last RREQ
	replied map[netip.Addr][]netip.Addr
}

// notAdvertised stands for the paper's infinite advertised hop count.
const notAdvertised = -1

// nextHops are those of all paths, the shortest first.
func (r *route) nextHops() []manet.Hop {
	out := append(make([]manet.Hop, 0, 1+len(r.multi.others)), manet.Hop{Addr: r.next, Interface: r.iface})
	for _, p := range r.multi.others {
		out = append(out, manet.Hop{Addr: p.next, Interface: p.iface})
	}
	return out
}

// lastHop is the last hop of a way that is offered.
func (n *Node) lastHop(o *offer) netip.Addr {
	if o.hops == 1 {
		return n.ifaces[n.in.Interface].Address
	}
	return o.last
}

// alternative reports whether an offer is one more path with the number that
// the route has, which AOMDV's own rule is for.
func (n *Node) alternative(r *route, o *offer) bool {
	return o.known && r.known && o.seq == r.seq && r.state == valid
}

// addPath is the paper's rule for an equal number: the teller's advertised hop
// count has to be below ours, as ours never grows while the number stays. The
// way is kept if no other shares its next or its last hop.
func (n *Node) addPath(r *route, o offer) bool {
	if r.multi.advertised != notAdvertised && o.hops > r.multi.advertised {
		return false
	}
	p := path{n.from, n.in.Interface, o.hops, n.lastHop(&o), n.Now + min(o.lifetime, maxLifetime)}
	if r.next == p.next && r.iface == p.iface {
		if p.hops <= r.hops {
			r.expires = max(r.expires, p.expires)
		}
		return p.hops <= r.hops
	}
	for i := range r.multi.others {
		q := &r.multi.others[i]
		if q.next == p.next && q.iface == p.iface && q.last == p.last && p.hops <= q.hops {
			q.expires = max(q.expires, p.expires)
			return true
		}
		if q.next == p.next || q.last == p.last {
			return false
		}
	}
	if len(r.multi.others) >= n.config.Multipath.Paths-1 || !p.last.IsValid() || p.last == r.multi.last {
		return false
	}
	r.asked = r.asked || o.asked
	n.Count("alternate_paths")
	n.insert(r, p)
	return true
}

// insert puts a way where its length belongs.
func (n *Node) insert(r *route, p path) {
	if p.hops < r.hops {
		p, r.next, r.iface, r.hops, r.multi.last, r.expires =
			path{r.next, r.iface, r.hops, r.multi.last, r.expires}, p.next, p.iface, p.hops, p.last,
			max(p.expires, r.expires)
		n.watch(r)
	}
	r.multi.others = append(r.multi.others, p)
	slices.SortStableFunc(r.multi.others, func(a, b path) int { return a.hops - b.hops })
	n.wakeBy(p.expires)
	n.install(r)
}

// dropPath takes the routes over a neighbour out of a route. It reports whether
// none is left, in which case the route is as it was and is the caller's to
// end.
func (n *Node) dropPath(r *route, neighbor netip.Addr) (last bool) {
	before := len(r.multi.others)
	r.multi.others = slices.DeleteFunc(r.multi.others, func(p path) bool { return p.next == neighbor })
	switch {
	case r.next != neighbor:
		if len(r.multi.others) < before {
			n.install(r)
		}
		return false
	case len(r.multi.others) == 0:
		return true
	}
	n.promote(r)
	return false
}

// promote makes the best alternate the route itself.
func (n *Node) promote(r *route) {
	p := r.multi.others[0]
	r.multi.others = slices.Delete(r.multi.others, 0, 1)
	r.next, r.iface, r.hops, r.multi.last, r.expires = p.next, p.iface, p.hops, p.last, p.expires
	n.Count("switched")
	n.wakeBy(r.expires)
	n.watch(r)
	n.install(r)
}

// expirePaths drops the paths whose time is over, and reports whether the route
// is there still by another way than before.
func (n *Node) expirePaths(r *route) bool {
	before := len(r.multi.others)
	r.multi.others = slices.DeleteFunc(r.multi.others, func(p path) bool { return p.expires <= n.Now })
	switch {
	case r.state != valid || before == 0:
		return false
	case r.expires <= n.Now && len(r.multi.others) > 0:
		n.promote(r)
		return true
	case r.expires > n.Now && len(r.multi.others) < before:
		n.install(r)
	}
	return false
}

// firstExpiry is when the first of a route's ways ends.
func (r *route) firstExpiry() manet.Time {
	at := r.expires
	for _, p := range r.multi.others {
		at = min(at, p.expires)
	}
	return at
}

// tellHops is the hop count that others are told. The first telling with a
// number fixes it at the longest path that there is then.
func (n *Node) tellHops(r *route) uint8 {
	if n.config.Multipath == nil {
		return uint8(r.hops)
	}
	if r.multi.advertised == notAdvertised {
		r.multi.advertised = r.hops
		for _, p := range r.multi.others {
			r.multi.advertised = max(r.multi.advertised, p.hops)
		}
	}
	return uint8(r.multi.advertised)
}

// advertiseReverse makes an RREQ that is forwarded tell the advertised hop
// count, and the neighbour of the originator that it came over.
func (n *Node) advertiseReverse(m *RREQ) {
	if n.config.Multipath == nil {
		m.FirstHop = netip.Addr{}
		return
	}
	if m.HopCount == 1 {
		m.FirstHop = n.ifaces[n.in.Interface].Address
	}
	if r := n.active(m.Originator); r != nil && r.known && r.seq == m.OriginatorSeq {
		m.HopCount = n.tellHops(r)
	}
}

// anotherCopy is a further copy of an RREQ: perhaps another way back, and where
// it asks for us, one more to answer over.
func (n *Node) anotherCopy(id requestID, m RREQ) {
	// Only where the first copy is our way: another may have come over who took
	// it from us, when we believed something newer that is forgotten since.
	if r := n.active(m.Originator); n.config.Multipath == nil || r == nil || !r.known || r.seq != m.OriginatorSeq {
		return
	}
	m.HopCount++
	lifetime := 2*n.config.NetTraversalTime() - 2*time.Duration(m.HopCount)*n.config.NodeTraversalTime
	n.take(offer{to: m.Originator, seq: m.OriginatorSeq, known: true, hops: int(m.HopCount), lifetime: lifetime,
		asked: true, last: m.FirstHop})
	r := n.active(m.Originator)
	if r == nil || !n.ifaces.IsOwn(m.Destination) || len(n.copies[id]) >= n.config.Multipath.Paths ||
		slices.Contains(n.copies[id], n.from) {
		return
	}
	for _, hop := range r.nextHops() {
		if hop.Addr == n.from {
			n.copies[id] = append(n.copies[id], n.from)
			n.sendRREPOver(RREP{Destination: m.Destination, DestinationSeq: n.seq, Originator: m.Originator,
				Lifetime: n.config.myRouteTimeout()}, hop)
		}
	}
}

// wayBack is where an RREP goes on to its originator: the route's next hop or,
// in AOMDV, that of a way which no RREP to the same RREQ has gone yet.
func (n *Node) wayBack(originator netip.Addr, r *route) (hop manet.Hop, ok bool) {
	back := n.active(originator)
	if back == nil {
		return hop, false
	}
	if n.config.Multipath == nil {
		return manet.Hop{Addr: back.next, Interface: back.iface}, back.next != n.from
	}
	told := back.multi.replied[r.to]
	if n.config.Multipath.NodeDisjoint && len(told) > 0 || told == nil && len(back.multi.replied) >= maxPrecursors {
		return hop, false
	}
	for _, hop := range back.nextHops() {
		if hop.Addr != n.from && hop.Addr != r.next && !slices.Contains(told, hop.Addr) {
			if back.multi.replied == nil {
				back.multi.replied = map[netip.Addr][]netip.Addr{}
			}
			back.multi.replied[r.to] = append(told, hop.Addr)
			return hop, true
		}
	}
	return hop, false
}
