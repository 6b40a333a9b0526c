package olsr

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Kinds of timers. Those of an interface have its address.
const (
	timerHello = iota + 1
	timerTC
	timerMID
	timerHNA
	timerFlush
	timerLinks
	timerSweep
	timerRoutes
	timerQuality
)

// Node is OLSR on one node; see manet.Node for how it is driven.
type Node struct {
	manet.Turn
	config Config
	main   netip.Addr
	size   int // bytes of an address
	mtu    int // smallest of the interfaces
	ifaces []iface
	jitter *manet.Jitter

	links        []*link
	neighbors    map[netip.Addr]*neighbor
	selectors    map[netip.Addr]manet.Time // MPR selector set (section 4.3.4)
	topology     map[netip.Addr]*origin
	duplicates   map[netip.Addr][]duplicate
	associations map[netip.Addr]association
	gateways     map[gateway]manet.Time

	seq, ansn  uint16
	eye        int
	lastSet    []Neighbor
	lastTC     manet.Time
	emptyUntil manet.Time

	routes, spare map[netip.Prefix]route
	changed       []netip.Prefix
	graph         graph

	// Of the event at hand.
	cause     string
	in        manet.Packet
	inLink    *link
	inSeq     uint16
	inCounted bool

	linksChanged      bool // the neighbour set is to be derived again
	mprsChanged       bool
	advertisedChanged bool
	routesChanged     bool // compute at once
	routesStale       bool // compute within RouteDelay
	routesDue         bool // the timer is set
	lastRoutes        manet.Time
	linkWake          manet.Time
}

type iface struct {
	manet.Interface
	up  bool
	seq uint16
	out outbox
}

// defaultMTU is Ethernet's, for an interface that does not say.
const defaultMTU = 1500

// minMTU is what IPv4 asks every link to carry at least, with room for one
// message of each kind.
const minMTU = 256

// New makes a node. A node that lost its state is a new one with another seed:
// its sequence numbers start anywhere, so that few of them look old to others.
func New(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.Networks = slices.Clone(config.Networks)
	n := &Node{
		config: config, main: config.Interfaces[0].Address, mtu: 1 << 16,
		jitter: manet.NewJitter(config.Seed), neighbors: map[netip.Addr]*neighbor{},
		selectors: map[netip.Addr]manet.Time{},
		topology:  map[netip.Addr]*origin{}, duplicates: map[netip.Addr][]duplicate{},
		associations: map[netip.Addr]association{}, gateways: map[gateway]manet.Time{},
		routes: map[netip.Prefix]route{}, spare: map[netip.Prefix]route{},
		graph: graph{ids: map[netip.Addr]int32{}},
	}
	n.size = n.main.BitLen() / 8
	for _, i := range config.Interfaces {
		if i.MTU == 0 {
			i.MTU = defaultMTU
		}
		i.MTU = min(max(i.MTU, minMTU), 1<<16)
		n.mtu = min(n.mtu, i.MTU)
		n.ifaces = append(n.ifaces, iface{Interface: i, up: true, seq: uint16(n.jitter.Uint32())})
	}
	n.seq, n.ansn = uint16(n.jitter.Uint32()), uint16(n.jitter.Uint32())
	return n, nil
}

// Handle takes an event in; see manet.Node.
func (n *Node) Handle(now manet.Time, event manet.Event) []manet.Action {
	n.Begin(now)
	switch e := event.(type) {
	case manet.Start:
		n.start()
	case manet.Packet:
		n.cause = "packet"
		n.receive(e)
	case manet.Timer:
		n.cause = "timeout"
		n.timer(e.Key)
	case manet.LinkFailed:
		n.cause = "link_failed"
		n.linkFailed(e)
	case manet.InterfaceUp:
		n.interfaceUp(e.Interface)
	case manet.InterfaceDown:
		n.cause = "interface_down"
		n.interfaceDown(e.Interface)
	case manet.NeedRoute:
		// A proactive protocol has a route or knows of none.
		n.Act(manet.Drop{Destination: e.Destination, Reason: "no route", Unreachable: true})
	}
	n.settle()
	return n.Actions()
}

func (n *Node) report(kind string, a netip.Addr) { n.Act(manet.Report{Kind: kind, Addr: a}) }

// settle brings what is derived up to date, once an event has been taken in.
func (n *Node) settle() {
	if n.linksChanged {
		n.refreshNeighbors()
	}
	if n.advertisedChanged && n.config.TriggeredTC {
		n.advertisedChanged = false
		at := max(n.Now, n.lastTC+n.config.TCInterval/4) + n.jitter.Below(n.config.MaxJitter/4)
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerTC}, At: at})
	}
	switch {
	case n.routesChanged:
		n.computeRoutes()
	case n.routesStale && !n.routesDue:
		n.routesDue = true
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerRoutes}, At: max(n.Now+n.config.RouteDelay,
			n.lastRoutes+n.config.RouteInterval)})
	}
}

func (n *Node) start() {
	for i := range n.ifaces {
		n.every(timerHello, n.ifaces[i].Address, n.jitter.Below(n.config.HelloInterval))
	}
	n.every(timerTC, netip.Addr{}, n.jitter.Below(n.config.TCInterval))
	if len(n.ifaces) > 1 {
		n.every(timerMID, netip.Addr{}, n.jitter.Below(n.config.MIDInterval))
	}
	if len(n.config.Networks) > 0 {
		n.every(timerHNA, netip.Addr{}, n.jitter.Below(n.config.HNAInterval))
	}
	n.every(timerSweep, netip.Addr{}, time.Second)
	if n.config.ETX {
		n.every(timerQuality, netip.Addr{}, time.Second)
	}
}

