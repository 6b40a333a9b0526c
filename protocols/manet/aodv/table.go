package aodv

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// state of a route table entry (RFC 3561 section 2).
type state uint8

const (
	invalid state = iota
	valid
	repairing // broken, and a local repair is under way (6.12)
)

// route is an entry of the route table (section 2).
type route struct {
	to         netip.Addr
	state      state
	seq        uint32
	known      bool // seq is a number that was once told
	tellable   bool // the "valid sequence number" flag: others may be answered with seq
	hops       int
	next       netip.Addr
	iface      int
	precursors []netip.Addr // neighbours that go over us to there
	expires    manet.Time   // valid: its lifetime; invalid: when it is forgotten
	used       manet.Time   // when data last went along it
	sender     netip.Addr   // whose data that was; not valid where no data went
	asked      bool         // by a discovery or by data, not only heard of
	multi      paths        // of AOMDV: what there is besides
}

// maxLifetime bounds what others say a route lasts; a hostile one would stay
// for 49 days.
const maxLifetime = 10 * time.Minute

// maxHops is the most that the hop count field can tell.
const maxHops = 255

// offer is a way to a destination that a message tells.
type offer struct {
	to       netip.Addr
	seq      uint32
	known    bool // the message tells a sequence number
	hops     int
	lifetime time.Duration
	asked    bool
	last     netip.Addr // of AOMDV: the neighbour of the destination on the way
}

// take updates the table with a routes over the sender of the message at hand,
// if it is newer or shorter than what is there (section 6.2, with the readings
// in README.md). It reports whether the entry is now that way.
func (n *Node) take(o offer) bool {
	if !n.ifaces.IsOther(o.to) || o.hops > maxHops {
		return false // never a route to ourselves
	}
	r := n.routes[o.to]
	if r == nil {
		if len(n.routes) >= n.config.MaxEntries {
			n.Count("full_routes")
			return false
		}
		r = &route{to: o.to}
		n.routes[o.to] = r
	}
	if n.config.Multipath != nil && n.alternative(r, &o) {
		return n.addPath(r, o)
	}
	if !r.yieldsTo(&o, n.from) {
		return false
	}
	before := *r
	if o.known || r.state != valid {
		r.multi = paths{last: n.lastHop(&o), advertised: notAdvertised}
	}
	if o.known {
		r.seq, r.known, r.tellable = o.seq, true, true
	} else {
		r.tellable = r.tellable && r.state == valid
	}
	r.hops, r.next, r.iface = o.hops, n.from, n.in.Interface
	expires := n.Now + min(o.lifetime, maxLifetime)
	if before.state == valid {
		expires = max(expires, before.expires)
	}
	r.state, r.expires = valid, expires
	r.asked = o.asked || r.asked && before.state == valid
	n.wakeBy(r.expires)
	n.watch(r)
	n.established(r, &before)
	return true
}

// watch expects HELLOs of a next hop from the moment that an active route goes
// over it.
// The RFC expects them only after the first, and a neighbour that went away
// before it would never be missed.
func (n *Node) watch(r *route) {
	if r.asked {
		n.watchHop(r.next)
	}
}

func (n *Node) watchHop(next netip.Addr) {
	if !n.config.Hello || len(n.watched) >= n.config.MaxEntries {
		return
	}
	if _, ok := n.watched[next]; !ok {
		n.watched[next] = n.Now + time.Duration(1+n.config.AllowedHelloLoss)*n.config.HelloInterval
	}
}

// yieldsTo reports whether a way replaces or renews the entry.
func (r *route) yieldsTo(o *offer, from netip.Addr) bool {
	if !o.known {
		// Heard from the neighbour itself. A route that works is not given up
		// for a link of which one direction is known.
		return r.state != valid || r.next == from && r.hops == 1
	}
	switch {
	case !r.known || manet.After32(o.seq, r.seq):
		return true
	case o.seq != r.seq:
		return false
	}
	// The same way again may renew an entry, nothing longer may.
	return r.state != valid || o.hops < r.hops || o.hops == r.hops && r.next == from
}

