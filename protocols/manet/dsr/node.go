package dsr

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Kinds of timers. Those of requests and of maintenance have an address.
const (
	timerTables = iota + 1
	timerRequest
	timerDelayed
	timerMaintain
)

// Node is DSR on one node; see manet.Node for how it is driven. It is a
// carrier: data packets go through it.
type Node struct {
	manet.Turn
	config Config
	self   netip.Addr
	up     bool
	jitter *manet.Jitter
	cache  cache
	ways   map[netip.Addr]*way // of our own packets, as last reported

	buffer    *manet.Buffer[[]byte]           // Send Buffer (4.2)
	requests  map[netip.Addr]*request         // Route Request Table: targets (4.3)
	heard     map[netip.Addr]*initiator       // and initiators
	gratis    map[[2]netip.Addr]time.Duration // Gratuitous Route Reply Table (4.4)
	blacklist map[netip.Addr]manet.Time       // since when (4.6)
	hops      map[netip.Addr]*hop             // maintenance of each next hop, and its buffer (4.5)
	held      int                             // packets in the Maintenance Buffer
	flows     map[[2]netip.Addr]*flow         // source routes seen of late
	delayed   *manet.Delayed[delayed]
	lastError RouteError // the latest that was for us, to tell others of (3.4.4)
	erredAt   manet.Time
	requestID uint16
	ackID     uint16
	ipID      uint16
	awake     bool
	headers   map[int][]manet.Message // what a data packet's header counts as

	// Of the event at hand.
	known uint64 // version of the cache when the Send Buffer was last looked at
}

// delayed is a packet that waits for its jitter.
type delayed struct {
	next   netip.Addr // not valid: everybody
	packet []byte
	cached *awaited // a reply from the cache, that may become needless
}

// awaited is a route that a reply offers.
type awaited struct {
	initiator, target netip.Addr
	hops              int
}

// flow is packets from a source to a destination, as they came by.
type flow struct {
	route uint64 // hash of their source route
	at    manet.Time
	next  netip.Addr   // that we handed them to
	first netip.Addr   // who put the source route on them
	back  []netip.Addr // the nodes between, from here on
	level uint8        // of salvage
}

// way is the path of our own packets to a destination: the nodes between.
type way struct {
	found bool
	route []netip.Addr
}

// New makes a node. One that lost its state is a new one.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config, self: config.Interface.Address, up: true, jitter: manet.NewJitter(config.Seed),
		buffer:   manet.NewBuffer[[]byte](config.SendBuffer, config.SendBuffer, config.SendBufferTimeout),
		requests: map[netip.Addr]*request{}, heard: map[netip.Addr]*initiator{},
		gratis:    map[[2]netip.Addr]time.Duration{},
		blacklist: map[netip.Addr]manet.Time{}, hops: map[netip.Addr]*hop{}, flows: map[[2]netip.Addr]*flow{},
		headers: map[int][]manet.Message{}, ways: map[netip.Addr]*way{}}
	n.delayed = manet.NewDelayed[delayed](&n.Turn, timerDelayed, "full_delayed")
	if config.Paths != nil {
		n.cache = newPathCache(&n.config, n.self)
	} else {
		n.cache = newLinkCache(&n.config, n.self)
	}
	n.requestID = config.FirstID
	if n.requestID == 0 {
		n.requestID = uint16(n.jitter.Uint32())
	}
	n.ipID = uint16(n.jitter.Uint32())
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.Begin(now)
	switch e := event.(type) {
	case manet.Outgoing:
		n.outgoing(e.Packet)
	case manet.Received:
		n.receive(e)
	case manet.Timer:
		n.timer(e.Key)
	case manet.LinkFailed:
		n.linkFailed(e.Neighbor)
	case manet.Undelivered:
		n.linkBroken(e.Neighbor)
		n.rescue(e.Packet, e.Neighbor)
	case manet.InterfaceUp:
		n.up = true
	case manet.InterfaceDown:
		n.down()
	}
	n.flush()
	n.keep()
	return n.Actions()
}

func (n *Node) timer(key manet.TimerKey) {
	switch key.Kind {
	case timerTables:
		n.expire()
	case timerRequest:
		n.unanswered(key.Addr)
	case timerDelayed:
		n.sendDelayed()
	case timerMaintain:
		n.unconfirmed(key.Addr)
	}
}

