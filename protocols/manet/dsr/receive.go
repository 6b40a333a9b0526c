package dsr

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// receive is section 8.1.4.
func (n *Node) receive(e manet.Received) {
	c, err := look(e.Packet)
	if err != nil {
		n.Count("malformed")
		return
	}
	p := e.Packet[:binary.BigEndian.Uint16(e.Packet[2:])]
	if !n.up || !usable(source(p)) || c.option != 0 && !(c.sound(p) && c.sentBy(p, e.From)) {
		n.Count("hostile")
		return
	}
	var h *Header
	if c.others {
		parsed, _, err := Parse(p[c.ip:])
		if err != nil {
			n.Count("malformed")
			return
		}
		h = &parsed
	}
	if e.Overheard {
		n.overhear(p, &c, h)
		return
	}
	if h != nil {
		if n.options(p, h, e.From) {
			return
		}
		if p, err = n.unknown(p, &c, h); err != nil {
			n.Count("unknown_dropped")
			return
		}
	}
	n.take(p, &c)
}

// options processes all but the source route and requests for acknowledgements.
// It reports whether the packet has come to its end.
func (n *Node) options(p []byte, h *Header, from netip.Addr) bool {
	for _, o := range h.Options {
		switch o := o.(type) {
		case RouteReply:
			if !n.learnReply(p, o) {
				return true
			}
		case RouteError:
			n.routeError(p, o)
		case Ack:
			n.acknowledged(o)
		}
	}
	o, request := find[RouteRequest](h)
	switch _, routed := find[SourceRoute](h); {
	case request && routed: // unspecified (8.2.1)
		n.Count("hostile")
	case request:
		n.asked(p, h, o, from)
	}
	return request
}

// unknown does with options that the RFC does not have what their types ask
// for (8.1.6). It gives the packet that goes on. The first that its source is to
// hear about brings an error; one for each would make many packets of one.
func (n *Node) unknown(p []byte, c *carried, h *Header) ([]byte, error) {
	kept := make([]Option, 0, len(h.Options))
	changed, told := false, source(p) == n.self
	for _, option := range h.Options {
		o, ok := option.(Unknown)
		if ok && o.Type&0x80 != 0 && !told {
			told = true
			n.tell(source(p), RouteError{Type: OptionNotSupported, Source: n.self, Destination: source(p),
				Unsupported: o.Type}, nil)
		}
		switch act := o.Type & 0x60; {
		case ok && act == 0x60:
			return nil, malformed("an option of type %d has the packet dropped", o.Type)
		case ok && act == 0x20:
			changed = true
			continue
		case ok && act == 0x40 && len(o.Data) > 0:
			o.Data[0] |= 0x80
			option, changed = o, true
		}
		kept = append(kept, option)
	}
	if !changed {
		return p, nil
	}
	p = rewrite(p, c, &Header{Next: h.Next, Options: kept})
	again, err := look(p)
	*c = again
	return p, err
}

// rewrite gives a packet another DSR Options header.
func rewrite(p []byte, c *carried, h *Header) []byte {
	out := append(slices.Clone(p[:c.ip]), h.Marshal()...)
	out = append(out, p[c.end:binary.BigEndian.Uint16(p[2:])]...)
	seal(out)
	return out
}

// learnReply adds a Route Reply's links (8.1.4). An external last hop is left
// out, so that no route leads over one.
func (n *Node) learnReply(p []byte, o RouteReply) bool {
	path := append([]netip.Addr{destination(p)}, o.Route...)
	if !distinct(path) {
		n.Count("hostile")
		return false
	}
	n.cache.restore(n.proven(p, path))
	if o.LastExternal {
		path = path[:len(path)-1]
	}
	if len(path) == 2 && path[0] == n.self {
		delete(n.blacklist, path[1]) // the answer to a test of the link (8.2.2)
	}
	n.cache.learn(n.Now, path, destination(p) == n.self, netip.Addr{})
	return true
}

// proven is how far the links of a Reply's path are known to be there now: all
// of them where the target itself sent it, and those that it came over where it
// answers us.
func (n *Node) proven(p []byte, path []netip.Addr) []netip.Addr {
	last := path[len(path)-1]
	if source(p) == last {
		return path
	}
	if r := n.requests[last]; r == nil || !r.active || destination(p) != n.self {
		return nil
	}
	return path[:slices.Index(path, source(p))+1]
}

// routeError is section 8.3.5. What this node spread itself comes back with its
// neighbours' copies, and is not an error of now.
func (n *Node) routeError(p []byte, o RouteError) {
	if o.Type != NodeUnreachable || o.Source == n.self || source(p) == n.self || !usable(o.Source) ||
		!usable(o.Unreachable) {
		return
	}
	n.Count("errors_heard")
	n.cache.lose(n.Now, o.Source, o.Unreachable)
	if o.Destination == n.self {
		n.lastError, n.erredAt = o, n.Now
	}
}

