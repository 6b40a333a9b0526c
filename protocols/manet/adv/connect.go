package adv

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// receiver is a node that is taken for an active receiver.
type receiver struct {
	heard manet.Time // of it, last
	alert uint32     // the newest ALERT's ID
	ended bool       // a NON-ALERT came; what others still report about it counts no more
}

// connection is data of our own host to a receiver.
type connection struct {
	used  manet.Time
	retry manet.Time // announced again by then, where there is no route
	wait  time.Duration
}

// wait is packets that wait for a route.
type wait struct {
	since   manet.Time // is searched for one, or the search failed last
	last    manet.Time // came a packet
	packets int        // that came
}

type floodID struct {
	originator netip.Addr
	id         uint32
}

// rememberSeen is how long a flood is remembered, far longer than it travels.
const rememberSeen = 30 * time.Second

// receiver is the note on a destination. Where there is none, one is made if
// the occasion is a reason to believe that it is active.
func (n *Node) receiver(a netip.Addr, active bool) *receiver {
	r := n.receivers[a]
	if r == nil && active && len(n.receivers) < n.config.MaxEntries {
		r = &receiver{heard: n.Now}
		n.receivers[a] = r
		n.interest()
	}
	if r == nil || r.ended { // only an ALERT or an INIT begins it again
		return nil
	}
	return r
}

// begin makes a destination an active receiver by a flood or by our own data.
func (n *Node) begin(a netip.Addr) *receiver {
	if r := n.receivers[a]; r != nil {
		r.ended = false
	}
	r := n.receiver(a, true)
	if r != nil {
		r.heard = n.Now
	}
	return r
}

// finish ends a receiver: its route goes, and nothing is reported of it.
func (n *Node) finish(a netip.Addr) {
	if r := n.Table.Get(a); r != nil {
		n.Table.Break(n.Now, r)
	}
	if r := n.receivers[a]; r != nil {
		r.ended = true
	}
}

// isReceiver reports whether we are an active receiver; interested whether
// there is any to keep routes to.
func (n *Node) isReceiver() bool { return len(n.sources) > 0 }

func (n *Node) interested() bool { return n.isReceiver() || len(n.receivers) > 0 }

// needRoute holds a packet, at a relay too: ADV repairs no route, it waits for
// another.
func (n *Node) needRoute(e manet.NeedRoute) {
	to := e.Destination
	if !manet.Unicast(to) || n.Interfaces.IsOwn(to) {
		n.Act(manet.Drop{Destination: to, Reason: "no unicast destination"})
		return
	}
	if r := n.Table.Get(to); r != nil && !r.Broken() {
		n.Act(manet.Release{Destination: to})
		return
	}
	w := n.waiting[to]
	if w == nil {
		if len(n.waiting) >= n.config.MaxEntries/16 {
			n.Act(manet.Drop{Destination: to, Reason: "too many destinations wait", Unreachable: true})
			return
		}
		w = &wait{since: n.Now}
		n.waiting[to] = w
	}
	w.last = n.Now
	w.packets++
	if e.Local {
		n.connect(to)
	}
	n.receiver(to, true)
	n.urge(n.config.Weights.Buffered, nil)
}

// connect takes note of data of our own host, and announces a connection that
// is new.
func (n *Node) connect(to netip.Addr) {
	c := n.connections[to]
	if c == nil {
		if len(n.connections) >= n.config.MaxEntries {
			return
		}
		c = &connection{wait: n.config.InitRetry}
		n.connections[to] = c
		n.announce(to, c)
	}
	c.used = n.Now
}

func (n *Node) announce(to netip.Addr, c *connection) {
	n.begin(to)
	c.retry = n.Now + c.wait
	c.wait = min(2*c.wait, n.config.maxBackoff())
	n.flood(Init, to)
}

// arrived lets go what waited for a route.
func (n *Node) arrived(r *route) {
	if c := n.connections[r.To]; c != nil {
		c.wait = n.config.InitRetry
	}
	if w := n.waiting[r.To]; w != nil {
		delete(n.waiting, r.To)
		r.Extra.used = n.Now
		n.Act(manet.Release{Destination: r.To})
		n.Act(manet.Report{Kind: "discovery_us", Addr: r.To, Value: float64((n.Now - w.since).Microseconds())})
	}
}

// routeUsed keeps connections alive: ours, those to us, and notes the load.
func (n *Node) routeUsed(e manet.RouteUsed) {
	switch {
	case n.Interfaces.IsOwn(e.Destination):
		if e.Source.IsValid() && !n.Interfaces.IsOwn(e.Source) {
			n.wanted(e.Source)
		}
	case e.Local:
		n.connect(e.Destination)
		fallthrough
	default:
		if r := n.Table.Get(e.Destination); r != nil {
			r.Extra.used = n.Now
		}
	}
}

// wanted says that somebody has data for us.
func (n *Node) wanted(source netip.Addr) {
	was := n.isReceiver()
	if _, ok := n.sources[source]; !ok && len(n.sources) >= n.config.MaxEntries {
		return
	}
	n.sources[source] = n.Now
	if !was {
		n.interest()
		n.alert()
	}
}

