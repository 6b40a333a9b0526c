package dsr

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// request is a target in the Route Request Table (4.3).
type request struct {
	began  manet.Time
	tries  int
	next   manet.Time // no sooner is it asked for again
	active bool       // packets wait for the answer
	held   int        // that many
}

// initiator is a node whose Route Requests came by: the latest, oldest first.
type initiator struct {
	at   manet.Time
	seen []seenRequest
}

type seenRequest struct {
	id     uint16
	target netip.Addr
}

// hold keeps a packet until a route is found (4.2).
func (n *Node) hold(p []byte, to netip.Addr) {
	r := n.requests[to]
	if r == nil {
		if len(n.requests) >= n.config.MaxEntries {
			n.Count("full_requests")
			return
		}
		r = &request{next: n.Now}
		n.requests[to] = r
	}
	r.held++
	n.outlived()
	if gone := n.buffer.Put(n.Now, to, p); len(gone) > 0 {
		n.evicted(gone)
		n.Act(manet.Drop{Destination: to, Reason: "no room", Packets: gone})
	}
	if r.active {
		return
	}
	r.active, r.began = true, n.Now
	if r.next > n.Now {
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerRequest, Addr: to}, At: r.next})
		return
	}
	n.ask(to, r)
}

func (n *Node) evicted(packets [][]byte) {
	for _, p := range packets {
		n.Count("buffer_expired")
		if r := n.requests[destination(p)]; r != nil {
			r.held--
		}
	}
}

// outlived lets those packets go that have waited for too long (4.2). With the
// RFC's values that is before the last Route Request: the sender is told now.
func (n *Node) outlived() {
	old := n.buffer.Expire(n.Now)
	n.evicted(old)
	for _, p := range old {
		n.Act(manet.Drop{Destination: destination(p), Reason: "no answer in time", Unreachable: true,
			Packets: [][]byte{p}})
	}
}

// ask sends a Route Request (8.2.1): to the neighbours first, then to all with
// growing patience (3.3.3).
func (n *Node) ask(to netip.Addr, r *request) {
	ttl, wait := n.config.reach(r.tries)
	r.tries++
	r.next = n.Now + wait
	n.requestID++
	n.Count("requests")
	options := []Option{RouteRequest{ID: n.requestID, Target: to}}
	if n.lastError.Type != 0 && n.Now-n.erredAt < n.config.SpreadErrors {
		// Before the request, so that nobody answers with the link that is broken.
		options = append([]Option{n.lastError}, options...)
		if ttl > 1 { // all have been told: again, it would take links that have come back
			n.lastError = RouteError{}
		}
	}
	n.transmit(netip.Addr{}, n.compose(broadcast, ttl, options...))
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerRequest, Addr: to}, At: r.next})
}