// take is section 8.1.5 for a packet that was sent to this node.
func (n *Node) take(p []byte, c *carried) {
	previous, last := source(p), true
	if c.option != 0 {
		at := c.next(p)
		if c.hop(p, at) != n.self {
			n.Count("not_for_us")
			return
		}
		previous, last = c.hop(p, at-1), at > c.n
		n.learn(p, c, netip.Addr{})
	} else if destination(p) != n.self {
		n.Count("not_for_us")
		return
	}
	if c.ack != 0 && previous != n.self {
		id := binary.BigEndian.Uint16(p[c.ack+2:])
		n.transmit(previous, n.compose(previous, 1, Ack{ID: id, Source: n.self, Destination: previous}))
	}
	if last {
		n.deliver(p, c)
		return
	}
	next, err := Forward(p, n.self)
	if err != nil {
		n.Count("ttl_exceeded")
		return
	}
	n.Count("forwarded")
	n.handed(p, c, next)
	n.carry(next, p)
}

// deliver hands what a packet carried to the kernel, if anything.
func (n *Node) deliver(p []byte, c *carried) {
	switch p[c.ip] {
	case noNextHeader:
	case Protocol: // a MUST NOT of 8.1.2; it could go round through us for ever
		n.Count("hostile")
	default:
		if source(p) == n.self {
			n.Count("hostile")
			return
		}
		n.Count("delivered")
		n.Act(manet.Deliver{Packet: c.strip(p)})
	}
}

// learn takes in a source route (8.1.4); by says who was overheard sending it. A
// link cache takes it once a second for packets that all bear the same.
func (n *Node) learn(p []byte, c *carried, by netip.Addr) {
	f := n.flow(p)
	route := fingerprint(p[c.option+4 : c.option+4+4*c.n])
	if n.config.Paths == nil && f.route == route && n.Now-f.at < time.Second {
		return
	}
	f.route, f.at = route, n.Now
	path := c.path(p)
	flags := p[c.option+2]
	if flags&0x80 != 0 && c.salvage(p) == 0 { // external hops are not cached
		path = path[1:]
	}
	if flags&0x40 != 0 {
		path = path[:len(path)-1]
	}
	n.cache.learn(n.Now, path, false, by)
}

// fingerprint is the hash FNV-1a.
func fingerprint(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, v := range b {
		h = (h ^ uint64(v)) * 1099511628211
	}
	return h
}

func (n *Node) flow(p []byte) *flow {
	return entry(n.flows, [2]netip.Addr{source(p), destination(p)}, n.config.MaxEntries)
}

// entry is a table's entry under a key, made where there is none; a table that has most
// entries already is emptied first.
func entry[K comparable, V any](table map[K]*V, key K, most int) *V {
	v := table[key]
	if v == nil {
		if len(table) >= most {
			clear(table)
		}
		v = new(V)
		table[key] = v
	}
	return v
}

// handed notes where a flow goes on, for a link that fails without saying what
// was lost.
func (n *Node) handed(p []byte, c *carried, next netip.Addr) {
	f := n.flow(p)
	f.next, f.level, f.first, f.back = next, uint8(c.salvage(p)), source(p), n.cameBy(p, c)
	if f.level > 0 {
		f.first = c.hop(p, 1)
	}
}

// overhear takes from a packet for others what is of use: links, errors,
// acknowledgements by forwarding (8.3.2), and a shorter route (3.4.3).
func (n *Node) overhear(p []byte, c *carried, h *Header) {
	if h != nil {
		for _, o := range h.Options {
			switch o := o.(type) {
			case RouteReply:
				if !n.learnReply(p, o) {
					return
				}
			case RouteError:
				n.routeError(p, o)
			}
		}
	}
	if c.option == 0 {
		return
	}
	at := c.next(p)
	n.passedOn(p, c, at)
	if source(p) == n.self {
		return
	}
	n.learn(p, c, c.hop(p, at-1))
	if h == nil {
		n.needless(source(p), destination(p), c.n+1)
		n.shorten(p, c, at)
	}
}

// shorten answers a packet that could have come to us at once (8.1.5).
func (n *Node) shorten(p []byte, c *carried, at int) {
	if !n.config.Shortening || c.salvage(p) != 0 {
		return
	}
	later := 0
	for i := at + 1; i <= c.n+1; i++ {
		if c.hop(p, i) == n.self {
			later = i
		}
	}
	if later == 0 {
		return
	}
	key := [2]netip.Addr{source(p), c.hop(p, at-1)}
	if last, ok := n.gratis[key]; ok && n.Now-last < n.config.GratReplyHoldoff || len(n.gratis) >= n.config.MaxEntries {
		return
	}
	n.gratis[key] = n.Now
	n.Count("gratuitous_replies")
	path := append(c.path(p), netip.Addr{})[:c.n+2]
	came := path[1:at]
	on := slices.Clone(path[later:])
	n.answer(source(p), came, on, n.jitter.Below(n.config.BroadcastJitter), nil)
}
