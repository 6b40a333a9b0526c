package aodv

import (
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// requestID names an RREQ.
type requestID struct {
	originator netip.Addr
	id         uint32
}

func (n *Node) receive(p manet.Packet) {
	if !n.ifaces.Accept(p) {
		return
	}
	m, err := Parse(p.Data)
	if err != nil {
		n.Count("malformed_packets")
		return
	}
	n.in, n.from = p, p.From
	if n.quiet() {
		n.quietly(m)
		return
	}
	n.heard(p.From)
	switch m := m.(type) {
	case RREQ:
		n.cause = "rreq"
		n.rreq(m)
	case RREP:
		n.cause = "rrep"
		if m.Destination == p.From && m.HopCount == 0 && (!p.Unicast || m.Originator == m.Destination) {
			n.hello(m)
		} else {
			n.rrep(m)
		}
	case RERR:
		n.cause = "rerr"
		n.rerr(m)
	case RREPAck:
		n.acknowledged(p.From)
	}
}

// quietly takes a message in during the wait after a reboot (section 6.13): only
// the own number is looked for. A route learned from a neighbour may lead over
// ourselves as we were before.
func (n *Node) quietly(m Message) {
	if m, ok := m.(RREQ); ok && n.ifaces.IsOwn(m.Destination) && !m.UnknownSeq {
		n.seq = newer(m.DestinationSeq, n.seq)
	}
}

// neighborHeard makes or renews the route to the sender (section 6.5, 6.7):
// without a sequence number.
func (n *Node) neighborHeard() {
	n.take(offer{to: n.from, hops: 1, lifetime: n.config.ActiveRouteTimeout})
}

// rreq is section 6.5.
func (n *Node) rreq(m RREQ) {
	if until, ok := n.blacklist[n.from]; ok && until > n.Now {
		n.Count("from_blacklisted")
		return
	}
	if n.ifaces.IsOwn(m.Originator) || !n.ifaces.IsOther(m.Originator) || m.HopCount >= maxHops ||
		!n.ifaces.IsOwn(m.Destination) && !n.ifaces.IsOther(m.Destination) {
		return
	}
	n.neighborHeard()
	id := requestID{m.Originator, m.ID}
	if until, ok := n.seen[id]; ok && until > n.Now {
		n.Count("duplicates")
		n.anotherCopy(id, m)
		return
	}
	if len(n.seen) >= n.config.MaxEntries {
		n.Count("full_seen")
		return
	}
	n.seen[id] = n.Now + n.config.pathDiscoveryTime()
	n.wakeBy(n.seen[id])
	m.HopCount++
	// The reverse route: only when it is newer or shorter than the one there,
	// and alive until the RREP can be back (MinimalLifetime).
	n.take(offer{to: m.Originator, seq: m.OriginatorSeq, known: true, hops: int(m.HopCount),
		lifetime: n.config.reverseLife(int(m.HopCount)), asked: true, last: m.FirstHop})
	if n.ifaces.IsOwn(m.Destination) {
		n.answerSelf(m)
		return
	}
	if r := n.active(m.Destination); r != nil && n.mayAnswer(r, &m) {
		n.answerFor(r, m)
		return
	}
	n.forwardRREQ(m)
}

// mayAnswer is section 6.6's condition for an intermediate node, and one more:
// who asks is not told to go over itself.
func (n *Node) mayAnswer(r *route, m *RREQ) bool {
	fresh := m.UnknownSeq || !manet.After32(m.DestinationSeq, r.seq)
	return !m.DestinationOnly && r.tellable && fresh && r.next != n.from
}

func (n *Node) forwardRREQ(m RREQ) {
	ttl := n.in.TTL
	if ttl == 0 { // the runner cannot tell
		ttl = max(n.config.NetDiameter-int(m.HopCount)+1, 1)
	}
	if ttl <= 1 {
		return
	}
	if r := n.routes[m.Destination]; r != nil && r.known && (m.UnknownSeq || manet.After32(r.seq, m.DestinationSeq)) {
		m.DestinationSeq, m.UnknownSeq = r.seq, false
	}
	n.advertiseReverse(&m)
	n.toAll(m, ttl-1, true)
}

// answerSelf is section 6.6.1.
func (n *Node) answerSelf(m RREQ) {
	if !m.UnknownSeq {
		n.seq = newer(m.DestinationSeq, n.seq) // section 6.1
	}
	if n.config.Multipath != nil {
		n.copies[requestID{m.Originator, m.ID}] = []netip.Addr{n.from}
	}
	n.sendRREP(RREP{Destination: m.Destination, DestinationSeq: n.seq, Originator: m.Originator,
		Lifetime: n.config.myRouteTimeout()}, n.routes[m.Originator])
}

// answerFor is sections 6.6.2 and 6.6.3.
func (n *Node) answerFor(r *route, m RREQ) {
	back := n.active(m.Originator)
	if back == nil {
		return
	}
	r.addPrecursor(back.next)
	back.addPrecursor(r.next)
	n.sendRREP(RREP{HopCount: n.tellHops(r), Destination: m.Destination, DestinationSeq: r.seq,
		Originator: m.Originator, Lifetime: r.expires - n.Now, FirstHop: r.multi.last}, back)
	if m.Gratuitous {
		n.Count("gratuitous")
		n.sendRREP(RREP{HopCount: n.tellHops(back), Destination: m.Originator, DestinationSeq: back.seq,
			Originator: m.Destination, Lifetime: back.expires - n.Now, FirstHop: back.multi.last}, r)
	}
}

// rrep is section 6.7.
func (n *Node) rrep(m RREP) {
	if m.AckWanted {
		n.Act(n.send(n.in.Interface, n.from, 1, RREPAck{}, false))
	}
	if m.HopCount >= maxHops || !n.ifaces.IsOther(m.Destination) ||
		!n.ifaces.IsOwn(m.Originator) && !n.ifaces.IsOther(m.Originator) {
		return
	}
	n.neighborHeard()
	m.HopCount++
	taken := n.take(offer{to: m.Destination, seq: m.DestinationSeq, known: true, hops: int(m.HopCount),
		lifetime: m.Lifetime, asked: true, last: m.FirstHop})
	if n.ifaces.IsOwn(m.Originator) || !taken && !n.improve(&m) {
		return
	}
	r := n.routes[m.Destination]
	to, ok := n.wayBack(m.Originator, r)
	if !ok {
		n.Count("rrep_without_way")
		return
	}
	if r.next == to.Addr {
		return // who would go over us goes there without us
	}
	r.addPrecursor(to.Addr)
	for _, hop := range r.nextHops() {
		if next := n.routes[hop.Addr]; next != nil {
			next.addPrecursor(to.Addr)
		}
	}
	n.extend(m.Originator)
	m.AckWanted = false
	if n.config.Multipath != nil && r.seq == m.DestinationSeq {
		m.HopCount = n.tellHops(r)
		if !m.FirstHop.IsValid() {
			m.FirstHop = r.multi.last
		}
	}
	n.sendRREPOver(m, to)
}

// improve puts our own route in place of the one that an RREP tells, where ours
// is better. An RREP that only says what is known here still is what its
// originator waits for.
func (n *Node) improve(m *RREP) bool {
	r := n.active(m.Destination)
	if r == nil || !r.tellable || manet.After32(m.DestinationSeq, r.seq) {
		return false
	}
	m.HopCount, m.DestinationSeq, m.Lifetime, m.FirstHop = n.tellHops(r), r.seq, r.expires-n.Now, r.multi.last
	return true
}

// sendRREP sends along a route.
func (n *Node) sendRREP(m RREP, along *route) {
	if along != nil && along.state == valid {
		n.sendRREPOver(m, manet.Hop{Addr: along.next, Interface: along.iface})
	}
}

func (n *Node) sendRREPOver(m RREP, along manet.Hop) {
	if n.config.Multipath == nil {
		m.FirstHop = netip.Addr{} // for AOMDV only
	}
	if n.config.AckRREPs {
		m.AckWanted = true
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerAck, Addr: along.Addr}, At: n.Now + n.config.nextHopWait()})
		n.awaited[along.Addr] = true
	}
	if len(n.answered) < n.config.MaxEntries {
		n.answered[along.Addr] = n.Now
	}
	n.Act(n.send(along.Interface, along.Addr, n.config.NetDiameter, m, m.HopCount > 0))
}

