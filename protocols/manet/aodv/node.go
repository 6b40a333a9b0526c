package aodv

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Kinds of timers. Discoveries and acknowledgements have an address.
const (
	timerTable = iota + 1
	timerDiscovery
	timerHello
	timerSend
	timerAck
)

// Node is AODV on one node; see manet.Node for how it is driven.
type Node struct {
	manet.Turn
	config Config
	ifaces manet.Interfaces
	jitter *manet.Jitter

	seq, id     uint32
	routes      map[netip.Addr]*route
	discoveries map[netip.Addr]*discovery
	searches    map[netip.Addr]*search // of ns-2
	seen        map[requestID]manet.Time
	blacklist   map[netip.Addr]manet.Time
	copies      map[requestID][]netip.Addr // of AOMDV: neighbours that an RREQ to us was answered over
	watched     map[netip.Addr]manet.Time  // neighbours that sent HELLOs: when they count as lost
	awaited     map[netip.Addr]bool        // RREP-ACKs
	answered    map[netip.Addr]manet.Time  // neighbours that an RREP was sent to
	delayed     *manet.Delayed[manet.Send]
	rreqs       limiter
	rerrs       limiter
	quietUntil  manet.Time
	started     manet.Time
	broadcastAt manet.Time
	wake        manet.Time
	order       []netip.Addr

	// Of the event at hand.
	cause string
	in    manet.Packet
	from  netip.Addr
}

// New makes a node. One that lost its state is a new one; its QuietStart keeps
// it from misleading those who remember it.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	n := &Node{config: config, ifaces: manet.NewInterfaces(config.Interfaces), jitter: manet.NewJitter(config.Seed),
		routes: map[netip.Addr]*route{}, discoveries: map[netip.Addr]*discovery{}, searches: map[netip.Addr]*search{},
		seen:      map[requestID]manet.Time{},
		copies:    map[requestID][]netip.Addr{},
		blacklist: map[netip.Addr]manet.Time{}, watched: map[netip.Addr]manet.Time{}, awaited: map[netip.Addr]bool{},
		answered: map[netip.Addr]manet.Time{},
		rreqs:    limiter{perSecond: config.RREQRateLimit}, rerrs: limiter{perSecond: config.RERRRateLimit}}
	n.delayed = manet.NewDelayed[manet.Send](&n.Turn, timerSend, "full_delayed")
	n.seq = config.FirstSeq
	if config.QuietStart > 0 {
		n.quietUntil = math.MaxInt64 // until Start begins the wait
	}
	// RREQ IDs start anywhere: those of the time before a reboot are still
	// remembered by others.
	n.id = n.jitter.Uint32()
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.Begin(now)
	switch e := event.(type) {
	case manet.Start:
		n.started, n.quietUntil = now, now+n.config.QuietStart
		if n.config.Hello {
			n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerHello},
				At: now + n.jitter.Below(n.config.HelloInterval)})
		}
	case manet.Packet:
		n.receive(e)
	case manet.Timer:
		n.timer(e.Key)
	case manet.NeedRoute:
		n.needRoute(e)
	case manet.RouteUsed:
		n.routeUsed(e)
	case manet.LinkFailed:
		n.cause = "link_failed"
		if n.config.NS2 && !e.Destination.IsValid() {
			break // ns-2 looks at data only
		}
		reply := e.Type == TypeRREP || !e.Known && !e.Destination.IsValid()
		if at, ok := n.answered[e.Neighbor]; ok && reply && n.Now-at < time.Second {
			n.refuse(e.Neighbor) // it did not get our RREP: it does not hear us
		}
		n.linkBroken(e.Neighbor, e.Destination)
	case manet.InterfaceUp:
		n.ifaces.Set(e.Interface, true)
	case manet.InterfaceDown:
		n.interfaceDown(e.Interface)
	}
	return n.Actions()
}

func (n *Node) quiet() bool { return n.Now < n.quietUntil }

func (n *Node) timer(key manet.TimerKey) {
	switch key.Kind {
	case timerTable:
		n.expire()
	case timerDiscovery:
		n.cause = "discovery"
		n.noAnswer(key.Addr)
	case timerHello:
		n.cause = "hello_lost"
		n.sayHello()
		// A HELLO is due an interval after whatever was last sent to all: one that
		// only looked once an interval could be silent for almost two.
		next := n.broadcastAt + n.config.HelloInterval
		if next <= n.Now {
			next = n.Now + n.config.HelloInterval
		}
		n.Act(manet.SetTimer{Key: key, At: next})
	case timerSend:
		n.sendDelayed()
	case timerAck:
		n.notAcknowledged(key.Addr)
	}
}

// routeUsed keeps the route both ways (section 6.2), at the node where data
// ends too.
func (n *Node) routeUsed(e manet.RouteUsed) {
	if r := n.active(e.Destination); r != nil {
		r.used, r.sender = n.Now, e.Source
		n.use(r)
	}
	if back := n.active(e.Source); back != nil {
		n.use(back)
	}
	n.extend(e.Previous)
}