func (n *Node) every(kind uint8, a netip.Addr, in time.Duration) {
	s := manet.SetTimer{Key: manet.TimerKey{Kind: kind, Addr: a}, At: n.Now + in}
	switch kind {
	case timerSweep:
		s.Slack = n.config.HelloInterval
	case timerQuality:
		s.Slack = n.config.HelloInterval / 8
	}
	n.Act(s)
}

// jittered is an emission interval less a random part (section 18.2).
func (n *Node) jittered(interval time.Duration) time.Duration {
	return interval - n.jitter.Below(min(n.config.MaxJitter, interval/2))
}

func (n *Node) timer(key manet.TimerKey) {
	switch key.Kind {
	case timerHello:
		if i := n.ifaceOf(key.Addr); i >= 0 && n.ifaces[i].up {
			n.sendHello(i)
			n.every(timerHello, key.Addr, n.jittered(n.config.HelloInterval))
		}
	case timerTC:
		n.sendTC()
		n.every(timerTC, key.Addr, n.jittered(n.config.TCInterval))
	case timerMID:
		n.sendMID()
		n.every(timerMID, key.Addr, n.jittered(n.config.MIDInterval))
	case timerHNA:
		n.sendHNA()
		n.every(timerHNA, key.Addr, n.jittered(n.config.HNAInterval))
	case timerFlush:
		// A box that was sent with a message of ours meanwhile may have begun
		// to fill again; it has a timer of its own then.
		if i := n.ifaceOf(key.Addr); i >= 0 && n.ifaces[i].out.flush != 0 && n.ifaces[i].out.flush <= n.Now {
			n.send(i)
		}
	case timerLinks:
		n.linkWake = 0
		n.expireLinks()
		if at, ok := n.nextLinkTime(); ok {
			n.wakeForLinks(at)
		}
	case timerSweep:
		n.sweep()
		n.every(timerSweep, key.Addr, time.Second)
	case timerRoutes:
		n.routesDue = false
		n.routesChanged = n.routesChanged || n.routesStale
	case timerQuality:
		n.measure()
		n.every(timerQuality, key.Addr, time.Second)
	}
}

// measure closes a second of every link's quality.
func (n *Node) measure() {
	for _, l := range n.links {
		was := l.etx.cost()
		if l.etx.second(n.Now, l.htime) && l.etx.cost() != was {
			n.linksChanged, n.mprsChanged, n.routesStale = true, true, true
		}
	}
}

func (n *Node) ifaceOf(a netip.Addr) int {
	return slices.IndexFunc(n.ifaces, func(f iface) bool { return f.Address == a })
}

// wakeForLinks makes sure that the links are looked at by a time.
func (n *Node) wakeForLinks(at manet.Time) {
	if n.linkWake == 0 || at < n.linkWake {
		n.linkWake = at
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerLinks}, At: at, Slack: n.config.HelloInterval / 4})
	}
}

// hurryHellos sends the next HELLO soon (section 8.5).
func (n *Node) hurryHellos() {
	for i := range n.ifaces {
		if n.ifaces[i].up {
			n.every(timerHello, n.ifaces[i].Address, n.jitter.Below(n.config.MaxJitter))
		}
	}
}

func (n *Node) interfaceUp(i int) {
	if i < 0 || i >= len(n.ifaces) || n.ifaces[i].up {
		return
	}
	n.ifaces[i].up = true
	n.every(timerHello, n.ifaces[i].Address, n.jitter.Below(n.config.MaxJitter))
}

func (n *Node) interfaceDown(i int) {
	if i < 0 || i >= len(n.ifaces) || !n.ifaces[i].up {
		return
	}
	n.ifaces[i].up = false
	n.ifaces[i].out = outbox{}
	n.links = slices.DeleteFunc(n.links, func(l *link) bool { return l.local == i })
	n.linksChanged, n.routesChanged = true, true
}

// State describes the node.
func (n *Node) State(now manet.Time) manet.State {
	s := manet.State{Protocol: "olsr", Counters: n.Counters(), TableSizes: n.sizes()}
	for _, l := range n.links {
		nb := manet.Neighbor{Addr: l.remote, Interface: l.local, Symmetric: l.symmetric(now, n.config.Hysteresis)}
		if n.config.ETX && l.etx.cost() < costBroken {
			c := float64(l.etx.cost()) / costOne
			nb.Cost = &c
		}
		if tuple := n.neighbors[l.main]; tuple != nil && tuple.mpr {
			nb.Role = "mpr"
		} else if n.selectors[l.main] > now {
			nb.Role = "selector"
		}
		s.Neighbors = append(s.Neighbors, nb)
	}
	for p, r := range n.routes {
		s.Routes = append(s.Routes, manet.Route{Destination: p, NextHop: r.next, Interface: r.iface, Hops: r.hops,
			Metric: float64(r.cost) / costOne})
	}
	slices.SortFunc(s.Neighbors, func(a, b manet.Neighbor) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(s.Routes, func(a, b manet.Route) int { return comparePrefixes(a.Destination, b.Destination) })
	return s
}

func (n *Node) sizes() map[string]int {
	sizes := map[string]int{"links": len(n.links), "neighbors": len(n.neighbors), "selectors": len(n.selectors),
		"topology": len(n.topology), "associations": len(n.associations), "gateways": len(n.gateways),
		"routes": len(n.routes)}
	for _, nb := range n.neighbors {
		sizes["two_hop"] += len(nb.twoHop)
	}
	for _, o := range n.topology {
		sizes["topology_edges"] += len(o.edges)
	}
	for _, d := range n.duplicates {
		sizes["duplicates"] += len(d)
	}
	for _, f := range n.ifaces {
		sizes["outbox_bytes"] += len(f.out.data)
	}
	return sizes
}