// reach is how far the next request goes after a number of others, and how long
// its answer is waited for. Over a cache of paths every search begins with the
// neighbours again, and the times from one to the next grow fourfold, as in
// ns-2.
func (c *Config) reach(tries int) (ttl int, wait time.Duration) {
	again := tries - 1
	if c.Paths != nil {
		tries, again = tries%2, 2*(tries/2)+2
	}
	if tries == 0 {
		return 1, c.NonpropRequestTimeout
	}
	wait = min(c.RequestPeriod<<min(again, 16), c.MaxRequestPeriod)
	if c.Paths != nil {
		wait = max(wait-c.NonpropRequestTimeout, c.NonpropRequestTimeout)
	}
	return c.DiscoveryHopLimit, wait
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func (n *Node) unanswered(to netip.Addr) {
	r := n.requests[to]
	if r == nil || !r.active {
		return
	}
	n.outlived()
	switch {
	case r.held == 0:
		n.giveUp(to, r)
	case r.tries > n.config.MaxRequestRexmt:
		n.giveUp(to, r)
		n.Act(manet.Drop{Destination: to, Reason: "no answer", Unreachable: true, Packets: n.buffer.Take(to)})
	default:
		n.ask(to, r)
	}
}

// giveUp ends a search without a route: so many Requests have had no answer, or
// no packet waits any more.
func (n *Node) giveUp(to netip.Addr, r *request) {
	n.Count("discoveries_failed")
	n.Act(manet.Report{Kind: "discovery_failed", Addr: to})
	r.held, r.active = 0, false
}

// flush sends what waited for a route that there now is (4.1).
func (n *Node) flush() {
	if n.known == n.cache.version() {
		return
	}
	n.known = n.cache.version()
	if n.buffer.Len() == 0 {
		return
	}
	var found []netip.Addr
	for to, r := range n.requests {
		if !r.active {
			continue
		}
		if _, ok := n.cache.route(n.Now, to); ok {
			found = append(found, to)
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	for _, to := range found {
		r := n.requests[to]
		// Caches may be wrong again and again: a little time between requests.
		*r = request{next: n.Now + n.config.NonpropRequestTimeout, began: r.began}
		n.Act(manet.StopTimer{Key: manet.TimerKey{Kind: timerRequest, Addr: to}})
		n.Act(manet.Report{Kind: "discovery_us", Addr: to, Value: float64((n.Now - r.began).Microseconds())})
		for _, p := range n.buffer.Take(to) {
			n.send(p, to)
		}
	}
}

// asked is section 8.2.2. from is the neighbour, where the runner knows it.
func (n *Node) asked(p []byte, h *Header, o RouteRequest, from netip.Addr) {
	who := source(p)
	last := who
	if len(o.Route) > 0 {
		last = o.Route[len(o.Route)-1]
	}
	if !usable(o.Target) || !distinct(append([]netip.Addr{who}, o.Route...)) || from.IsValid() && from != last {
		n.Count("hostile")
		return
	}
	switch {
	case who == n.self || slices.Contains(o.Route, n.self):
		if k := len(o.Route) - 2; k >= 0 && o.Route[k] == n.self || k == -1 && who == n.self {
			delete(n.blacklist, last) // it heard us (4.6)
		}
		return
	case o.Target == n.self:
		n.answer(who, o.Route, []netip.Addr{n.self}, n.jitter.Below(n.config.BroadcastJitter), nil)
		return
	case n.oneWay(last) || n.repeated(who, o) || len(o.Route)+2 > n.config.MaxHops:
		return
	}
	if n.answerCached(who, o) || p[8] <= 1 {
		return
	}
	o.Route = append(slices.Clone(o.Route), n.self)
	n.spread(p, h, o)
}

// spread sends a Route Request on, with all else that its packet holds.
func (n *Node) spread(p []byte, h *Header, o RouteRequest) {
	copied := Header{Next: h.Next}
	for _, other := range h.Options {
		if _, ok := other.(RouteRequest); ok {
			other = o
		}
		copied.Options = append(copied.Options, other)
	}
	c, err := look(p)
	if err != nil {
		return
	}
	out := rewrite(p, &c, &copied)
	out[8]--
	seal(out)
	n.Count("requests_forwarded")
	n.delayed.Put(n.Now+n.jitter.Below(n.config.BroadcastJitter), delayed{packet: out})
}

// repeated reports whether a Route Request came before, and remembers it.
func (n *Node) repeated(who netip.Addr, o RouteRequest) bool {
	i := n.heard[who]
	if i == nil {
		if len(n.heard) >= n.config.RequestTableSize {
			n.dropOldest()
		}
		i = &initiator{}
		n.heard[who] = i
	}
	i.at = n.Now
	this := seenRequest{o.ID, o.Target}
	if slices.Contains(i.seen, this) {
		return true
	}
	if len(i.seen) >= n.config.RequestTableIDs {
		i.seen = slices.Delete(i.seen, 0, 1)
	}
	i.seen = append(i.seen, this)
	return false
}

func (n *Node) dropOldest() {
	var oldest netip.Addr
	for a, i := range n.heard {
		if o := n.heard[oldest]; o == nil || i.at < o.at || i.at == o.at && a.Less(oldest) {
			oldest = a
		}
	}
	delete(n.heard, oldest)
}

// oneWay reports whether a Request is to be dropped because unicast to the
// neighbour that it came from failed of late (4.6). Where that is some time
// ago, the neighbour is asked whether it hears us; the Request at hand is not
// kept for the answer, as the next will do.
func (n *Node) oneWay(neighbor netip.Addr) bool {
	at, ok := n.blacklist[neighbor]
	if !ok {
		return false
	}
	n.Count("requests_one_way")
	if n.Now-at >= n.config.BlacklistTimeout {
		n.requestID++
		n.transmit(neighbor, n.compose(neighbor, 1, RouteRequest{ID: n.requestID, Target: neighbor}))
	}
	return true
}

func (n *Node) suspect(neighbor netip.Addr) {
	if n.config.BlacklistTimeout > 0 && len(n.blacklist) < n.config.MaxEntries {
		n.blacklist[neighbor] = n.Now
	}
}

// answer sends a Route Reply along the way that the Request came (8.2.4). came
// is the nodes that it came through, on the rest of the route.
func (n *Node) answer(to netip.Addr, came, on []netip.Addr, wait time.Duration, cached *awaited) {
	back := slices.Clone(came)
	slices.Reverse(back)
	n.cache.answered(slices.Concat([]netip.Addr{n.self}, back, []netip.Addr{to}))
	reply := RouteReply{Route: append(slices.Clone(came), on...)}
	next, p := n.routed(to, back, reply)
	n.delayed.Put(n.Now+wait, delayed{next: next, packet: p, cached: cached})
}

// answerCached is section 8.2.3.
func (n *Node) answerCached(who netip.Addr, o RouteRequest) bool {
	if !n.config.CachedReplies {
		return false
	}
	rest, ok := n.cache.route(n.Now, o.Target)
	if !ok || len(o.Route)+1+len(rest)+1 > n.config.MaxHops {
		return false
	}
	on := append(append([]netip.Addr{n.self}, rest...), o.Target)
	if !distinct(slices.Concat([]netip.Addr{who}, o.Route, on)) {
		return false
	}
	n.Count("cached_replies")
	hops := len(o.Route) + len(on)
	// Who knows a shorter route answers first (8.2.5).
	wait := n.config.ReplyHop*time.Duration(len(on)-1) - n.config.ReplyHop + n.jitter.Below(n.config.ReplyHop)
	n.answer(who, o.Route, on, max(wait, 0), &awaited{who, o.Target, hops})
	return true
}

// needless drops a reply from the cache whose asker uses a route as good.
func (n *Node) needless(from, to netip.Addr, hops int) {
	n.delayed.Remove(func(d delayed) bool {
		return d.cached != nil && d.cached.initiator == from && d.cached.target == to && hops <= d.cached.hops
	})
}

// distinct reports whether all are addresses that nodes can have, none twice.
func distinct(list []netip.Addr) bool {
	for i, a := range list {
		if !usable(a) || slices.Contains(list[:i], a) {
			return false
		}
	}
	return true
}