// use keeps a route and its next hop alive. A neighbour that only was heard of
// becomes part of an active route by it. AOMDV's other paths are not kept by
// it: one that data may not take ends at the next node, which in time forgets
// the number too and could then be brought to lead back here.
func (n *Node) use(r *route) {
	r.asked = true
	n.watch(r)
	n.extend(r.to)
	n.extend(r.next)
}

// sayHello is section 6.9, once an interval: our own HELLO where we are part of
// an active route, and the neighbours that have gone silent.
func (n *Node) sayHello() {
	var lost []netip.Addr
	for a, until := range n.watched {
		if until <= n.Now {
			lost = append(lost, a)
		}
	}
	slices.SortFunc(lost, netip.Addr.Compare)
	for _, a := range lost {
		n.Count("neighbors_lost")
		n.Act(manet.Report{Kind: "neighbor_lost", Addr: a})
		n.linkBroken(a, netip.Addr{})
	}
	if n.quiet() || !n.partOfRoute() || n.Now-n.broadcastAt < n.config.HelloInterval && n.broadcastAt > 0 {
		return
	}
	lifetime := n.config.HelloInterval * manet.Time(n.config.AllowedHelloLoss)
	n.broadcastAt = n.Now
	for i := range n.ifaces {
		if n.ifaces[i].Up {
			own := n.ifaces[i].Address
			n.Act(n.send(i, netip.Addr{}, 1, RREP{Destination: own, DestinationSeq: n.seq, Originator: own,
				Lifetime: lifetime}, false))
		}
	}
}

// partOfRoute reports whether a discovery's route is there; routes to
// neighbours that only HELLOs made do not count, or HELLOs would never end.
func (n *Node) partOfRoute() bool {
	for _, r := range n.routes {
		if r.asked && r.state == valid && r.expires > n.Now {
			return true
		}
	}
	return false
}

// send makes the action for a message to a neighbour or, where to is not valid,
// to all.
func (n *Node) send(iface int, to netip.Addr, ttl int, m Message, forwarded bool) manet.Send {
	data := m.Marshal()
	return manet.Send{Interface: iface, To: to, TTL: ttl, Data: data,
		Messages: []manet.Message{{Kind: kind(m), Bytes: len(data), Forwarded: forwarded}}}
}

// toAll sends a message on every interface; one that is forwarded waits a
// little, as its neighbours would otherwise all send at the same moment.
func (n *Node) toAll(m Message, ttl int, forwarded bool) {
	at := n.Now
	if forwarded {
		at += n.jitter.Below(n.config.Jitter)
	}
	for i := range n.ifaces {
		if !n.ifaces[i].Up {
			continue
		}
		s := n.send(i, netip.Addr{}, ttl, m, forwarded)
		if at == n.Now {
			n.Act(s)
		} else {
			n.delayed.Put(at, s)
		}
	}
	if at == n.Now {
		n.broadcastAt = n.Now
	}
}

func (n *Node) sendDelayed() {
	for s := range n.delayed.Due {
		if n.ifaces[s.Interface].Up {
			n.Act(s)
			n.broadcastAt = n.Now
		}
	}
}

func (n *Node) interfaceDown(i int) {
	if !n.ifaces.Set(i, false) {
		return
	}
	n.cause = "interface_down"
	var lost []netip.Addr
	for _, to := range n.sorted((*route).isValid) {
		for _, hop := range n.routes[to].nextHops() {
			if hop.Interface == i && !slices.Contains(lost, hop.Addr) {
				lost = append(lost, hop.Addr)
			}
		}
	}
	for _, a := range lost {
		n.linkBroken(a, netip.Addr{})
	}
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := manet.State{Protocol: n.config.protocol(), Counters: n.Counters(),
		TableSizes: map[string]int{"routes": len(n.routes),
			"discoveries": len(n.discoveries), "searches": len(n.searches), "seen": len(n.seen),
			"blacklist": len(n.blacklist),
			"watched":   len(n.watched),
			"awaited":   len(n.awaited), "answered": len(n.answered), "delayed": n.delayed.Len(),
			"copies": len(n.copies)}}
	for _, to := range n.sorted((*route).any) {
		r := n.routes[to]
		s.TableSizes["precursors"] += len(r.precursors)
		s.TableSizes["alternates"] += len(r.multi.others)
		if r.state != valid || r.expires <= now {
			continue
		}
		s.Routes = append(s.Routes, manet.Route{Destination: manet.Host(to), NextHop: r.next, Interface: r.iface,
			Hops: r.hops, Metric: float64(r.hops)})
		if r.hops == 1 {
			nb := manet.Neighbor{Addr: to, Interface: r.iface}
			if n.blacklist[to] > now {
				nb.Role = "blacklisted"
			}
			s.Neighbors = append(s.Neighbors, nb)
		}
	}
	s.Discovery = slices.SortedFunc(maps.Keys(n.discoveries), netip.Addr.Compare)
	return s
}
