package manetd

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// What data packets may wait in, as ns-2 and the drafts of DSR have it; and how many may in all where a protocol
// bounds them for a destination (see Protocol.Held).
const (
	heldPackets = 64
	heldFor     = 30 * time.Second
	heldInAll   = 1024
)

// links sends over the node's interfaces.
type links interface {
	Send(s manet.Send) error
	Transmit(t manet.Transmit) error
}

// router changes the kernel's routes.
type router interface {
	SetRoute(r manet.SetRoute) error
	DeleteRoute(p netip.Prefix) error
}

// stack is the node's own kernel, for data packets.
type stack interface {
	Inject(packet []byte) error  // let it go along the routes
	Deliver(packet []byte) error // it has come to its end here
	Refuse(packet []byte) error  // tell its local sender that there is no way
}

// loop is the part of the daemon without sockets: it gives events to the
// protocol and has its actions done. It is for one goroutine.
type loop struct {
	node    manet.Node
	own     []netip.Addr // by interface
	carrier bool
	silent  bool // no local sender hears that there is no way
	links   links
	router  router
	stack   stack
	told    func(now manet.Time, n Notice) // what followers are told

	timers timers
	held   *manet.Buffer[[]byte]
	routes map[netip.Prefix]manet.SetRoute
	guard  guard
	counts Counts
	recent map[netip.Addr]recentUse // by next hop
}

// recentUse is where data last went by a next hop.
type recentUse struct {
	at          manet.Time
	destination netip.Addr
}

// recentFor is how long after data was seen to go by a next hop a failure of
// it is taken for that data's: what is in use is read once a second, and a
// queue of frames takes its time.
const recentFor = 2 * inUseEvery

func newLoop(node manet.Node, own []netip.Addr, p Protocol, l links, r router, s stack,
	told func(manet.Time, Notice)) *loop {
	held := manet.NewBuffer[[]byte](heldPackets, heldPackets, heldFor)
	if p.Held > 0 {
		held = manet.NewBuffer[[]byte](p.Held, heldInAll, 0)
	}
	return &loop{node: node, own: own, carrier: p.carrier(), links: l, router: r, stack: s, told: told, held: held,
		routes: map[netip.Prefix]manet.SetRoute{}, guard: guard{seen: map[uint64]injected{}}, counts: newCounts(),
		recent: map[netip.Addr]recentUse{}}
}

// fire gives the protocol its due timers, so many at most that other events
// come in between.
func (l *loop) fire(now manet.Time) {
	for range 64 {
		key, ok := l.timers.take(now)
		if !ok {
			break
		}
		l.handle(now, manet.Timer{Key: key})
	}
	l.expire(now)
}

// expire discards what was held too long.
func (l *loop) expire(now manet.Time) {
	for _, packet := range l.held.Expire(now) {
		l.counts.dropped("waited too long", 1)
		l.refuse(packet)
	}
}

// handle gives the protocol an event and does what it asks for.
func (l *loop) handle(now manet.Time, e manet.Event) {
	if p, ok := e.(manet.Packet); ok {
		l.counts.PacketsReceived++
		l.counts.BytesReceived += int64(len(p.Data) + headerBytes)
	}
	for _, a := range l.node.Handle(now, e) {
		l.act(now, a)
	}
}

func (l *loop) act(now manet.Time, a manet.Action) {
	switch a := a.(type) {
	case manet.SetTimer:
		l.timers.set(a)
	case manet.StopTimer:
		l.timers.stop(a.Key)
	case manet.Send:
		l.counts.sent(a.Messages, len(a.Data)+headerBytes, true)
		l.failed("send", l.links.Send(a))
	case manet.Transmit:
		l.transmit(a)
	case manet.SetRoute:
		l.setRoute(now, a)
	case manet.DeleteRoute:
		l.deleteRoute(now, a)
	case manet.Release:
		l.release(now, a.Destination)
	case manet.Drop:
		l.drop(now, a)
	case manet.Deliver:
		l.counts.Delivered++
		l.failed("deliver", l.stack.Deliver(a.Packet))
	case manet.Report:
		l.told(now, Notice{Report: &ReportNotice{Kind: a.Kind, Addr: address(a.Addr), Value: a.Value, Note: a.Note}})
	}
}

// transmit counts as overhead only what the protocol says of a packet: the
// rest is data, and the packet is then no packet of routing's.
func (l *loop) transmit(t manet.Transmit) {
	overhead := 0
	for _, m := range t.Messages {
		overhead += m.Bytes
	}
	l.counts.sent(t.Messages, overhead, overhead == len(t.Packet))
	l.failed("transmit", l.links.Transmit(t))
}

// failed counts what the kernel did not do. A mesh goes on without: a frame may
// be lost in many ways, and a route that an interface's going down took away is
// set again when it is up.
func (l *loop) failed(what string, err error) {
	if err == nil {
		return
	}
	l.counts.Errors[what]++
	l.counts.LastError = err.Error()
}

func (l *loop) setRoute(now manet.Time, r manet.SetRoute) {
	old, had := l.routes[r.Destination]
	r.Next = slices.Clone(r.Next[:min(len(r.Next), 1)]) // the others are the protocol's to fall back on
	l.routes[r.Destination] = r
	if !had || !slices.Equal(old.Next, r.Next) {
		l.failed("set_route", l.router.SetRoute(r))
	}
	if !had || !slices.Equal(old.Next, r.Next) || old.Hops != r.Hops {
		l.counts.RouteChanges++
		l.told(now, Notice{Route: routeNotice("set", r)})
	}
}