// acknowledged, notAcknowledged and refuse are section 6.8.
func (n *Node) acknowledged(a netip.Addr) {
	if n.awaited[a] {
		delete(n.awaited, a)
		n.Act(manet.StopTimer{Key: manet.TimerKey{Kind: timerAck, Addr: a}})
	}
}

func (n *Node) notAcknowledged(a netip.Addr) {
	if n.awaited[a] {
		delete(n.awaited, a)
		n.refuse(a)
	}
}

func (n *Node) refuse(a netip.Addr) {
	if len(n.blacklist) >= n.config.MaxEntries {
		n.Count("full_blacklist")
		return
	}
	n.Count("blacklisted")
	n.blacklist[a] = n.Now + n.config.blacklistTimeout()
	n.wakeBy(n.blacklist[a])
	n.Act(manet.Report{Kind: "blacklisted", Addr: a})
}

// rerr is section 6.11, case (iii).
func (n *Node) rerr(m RERR) {
	var tell []*route
	for _, u := range m.Destinations {
		r := n.routes[u.Destination]
		if r == nil || r.state != valid || !m.NoDelete && !n.dropPath(r, n.from) || m.NoDelete && r.next != n.from {
			continue
		}
		if !m.NoDelete {
			n.lose(r, u.Seq)
		}
		if len(r.precursors) > 0 {
			tell = append(tell, r)
		}
	}
	if len(tell) > 0 {
		n.sendRERR(tell, m.NoDelete)
	}
}