// outgoing takes a packet of the node's own (8.1.1).
func (n *Node) outgoing(p []byte) {
	_, total, err := ipLength(p)
	if err != nil {
		n.Count("malformed_outgoing")
		return
	}
	to := destination(p)
	switch {
	case to == n.self:
		n.Act(manet.Deliver{Packet: p[:total]})
	case !usable(to):
		n.Count("no_unicast") // floods of data are not the RFC's
	case p[9] == Protocol:
		n.Count("nested")
	default:
		n.send(p[:total], to)
	}
}

// send lets a packet of ours go along the best route, or holds it until there
// is one.
func (n *Node) send(p []byte, to netip.Addr) {
	route, ok := n.cache.route(n.Now, to)
	n.tellWay(to, route, ok)
	if !ok {
		n.hold(p, to)
		return
	}
	n.cache.use(n.Now, to)
	p, err := Encapsulate(p, route)
	if err != nil {
		n.Count("too_big")
		return
	}
	n.along(route, to, p, "data_sent")
}

// along hands a packet of data to the first hop of its route, unless it is too
// big, and counts it.
func (n *Node) along(route []netip.Addr, to netip.Addr, p []byte, as string) {
	if n.config.Interface.MTU > 0 && len(p) > n.config.Interface.MTU {
		n.Count("too_big")
		return
	}
	n.Count(as)
	n.carry(firstHop(route, to), p)
}

func firstHop(route []netip.Addr, to netip.Addr) netip.Addr {
	if len(route) > 0 {
		return route[0]
	}
	return to
}

// tellWay reports the path of our own packets to a destination when it is
// another than before: the nodes between, and how many hops it is. Without a
// route it has neither.
func (n *Node) tellWay(to netip.Addr, route []netip.Addr, ok bool) {
	w := entry(n.ways, to, n.config.MaxEntries)
	if ok == w.found && slices.Equal(route, w.route) {
		return
	}
	w.found, w.route = ok, append(w.route[:0], route...)
	report := manet.Report{Kind: "source_route", Addr: to}
	if ok {
		report.Value = float64(len(route) + 1)
		for i, node := range route {
			if i > 0 {
				report.Note += " "
			}
			report.Note += node.String()
		}
	}
	n.Act(report)
}

// compose makes a packet that holds options only.
func (n *Node) compose(to netip.Addr, ttl int, options ...Option) []byte {
	h := Header{Next: noNextHeader, Options: options}
	p := make([]byte, ipBytes, ipBytes+64+2*ackRequestBytes)
	n.ipID++
	p[0], p[8], p[9] = 0x45, byte(ttl), Protocol
	binary.BigEndian.PutUint16(p[4:], n.ipID)
	from, dst := n.self.As4(), to.As4()
	copy(p[12:], from[:])
	copy(p[16:], dst[:])
	p = append(p, h.Marshal()...)
	seal(p)
	return p
}

// controlTTL is that of packets along a source route: more than any has hops.
const controlTTL = 255

// routed makes a packet that goes along a source route.
func (n *Node) routed(to netip.Addr, route []netip.Addr, options ...Option) (next netip.Addr, p []byte) {
	all := append([]Option{SourceRoute{SegmentsLeft: uint8(len(route)), Route: route}}, options...)
	return firstHop(route, to), n.compose(to, controlTTL, all...)
}

// transmit hands a packet to the link.
func (n *Node) transmit(next netip.Addr, p []byte) {
	if !n.up {
		n.Count("interface_down")
		return
	}
	n.Act(manet.Transmit{To: next, Packet: p, Messages: n.messages(p)})
}

// messages counts what is overhead in a packet. The headers of a packet that
// holds nothing else belong to its first option.
func (n *Node) messages(p []byte) []manet.Message {
	c, err := look(p)
	if err != nil {
		return nil
	}
	forwarded := source(p) != n.self
	if !c.others && p[c.ip] != noNextHeader {
		key := (c.end-c.ip)*2 + int(flag(1, forwarded))
		if n.headers[key] == nil {
			n.headers[key] = []manet.Message{{Kind: "SR", Bytes: c.end - c.ip, Forwarded: forwarded}}
		}
		return n.headers[key]
	}
	h, size, err := Parse(p[c.ip:])
	if err != nil {
		return nil
	}
	var out []manet.Message
	rest := size
	if p[c.ip] == noNextHeader {
		rest = len(p)
	}
	for _, o := range h.Options {
		if _, way := o.(SourceRoute); !way {
			bytes := len(o.append(nil))
			rest -= bytes
			out = append(out, manet.Message{Kind: o.kind(), Bytes: bytes, Forwarded: forwarded})
		}
	}
	if len(out) > 0 {
		out[0].Bytes += rest
	}
	return out
}