// alert announces us, at most once a second.
func (n *Node) alert() {
	if n.alerted == 0 || n.Now-n.alerted >= time.Second {
		n.alerted = n.Now
		n.Seq += 2
		n.flood(Alert, n.Interfaces[0].Address)
	}
}

// idle ends what has had no data for long.
func (n *Node) idle() {
	for _, to := range sorted(n.connections) {
		if n.Now-n.connections[to].used >= n.config.ConnectionTimeout {
			delete(n.connections, to)
			n.flood(End, to)
		}
	}
	was := n.isReceiver()
	for source, used := range n.sources {
		if n.Now-used >= 2*n.config.ConnectionTimeout {
			delete(n.sources, source)
		}
	}
	if was && !n.isReceiver() {
		n.flood(NonAlert, n.Interfaces[0].Address)
	}
	for _, a := range sorted(n.receivers) {
		if n.Now-n.receivers[a].heard >= n.config.receiverHold() && n.connections[a] == nil {
			n.finish(a)
			delete(n.receivers, a)
		}
	}
}

// nextIdle is when idle may find something, at the latest after
// ConnectionTimeout: what comes meanwhile lasts longer.
func (n *Node) nextIdle() manet.Time {
	next := n.Now + n.config.ConnectionTimeout
	for _, c := range n.connections {
		next = min(next, c.used+n.config.ConnectionTimeout)
	}
	for _, used := range n.sources {
		next = min(next, used+2*n.config.ConnectionTimeout)
	}
	for a, r := range n.receivers {
		if n.connections[a] == nil {
			next = min(next, r.heard+n.config.receiverHold())
		}
	}
	return next
}

// retry announces again what has no route yet. A search fails when it has taken as
// long as a packet may wait; another begins unless the last packet has waited so
// long. Those before it the runner lets go, each in its time.
func (n *Node) retry() {
	for _, to := range sorted(n.waiting) {
		w := n.waiting[to]
		if n.Now-w.since >= n.config.BufferTimeout {
			w.since += n.config.BufferTimeout
			n.Act(manet.Report{Kind: "discovery_failed", Addr: to})
		}
		if n.Now-w.last >= n.config.BufferTimeout {
			delete(n.waiting, to)
			n.Act(manet.Drop{Destination: to, Reason: "no route in time", Unreachable: true})
			continue
		}
		if c := n.connections[to]; c != nil && c.retry <= n.Now {
			n.announce(to, c)
		}
	}
}

func sorted[T any](m map[netip.Addr]T) []netip.Addr {
	return slices.SortedFunc(maps.Keys(m), netip.Addr.Compare)
}

// flood begins one of our own.
func (n *Node) flood(kind FloodType, to netip.Addr) {
	n.id++
	f := Flood{Type: kind, TTL: uint8(n.config.Diameter), Originator: n.Interfaces[0].Address, ID: n.id, Receiver: to}
	if r := n.Table.Get(to); r != nil && kind == Init {
		f.KnownSeq, f.Seq = true, r.Seq
	}
	n.later(f)
}

// later sends a flood after its jitter. An ALERT waits longer, so that the INIT
// that it answers has been heard of all neighbours, and they are known.
func (n *Node) later(f Flood) {
	at := n.Now + n.Jitter.Below(n.config.Jitter)
	if f.Type == Alert && n.Interfaces.IsOwn(f.Originator) {
		at += 2 * n.config.Jitter
	}
	n.floods.Put(at, f)
}

// flooded takes a flood in and passes it on, once.
func (n *Node) flooded(f Flood) {
	if !manet.Unicast(f.Originator) || !manet.Unicast(f.Receiver) || n.Interfaces.IsOwn(f.Originator) {
		return
	}
	id := floodID{f.Originator, f.ID}
	if until, ok := n.seen[id]; ok && until > n.Now {
		return
	}
	if len(n.seen) >= n.config.MaxEntries {
		n.Count("full_seen")
		return
	}
	n.seen[id] = n.Now + rememberSeen
	if !n.answer(f) || f.TTL <= 1 {
		return
	}
	f.TTL--
	n.later(f)
}

// answer does what a flood asks for, and reports whether it is to go on.
func (n *Node) answer(f Flood) bool {
	switch f.Type {
	case Init:
		if !n.Interfaces.IsOwn(f.Receiver) {
			n.begin(f.Receiver)
			return true
		}
		if f.KnownSeq {
			n.ownNumber(f.Seq)
		}
		n.wanted(f.Originator)
		n.alert() // where we were one before: it has no route
		return false
	case End:
		if !n.Interfaces.IsOwn(f.Receiver) {
			return true
		}
		was := n.isReceiver()
		delete(n.sources, f.Originator)
		if was && !n.isReceiver() {
			n.flood(NonAlert, n.Interfaces[0].Address)
		}
		return false
	case Alert:
		if r := n.begin(f.Receiver); r != nil && (r.alert == 0 || manet.After32(f.ID, r.alert)) {
			r.alert = f.ID
		}
	case NonAlert:
		if r := n.receivers[f.Receiver]; r != nil && (r.alert == 0 || manet.After32(f.ID, r.alert)) &&
			n.connections[f.Receiver] == nil {
			n.finish(f.Receiver)
		}
	}
	return !n.Interfaces.IsOwn(f.Receiver)
}
