package aodv

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// discovery is a search for a route.
type discovery struct {
	to      netip.Addr
	began   manet.Time
	ttl     int
	tries   int // with the whole network
	limited bool
	repair  bool
	oldHops int

	// Of ns-2's.
	waits       bool       // packets do
	held        manet.Time // since when the last of them does
	repairUntil manet.Time
}

// limiter lets a number of things happen a second.
type limiter struct {
	perSecond int
	times     []manet.Time
}

// allow reports whether one more may happen now, and counts it.
func (l *limiter) allow(now manet.Time) bool {
	l.times = slices.DeleteFunc(l.times, func(t manet.Time) bool { return now-t >= time.Second })
	if len(l.times) >= l.perSecond {
		return false
	}
	l.times = append(l.times, now)
	return true
}

// next is when one more may happen.
func (l *limiter) next(now manet.Time) manet.Time {
	if len(l.times) < l.perSecond {
		return now
	}
	return l.times[0] + time.Second
}

// needRoute answers for a packet that the runner holds.
func (n *Node) needRoute(e manet.NeedRoute) {
	n.cause = "data"
	if !n.ifaces.IsOther(e.Destination) {
		n.Act(manet.Drop{Destination: e.Destination, Reason: "no unicast destination"})
		return
	}
	if n.active(e.Destination) != nil {
		n.Act(manet.Release{Destination: e.Destination})
		return
	}
	if d := n.discoveries[e.Destination]; d != nil {
		if n.config.NS2 && (e.Local || d.repair) {
			n.ns2Discover(e.Destination)
			return
		}
		if !e.Local && !d.repair { // it may wait too, but its sender must not go on over us
			n.strayed(e)
		}
		return
	}
	if e.Local {
		n.discover(e.Destination)
		return
	}
	n.Act(manet.Drop{Destination: e.Destination, Reason: "no route at a relay"})
	n.strayed(e)
}

// strayed is section 6.11, case (ii): data came for which there is no route. It
// is told to the neighbour it came from, whatever the precursors are. In the
// quiet after a reboot the wait starts over (6.13).
func (n *Node) strayed(e manet.NeedRoute) {
	n.Count("strayed")
	u := Unreachable{Destination: e.Destination}
	if r := n.routes[e.Destination]; r != nil && r.known {
		u.Seq = r.seq
	}
	if n.quiet() {
		n.quietUntil = n.Now + n.config.QuietStart
	}
	only, iface := netip.Addr{}, 0
	if e.Previous.IsValid() {
		if r := n.active(e.Previous); r != nil && r.next == e.Previous {
			only, iface = e.Previous, r.iface
		}
	}
	n.emitRERR(RERR{Destinations: []Unreachable{u}}, only, iface)
}

// discover begins section 6.4's expanding ring.
func (n *Node) discover(to netip.Addr) {
	if n.config.NS2 {
		n.ns2Discover(to)
		return
	}
	if len(n.discoveries) >= n.config.MaxEntries/16 {
		n.Count("full_discoveries")
		n.Act(manet.Drop{Destination: to, Reason: "too many discoveries", Unreachable: true})
		return
	}
	d := &discovery{to: to, began: n.Now, ttl: n.config.TTLStart}
	if r := n.routes[to]; r != nil && r.hops > 0 {
		d.ttl = r.hops + n.config.TTLIncrement // where it was last
	}
	n.clampTTL(d)
	n.discoveries[to] = d
	n.ask(d)
}

func (n *Node) clampTTL(d *discovery) {
	if d.ttl > n.config.TTLThreshold {
		d.ttl = n.config.NetDiameter
	}
}

// ask sends an RREQ (section 6.3), or waits until the rate limit or the quiet
// after a reboot allows it.
func (n *Node) ask(d *discovery) {
	at := max(n.rreqs.next(n.Now), n.quietUntil)
	if d.limited = at > n.Now; d.limited {
		n.discoveryTimer(d, at)
		return
	}
	n.rreqs.allow(n.Now)
	n.sendRREQ(d.to, d.ttl)
	wait := n.config.ringTraversalTime(d.ttl)
	if d.ttl >= n.config.NetDiameter {
		wait = n.config.NetTraversalTime() << d.tries
	}
	n.discoveryTimer(d, n.Now+wait)
}

func (n *Node) sendRREQ(to netip.Addr, ttl int) {
	n.seq++
	n.id++
	m := RREQ{Gratuitous: n.config.Gratuitous, DestinationOnly: n.config.DestinationOnly, UnknownSeq: true,
		ID: n.id, Destination: to, Originator: n.ifaces[0].Address, OriginatorSeq: n.seq}
	if r := n.routes[to]; r != nil && r.known {
		m.DestinationSeq, m.UnknownSeq = r.seq, false
	}
	n.toAll(m, ttl, false)
}

