package aodv

import (
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// NS2 is AODV as ns-2.34 has it, with which the papers measured, read in its
// source (aodv.h, aodv.cc, aodv_rtable.h, aodv_rqueue.h). README.md says what is
// ns-2's here and what stays the RFC's.
func NS2(interfaces []manet.Interface, seed uint64) Config {
	c := LinkLayer(interfaces, seed)
	c.NS2, c.LocalRepair = true, false // it repairs by a rule of its own
	c.ActiveRouteTimeout, c.NodeTraversalTime, c.NetDiameter = 10*time.Second, 30*time.Millisecond, 30
	c.RREQRetries, c.TTLStart = 3, 5
	c.RREQRateLimit, c.RERRRateLimit = 255, 255 // ns-2 has no such limits
	c.QuietStart = 0
	return c
}

const (
	ns2Pause       = 10 * time.Second       // MAX_RREQ_TIMEOUT
	ns2Look        = 500 * time.Millisecond // FREQUENCY, at which rt_purge looks for packets that wait
	ns2Held        = 30 * time.Second       // AODV_RTQ's TIMEOUT: how long a packet waits
	ns2ReverseLife = 6 * time.Second        // REV_ROUTE_LIFE
	ns2SeenLife    = 6 * time.Second        // BCAST_ID_SAVE
	ns2History     = 3                      // MAX_HISTORY
)

// search is what ns-2 keeps of its searches for a destination from one to the
// next.
type search struct {
	ttl     int        // of the last RREQ, or the hops of the route that it found
	count   int        // RREQs through the whole network without an answer
	until   manet.Time // no RREQ before
	asked   manet.Time // when the last one was sent
	perHop  [ns2History]time.Duration
	answers int
}

// searchFor returns what is known of searches for a destination; nil where
// there is no room to remember them. ns-2's rt_last_hop_count begins at 255, so that
// the first RREQ goes through the whole network, and is the hops of a route that was
// lost.
func (n *Node) searchFor(to netip.Addr) *search {
	s := n.searches[to]
	if s == nil && len(n.searches) < n.config.MaxEntries {
		s = &search{ttl: maxHops}
		if r := n.routes[to]; r != nil && r.known && r.state == invalid {
			s.ttl = r.hops
		}
		n.searches[to] = s
	}
	return s
}

// hopTime is PerHopTime: how long the last answers took, a hop.
func (s *search) hopTime(c *Config) time.Duration {
	known := min(s.answers, ns2History)
	if known == 0 {
		return c.NodeTraversalTime
	}
	var sum time.Duration
	for _, d := range s.perHop[:known] {
		sum += d
	}
	return sum / time.Duration(known)
}

// answered ends what was waited for: a route of so many hops is there, by an
// answer to our own RREQ or not.
func (s *search) answered(now manet.Time, hops int, own bool) {
	if own {
		s.perHop[s.answers%ns2History] = (now - s.asked) / time.Duration(hops)
		s.answers++
	}
	s.ttl, s.count, s.until = hops, 0, 0
}

// ns2Discover is sendRequest for a packet that has come to wait.
func (n *Node) ns2Discover(to netip.Addr) {
	d := n.discoveries[to]
	if d == nil {
		if len(n.discoveries) >= n.config.MaxEntries/16 || n.searchFor(to) == nil {
			n.Count("full_discoveries")
			n.Act(manet.Drop{Destination: to, Reason: "too many discoveries"})
			return
		}
		d = &discovery{to: to, began: n.Now}
		n.discoveries[to] = d
	}
	d.waits, d.held = true, n.Now
	if !d.repair {
		n.ns2Request(d)
	}
	n.ns2LookAgain(d)
}

// ns2LookAgain has rt_purge look at what waits, twice a second.
func (n *Node) ns2LookAgain(d *discovery) {
	if n.discoveries[d.to] == d {
		n.discoveryTimer(d, n.started+(n.Now-n.started).Truncate(ns2Look)+ns2Look)
	}
}

// ns2Waited is rt_purge for one destination: as long as packets wait, it is
// asked for again.
func (n *Node) ns2Waited(d *discovery) {
	d.waits = d.waits && n.Now-d.held <= ns2Held
	switch {
	case d.repair && n.Now >= d.repairUntil:
		n.notRepaired(d)
		return
	case d.waits:
		n.ns2Request(d)
	case !d.repair: // what waited has waited too long
		delete(n.discoveries, d.to)
		n.Count("discoveries_failed")
		n.Act(manet.Report{Kind: "discovery_failed", Addr: d.to})
		return
	}
	n.ns2LookAgain(d)
}

// ns2Request is sendRequest: an RREQ, unless one is out that may still be
// answered, or too many were not.
func (n *Node) ns2Request(d *discovery) {
	s := n.searches[d.to]
	if s.until > n.Now {
		return
	}
	if s.count > n.config.RREQRetries {
		s.until, s.count = n.Now+ns2Pause, 0
		d.waits = false
		n.Count("discoveries_failed")
		n.Act(manet.Report{Kind: "discovery_failed", Addr: d.to})
		n.Act(manet.Drop{Destination: d.to, Reason: "no route found"})
		if !d.repair {
			delete(n.discoveries, d.to)
		}
		return
	}
	if r := n.routes[d.to]; r != nil {
		s.ttl = max(s.ttl, r.hops)
	}
	switch {
	case s.ttl == 0:
		s.ttl = n.config.TTLStart
	case s.ttl < n.config.TTLThreshold:
		s.ttl += n.config.TTLIncrement
	default:
		s.ttl = n.config.NetDiameter
		s.count++
	}
	s.asked = n.Now
	wait := 2 * time.Duration(s.ttl) * s.hopTime(&n.config) * time.Duration(max(s.count, 1))
	s.until = n.Now + min(wait, ns2Pause)
	n.sendRREQ(d.to, s.ttl)
}

// ns2Repairs is local_rt_repair, where the packet that was lost had come further
// than it had to go; it reports whether it had. Other routes over the neighbour
// stay. The timer is set to a moment where ns-2's scheduler wants an interval, so
// that a repair lasts as long again as the simulation has until then; that is
// kept.
func (n *Node) ns2Repairs(neighbor, destination netip.Addr) bool {
	r := n.active(destination)
	if r == nil || r.next != neighbor || n.discoveries[r.to] != nil || len(n.discoveries) >= n.config.MaxEntries/16 {
		return false
	}
	back := n.active(r.sender)
	if back == nil || back.hops <= r.hops {
		return false
	}
	s := n.searchFor(r.to)
	if s == nil {
		return false
	}
	n.lose(r, r.seq)
	r.state = repairing
	n.Count("repairs")
	d := &discovery{to: r.to, began: n.Now, repair: true, oldHops: r.hops, waits: true, held: n.Now}
	n.discoveries[r.to] = d
	n.ns2Request(d)
	d.repairUntil = n.Now + s.until - n.started
	n.ns2LookAgain(d)
	return true
}