// sendRERR tells precursors of routes that broke, or with keep of routes that
// were repaired and grew longer.
func (n *Node) sendRERR(routes []*route, keep bool) {
	var to []netip.Addr
	m := RERR{NoDelete: keep}
	for _, r := range routes {
		for _, p := range r.precursors {
			if len(to) < 2 && (len(to) == 0 || to[0] != p) {
				to = append(to, p)
			}
		}
		m.Destinations = append(m.Destinations, Unreachable{r.to, r.seq})
		if !keep {
			r.precursors = nil
		}
	}
	if len(to) == 0 && !n.config.NS2 {
		return
	}
	var only netip.Addr
	iface := 0
	if len(to) == 1 {
		if r := n.active(to[0]); r != nil && r.next == to[0] {
			only, iface = to[0], r.iface
		}
	}
	n.emitRERR(m, only, iface)
}

// rerrDestinations is how many fit a packet on any link.
const rerrDestinations = 150

func (n *Node) emitRERR(m RERR, only netip.Addr, iface int) {
	for list := m.Destinations; len(list) > 0; {
		if !n.rerrs.allow(n.Now) {
			n.Count("rerr_limited")
			return
		}
		k := min(len(list), rerrDestinations)
		part := RERR{NoDelete: m.NoDelete, Destinations: list[:k]}
		list = list[k:]
		if only.IsValid() && !n.config.NS2 { // ns-2's go to all, and another's wait a little
			n.Act(n.send(iface, only, 1, part, false))
			continue
		}
		n.toAll(part, 1, n.config.NS2 && n.cause == "rerr")
	}
}

// hello is section 6.9: a neighbour tells that it is there.
func (n *Node) hello(m RREP) {
	lifetime := time.Duration(n.config.AllowedHelloLoss) * n.config.HelloInterval
	n.take(offer{to: n.from, seq: m.DestinationSeq, known: true, hops: 1, lifetime: max(lifetime, m.Lifetime)})
	if n.config.Hello && len(n.watched) < n.config.MaxEntries {
		n.watched[n.from] = n.Now + lifetime
	}
}

// heard puts off taking a neighbour for lost.
func (n *Node) heard(a netip.Addr) {
	if _, ok := n.watched[a]; ok {
		n.watched[a] = n.Now + time.Duration(n.config.AllowedHelloLoss)*n.config.HelloInterval
	}
}