// established installs a route and ends what waited for it.
func (n *Node) established(r, before *route) {
	if before.state != valid || before.next != r.next || before.iface != r.iface || before.hops != r.hops ||
		len(before.multi.others) > 0 {
		n.install(r)
	}
	d := n.discoveries[r.to]
	if s := n.searches[r.to]; s != nil {
		s.answered(n.Now, r.hops, d != nil && n.cause == "rrep")
	}
	if d == nil {
		return
	}
	delete(n.discoveries, r.to)
	n.Act(manet.StopTimer{Key: manet.TimerKey{Kind: timerDiscovery, Addr: r.to}})
	n.Act(manet.Release{Destination: r.to})
	r.used = n.Now
	if !d.repair {
		n.Act(manet.Report{Kind: "discovery_us", Addr: r.to, Value: float64((n.Now - d.began).Microseconds())})
		return
	}
	n.Count("repaired")
	n.Act(manet.Report{Kind: "repair_us", Addr: r.to, Value: float64((n.Now - d.began).Microseconds())})
	if r.hops > d.oldHops && len(r.precursors) > 0 && !n.config.NS2 { // section 6.12: tell that it grew longer
		n.sendRERR([]*route{r}, true)
	}
}

func (n *Node) install(r *route) {
	n.Act(manet.SetRoute{Destination: manet.Host(r.to), Next: r.nextHops(), Hops: r.hops, Metric: float64(r.hops),
		Cause: n.cause})
}

// lose makes a route invalid. Its number grows, so that nothing older, which
// may lead back to us, is believed again.
func (n *Node) lose(r *route, seq uint32) {
	if r.state == valid {
		n.Act(manet.DeleteRoute{Destination: manet.Host(r.to), Cause: n.cause})
	}
	if r.known {
		r.seq = newer(seq, r.seq+1)
	}
	r.state, r.asked = invalid, false
	r.multi = paths{advertised: notAdvertised}
	r.expires = n.Now + n.config.DeletePeriod()
	n.wakeBy(r.expires)
}

func newer(a, b uint32) uint32 {
	if manet.After32(a, b) {
		return a
	}
	return b
}

func (r *route) addPrecursor(a netip.Addr) {
	if !slices.Contains(r.precursors, a) && len(r.precursors) < maxPrecursors {
		r.precursors = append(r.precursors, a)
	}
}

// maxPrecursors bounds a list; RERRs go to all neighbours long before.
const maxPrecursors = 256

// expire looks at the table once a time has come.
func (n *Node) expire() {
	n.cause = "expired"
	due := func(r *route) bool { return r.state != repairing && r.firstExpiry() <= n.Now }
	for _, to := range n.sorted(due) {
		r := n.routes[to]
		switch {
		case n.expirePaths(r) || r.expires > n.Now:
		case r.state == valid:
			n.lose(r, r.seq)
		default:
			delete(n.routes, to)
		}
	}
	for id, until := range n.seen {
		if until <= n.Now {
			delete(n.seen, id)
			delete(n.copies, id)
		}
	}
	for a, until := range n.blacklist {
		if until <= n.Now {
			delete(n.blacklist, a)
		}
	}
	for a, at := range n.answered {
		if n.Now-at >= time.Second {
			delete(n.answered, a)
		}
	}
	n.wake = 0
	for _, r := range n.routes {
		if r.state != repairing {
			n.wakeBy(r.firstExpiry())
		}
	}
	if len(n.seen)+len(n.blacklist)+len(n.answered) > 0 {
		n.wakeBy(n.Now + time.Second)
	}
}

// sorted lists the destinations of some routes in order, so that a run repeats itself.
func (n *Node) sorted(which func(*route) bool) []netip.Addr {
	n.order = n.order[:0]
	for to, r := range n.routes {
		if which(r) {
			n.order = append(n.order, to)
		}
	}
	slices.SortFunc(n.order, netip.Addr.Compare)
	return n.order
}

// any and isValid are for sorted.
func (*route) any() bool { return true }

func (r *route) isValid() bool { return r.state == valid }

// wakeBy makes sure that the table is looked at by a time.
func (n *Node) wakeBy(at manet.Time) {
	if n.wake == 0 || at < n.wake {
		n.wake = at
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerTable}, At: at, Slack: n.config.HelloInterval / 8})
	}
}

// extend keeps a route that is used (section 6.2).
func (n *Node) extend(a netip.Addr) {
	if r := n.routes[a]; r != nil && r.state == valid {
		r.expires = max(r.expires, n.Now+n.config.ActiveRouteTimeout)
	}
}

func (n *Node) active(a netip.Addr) *route {
	if r := n.routes[a]; r != nil && r.state == valid && r.expires > n.Now {
		return r
	}
	return nil
}