func (n *Node) discoveryTimer(d *discovery, at manet.Time) {
	n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerDiscovery, Addr: d.to}, At: at})
}

// noAnswer continues with a discovery, or gives it up.
func (n *Node) noAnswer(to netip.Addr) {
	d := n.discoveries[to]
	switch {
	case d == nil:
	case n.config.NS2:
		n.ns2Waited(d)
	case d.limited:
		n.ask(d)
	case d.repair:
		n.notRepaired(d)
	case d.ttl < n.config.NetDiameter:
		d.ttl += n.config.TTLIncrement
		n.clampTTL(d)
		n.ask(d)
	case d.tries < n.config.RREQRetries:
		d.tries++
		n.ask(d)
	default:
		delete(n.discoveries, to)
		n.Count("discoveries_failed")
		n.Act(manet.Report{Kind: "discovery_failed", Addr: to})
		n.Act(manet.Drop{Destination: to, Reason: "no route found", Unreachable: true})
	}
}

// linkBroken is section 6.11, case (i), and 6.12. destination is where the
// packet went that the link layer gave up, if it was data.
func (n *Node) linkBroken(neighbor, destination netip.Addr) {
	delete(n.watched, neighbor)
	delete(n.answered, neighbor)
	if n.config.NS2 && n.ns2Repairs(neighbor, destination) {
		return
	}
	var tell, repair []*route
	for _, to := range n.sorted((*route).any) {
		r := n.routes[to]
		r.precursors = slices.DeleteFunc(r.precursors, func(a netip.Addr) bool { return a == neighbor })
		if r.state != valid || !n.dropPath(r, neighbor) {
			continue
		}
		if n.repairable(r, destination) {
			repair = append(repair, r)
			continue
		}
		n.lose(r, r.seq)
		// ns-2 reports every route; it has none to a neighbour that was only heard.
		if n.config.NS2 && r.known || !n.config.NS2 && len(r.precursors) > 0 {
			tell = append(tell, r)
		}
	}
	if len(tell) > 0 && !n.quiet() {
		n.sendRERR(tell, false)
	}
	for _, r := range repair {
		n.repair(r)
	}
}

// repairable reports whether to mend a route here: data of others goes over us
// now, and the destination is not too far.
func (n *Node) repairable(r *route, destination netip.Addr) bool {
	if !n.config.LocalRepair || n.quiet() || !n.forOthers(r) || r.hops > n.config.maxRepairTTL() ||
		n.discoveries[r.to] != nil {
		return false
	}
	if destination.IsValid() {
		return r.to == destination
	}
	return r.used > 0 && n.Now-r.used < n.config.HelloInterval*time.Duration(1+n.config.AllowedHelloLoss)
}

// forOthers reports whether the last data along a route was another node's. A
// route to who asked for one has no precursors; these decide where it is not
// known whose the data was.
func (n *Node) forOthers(r *route) bool {
	if !r.sender.IsValid() {
		return len(r.precursors) > 0
	}
	return !n.ifaces.IsOwn(r.sender)
}

func (n *Node) repair(r *route) {
	if len(n.discoveries) >= n.config.MaxEntries/16 {
		n.lose(r, r.seq)
		n.sendRERR([]*route{r}, false)
		return
	}
	n.lose(r, r.seq)
	r.state = repairing
	n.Count("repairs")
	d := &discovery{to: r.to, began: n.Now, repair: true, oldHops: r.hops}
	d.ttl = min(max(r.hops, n.halfWayBack(r))+n.config.LocalAddTTL, n.config.NetDiameter)
	n.discoveries[r.to] = d
	n.ask(d)
}

// halfWayBack is section 6.12's 0.5 * #hops, rounded up: half the hops to the
// sender of the data that is lost. 0: nothing is known of the sender.
func (n *Node) halfWayBack(r *route) int {
	if back := n.active(r.sender); back != nil {
		return (back.hops + 1) / 2
	}
	return 0
}

func (n *Node) notRepaired(d *discovery) {
	delete(n.discoveries, d.to)
	n.Count("repairs_failed")
	n.Act(manet.Drop{Destination: d.to, Reason: "not repaired"})
	r := n.routes[d.to]
	if r == nil || r.state != repairing {
		return
	}
	r.state = invalid
	r.expires = n.Now + n.config.DeletePeriod()
	n.wakeBy(r.expires)
	if len(r.precursors) > 0 && !n.config.NS2 { // there who sends data on is told
		n.sendRERR([]*route{r}, false)
	}
}