func (l *loop) deleteRoute(now manet.Time, d manet.DeleteRoute) {
	if _, had := l.routes[d.Destination]; !had {
		return
	}
	delete(l.routes, d.Destination)
	l.failed("delete_route", l.router.DeleteRoute(d.Destination))
	l.counts.RouteChanges++
	l.told(now, Notice{Route: &RouteNotice{Action: "delete", Destination: d.Destination.String(), Cause: d.Cause}})
}

// reinstall gives the kernel all routes again: an interface that goes down
// takes them with it.
func (l *loop) reinstall() {
	for _, r := range l.routes {
		l.failed("set_route", l.router.SetRoute(r))
	}
}

// lookup finds the longest prefix of what is installed.
func (l *loop) lookup(a netip.Addr) (manet.SetRoute, bool) {
	best, ok := l.routes[netip.PrefixFrom(a, a.BitLen())]
	if ok {
		return best, true
	}
	for p, r := range l.routes {
		if p.Contains(a) && (!ok || p.Bits() > best.Destination.Bits()) {
			best, ok = r, true
		}
	}
	return best, ok
}

// caught takes a packet that the kernel had no route for; it is the loop's to
// keep.
func (l *loop) caught(now manet.Time, packet []byte) {
	source, destination, ok := endpoints(packet)
	if !ok {
		l.counts.dropped("not IPv4", 1)
		return
	}
	local := slices.Contains(l.own, source)
	if l.carrier {
		if !local { // the kernel forwards what only the protocol should
			l.counts.dropped("forwarded by the kernel", 1)
			return
		}
		l.counts.Caught++
		l.handle(now, manet.Outgoing{Packet: packet})
		return
	}
	l.counts.Caught++
	if !l.guard.admit(now, packet) {
		l.counts.dropped("came back too often", 1)
		return
	}
	l.expire(now)
	l.counts.dropped("no room", len(l.held.Put(now, destination, packet))) // nobody's wait has ended
	l.counts.HeldMax = max(l.counts.HeldMax, l.held.Len())
	l.handle(now, manet.NeedRoute{Destination: destination, Source: source, Local: local})
}

// waiting is how many data packets wait for a route; a carrier keeps them itself.
func (l *loop) waiting(s manet.State) int {
	if l.carrier {
		return s.TableSizes["buffer"]
	}
	return l.held.Len()
}

func (l *loop) release(now manet.Time, destination netip.Addr) {
	for _, packet := range l.held.Take(destination) {
		l.counts.Released++
		l.noteUse(now, destination)
		l.guard.note(now, packet)
		l.failed("inject", l.stack.Inject(packet))
	}
}

// drop discards what is held.
func (l *loop) drop(now manet.Time, d manet.Drop) {
	for _, packet := range slices.Concat(l.held.Take(d.Destination), d.Packets) {
		l.counts.dropped(d.Reason, 1)
		if d.Unreachable {
			l.refuse(packet)
		}
	}
}

// refuse tells a local sender that there is no way; but one with a TCP
// connection that stands hears nothing: an unreachable destination makes TCP take
// its timer's back-off back (RFC 6069), and what the timer does is measured.
func (l *loop) refuse(packet []byte) {
	source, _, _ := endpoints(packet)
	if !l.silent && slices.Contains(l.own, source) && !establishedTCP(packet) {
		l.failed("refuse", l.stack.Refuse(packet))
	}
}

func (l *loop) noteUse(now manet.Time, destination netip.Addr) {
	if r, ok := l.lookup(destination); ok {
		l.recent[r.Next[0].Addr] = recentUse{now, destination}
	}
}

// linkFailed tells the protocol of a neighbour that did not take a frame. An
// emulated radio says what was in it. No other does: where data went that way, it
// was data, as far more frames are. Where none is known of, look reads what is in
// use at once: a flow that began since the last reading is not known of yet, and
// AODV would take its frame for a lost RREP and blacklist the neighbour.
func (l *loop) linkFailed(now manet.Time, neighbor netip.Addr, frame lost, look func(manet.Time)) {
	failed := manet.LinkFailed{Neighbor: neighbor, Destination: frame.data.destination, Known: frame.known,
		Type: frame.message}
	if failed.Destination.IsValid() { // it used the route, seen by the last reading or not
		l.used(now, []use{frame.data})
	} else if !frame.known {
		failed.Destination = l.recently(now, neighbor, look)
	}
	l.handle(now, failed)
	if len(l.recent) > neighborsMax {
		clear(l.recent)
	}
}

// recently is where data last went by a next hop; not valid where none did of late.
func (l *loop) recently(now manet.Time, neighbor netip.Addr, look func(manet.Time)) netip.Addr {
	if u, ok := l.recent[neighbor]; !ok || now-u.at > recentFor {
		look(now)
	}
	if u, ok := l.recent[neighbor]; ok && now-u.at <= recentFor {
		return u.destination
	}
	return netip.Addr{}
}

// use is a pair of addresses between which data passed an interface.
type use struct {
	source, destination netip.Addr
	previous            netip.Addr // neighbour that it came from; not valid where it is not known
}

// used tells the protocol where data went.
func (l *loop) used(now manet.Time, uses []use) {
	for _, u := range uses {
		if !u.destination.Is4() || u.destination.IsMulticast() || !u.destination.IsValid() {
			continue
		}
		l.noteUse(now, u.destination)
		local := slices.Contains(l.own, u.source)
		l.handle(now, manet.RouteUsed{Destination: u.destination, Source: u.source, Local: local, Previous: u.previous})
	}
}