func (n *Node) sendDelayed() {
	for d := range n.delayed.Due {
		if d.next.IsValid() {
			n.carry(d.next, d.packet)
		} else {
			n.transmit(d.next, d.packet)
		}
	}
}

// down forgets what was known of neighbours; what waits in the Send Buffer goes
// on waiting.
func (n *Node) down() {
	n.up = false
	n.delayed.Remove(func(delayed) bool { return true })
	n.cache.forgetNeighbors()
	for next, h := range n.hops {
		n.settle(next, h)
	}
	clear(n.hops)
}

// keep makes sure that tables are looked at while there is anything in them.
func (n *Node) keep() {
	if n.awake || !n.cache.expires() &&
		len(n.requests)+len(n.heard)+len(n.gratis)+len(n.blacklist)+len(n.hops)+len(n.flows) == 0 {
		return
	}
	n.awake = true
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerTables}, At: n.Now + time.Second, Slack: time.Second / 2})
}

// expire looks at the tables.
func (n *Node) expire() {
	n.awake = false
	n.cache.expire(n.Now)
	n.outlived()
	for to, r := range n.requests {
		if !r.active && n.Now > r.next+n.config.MaxRequestPeriod {
			delete(n.requests, to)
		}
	}
	forget(n.heard, func(i *initiator) bool { return n.Now-i.at > n.config.RouteCacheTimeout })
	forget(n.gratis, func(at manet.Time) bool { return n.Now-at >= n.config.GratReplyHoldoff })
	forget(n.blacklist, func(at manet.Time) bool { return n.Now-at >= 2*n.config.BlacklistTimeout })
	forget(n.hops, func(h *hop) bool { return h.probe == nil && n.Now-h.confirmed > n.config.MaxRequestPeriod })
	forget(n.flows, func(f *flow) bool { return n.Now-f.at > n.config.MaxRequestPeriod })
	forget(n.ways, func(w *way) bool { return !w.found })
}

func forget[K comparable, V any](table map[K]V, old func(V) bool) {
	for k, v := range table {
		if old(v) {
			delete(table, k)
		}
	}
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := manet.State{Protocol: "dsr", Counters: n.Counters(), TableSizes: n.cache.sizes()}
	maps.Copy(s.TableSizes, map[string]int{"ways": len(n.ways), "buffer": n.buffer.Len(), "requests": len(n.requests),
		"heard": len(n.heard), "gratuitous": len(n.gratis), "blacklist": len(n.blacklist), "hops": len(n.hops),
		"held": n.held, "flows": len(n.flows), "delayed": n.delayed.Len()})
	for _, neighbor := range n.cache.neighbors(now) {
		s.Neighbors = append(s.Neighbors, manet.Neighbor{Addr: neighbor, Symmetric: true})
	}
	for neighbor := range n.blacklist {
		s.Neighbors = append(s.Neighbors, manet.Neighbor{Addr: neighbor, Role: "blacklisted"})
	}
	slices.SortFunc(s.Neighbors, func(a, b manet.Neighbor) int { return a.Addr.Compare(b.Addr) })
	for to := range n.ways {
		if route, ok := n.cache.route(now, to); ok {
			hop := append(slices.Clone(route), to)[0]
			s.Routes = append(s.Routes, manet.Route{Destination: netip.PrefixFrom(to, 32), NextHop: hop,
				Hops: len(route) + 1, Metric: float64(len(route) + 1)})
		}
	}
	slices.SortFunc(s.Routes, func(a, b manet.Route) int { return a.Destination.Addr().Compare(b.Destination.Addr()) })
	for to, r := range n.requests {
		if r.active {
			s.Discovery = append(s.Discovery, to)
		}
	}
	slices.SortFunc(s.Discovery, netip.Addr.Compare)
	return s
}
