// Package simulation runs routing protocols of package manet on many nodes at
// once, in virtual time over a seeded lossy radio. It is for tests and for
// questions of scale; it models the medium coarsely (airtime and carrier sense,
// no collisions, no capture) and no TCP. What a real kernel does with a
// protocol is measured in a rehearsal instead.
package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Radio describes the medium. A frame's airtime is Overhead and its bytes at
// the bit rate.
type Radio struct {
	BroadcastBps float64
	UnicastBps   float64
	Overhead     time.Duration // preamble, spaces and acknowledgement of a frame
	Slot         time.Duration
	BackoffSlots int     // a frame waits a random number of slots below this
	Loss         float64 // probability that a frame does not arrive over a perfect link
	Retries      int     // of a unicast frame
	QueueFrames  int     // of an interface; what is beyond is dropped

	Duplicate float64       // probability that a packet arrives twice
	Delay     float64       // probability that a packet is late, and so out of order
	DelayMax  time.Duration // by how much at most
	Truncate  float64       // probability that a packet arrives cut short
	Flip      float64       // probability that a packet arrives with a bit flipped
}

// DefaultRadio is IEEE 802.11g in ad hoc mode at its rates of 6 and 24 Mbit/s:
// 9 µs slots, 16 of them, 50 µs for preamble and spaces, 7 retries (the
// customary short retry limit), a queue of 50 frames as in ns-2.
func DefaultRadio() Radio {
	return Radio{BroadcastBps: 6e6, UnicastBps: 24e6, Overhead: 50 * time.Microsecond, Slot: 9 * time.Microsecond,
		BackoffSlots: 16, Retries: 7, QueueFrames: 50, DelayMax: 300 * time.Millisecond}
}

// Maker makes the protocol of a node. It is called again, with another seed,
// when the node reboots.
type Maker func(node int, interfaces []manet.Interface, seed uint64) (manet.Node, error)

// Config describes a simulation.
type Config struct {
	Seed       uint64
	Nodes      int
	Interfaces int // of each node; 0 is 1. Interface i of one node hears interface i of others.
	Radio      Radio
	Make       Maker
	Feedback   bool // the link layer reports unicast frames that it gave up
	HoldMax    int  // packets that a node holds for routes; 0 is 64

	Carrier     bool // the protocol carries data itself; see package manet
	Promiscuous bool // and is given what it overhears
}

// headerBytes are those of an IPv4 and a UDP header.
const headerBytes = 20 + 8

// Sim is a simulation. It is not safe for concurrent use.
type Sim struct {
	config Config
	now    manet.Time
	events eventHeap
	serial uint64
	random *rand.Rand
	nodes  []*node
	ports  []*port
	byAddr map[netip.Addr]int // port of an address
	err    error

	several bool // a route had several next hops

	dataNumber uint64
	carried    map[uint64]*Packet // data given to carriers, until it arrives

	Data DataStats
	// OnPacket, where set, sees every control packet as it is sent.
	OnPacket func(node int, s manet.Send)
	// OnTransmit, where set, sees every packet of a carrier as it is sent, and
	// OnDelivered its data packets that arrive.
	OnTransmit  func(node int, t manet.Transmit)
	OnDelivered func(p *Packet)
	// OnReport, where set, sees every report of a protocol.
	OnReport func(node int, r manet.Report)
}

type node struct {
	index    int
	protocol manet.Node
	ports    []int
	timers   map[manet.TimerKey]uint64 // serial of the event that counts
	routes   map[netip.Prefix]manet.SetRoute
	networks map[netip.Prefix]bool // routes that are not to a host
	held     *manet.Buffer[*Packet]
	down     bool
	started  bool // since it booted: it hears nothing before
	boots    uint64
	Stats    NodeStats
}

// NodeStats counts what a node sent for its protocol. Bytes are those of IP
// packets.
type NodeStats struct {
	Packets, Bytes int64
	Messages       map[string]int64 // by kind
	MessageBytes   map[string]int64
	Forwarded      int64 // messages on behalf of others
	RouteChanges   int64
	QueueDrops     int64
	HeldMax        int
}

type link struct {
	to   int // port
	loss float64
}

type port struct {
	node      int
	iface     int
	addr      netip.Addr
	links     []link
	queue     []frame
	sending   bool
	busyUntil manet.Time
}

// frame is what one port transmits.
type frame struct {
	to       int // port; -1 is everybody
	target   netip.Addr
	send     *manet.Send
	data     *Packet
	whole    []byte // a carrier's
	attempts int
	boots    uint64 // of the sender, when it was queued
}

func (f *frame) bytes() int {
	switch {
	case f.data != nil:
		return f.data.Bytes
	case f.whole != nil:
		return len(f.whole)
	}
	return len(f.send.Data) + headerBytes
}

// Address is the address of a node's interface.
func Address(node, iface int) netip.Addr {
	n := node + 1
	return netip.AddrFrom4([4]byte{10, byte(iface), byte(n >> 8), byte(n)})
}

// New makes a simulation in which nobody hears anybody. Nodes start at random
// moments of the first second.
func New(config Config) (*Sim, error) {
	if config.Interfaces == 0 {
		config.Interfaces = 1
	}
	if config.HoldMax == 0 {
		config.HoldMax = 64
	}
	if config.Nodes < 1 || config.Nodes > 65000 {
		return nil, fmt.Errorf("simulate mesh: %d nodes, want 1 to 65000", config.Nodes)
	}
	s := &Sim{config: config, random: rand.New(rand.NewPCG(config.Seed, 1)), byAddr: map[netip.Addr]int{},
		carried: map[uint64]*Packet{}}
	for i := range config.Nodes {
		n := &node{index: i, Stats: NodeStats{Messages: map[string]int64{}, MessageBytes: map[string]int64{}}}
		for k := range config.Interfaces {
			n.ports = append(n.ports, len(s.ports))
			s.byAddr[Address(i, k)] = len(s.ports)
			s.ports = append(s.ports, &port{node: i, iface: k, addr: Address(i, k)})
		}
		s.nodes = append(s.nodes, n)
		if err := s.boot(n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// boot gives a node a protocol without any memory.
func (s *Sim) boot(n *node) error {
	var interfaces []manet.Interface
	for _, p := range n.ports {
		interfaces = append(interfaces, manet.Interface{Name: fmt.Sprintf("wlan%d", s.ports[p].iface),
			Address: s.ports[p].addr, MTU: 1500})
	}
	protocol, err := s.config.Make(n.index, interfaces, s.random.Uint64())
	if err != nil {
		return fmt.Errorf("make protocol of node %d: %w", n.index, err)
	}
	n.protocol = protocol
	n.boots++
	n.started = false
	n.timers = map[manet.TimerKey]uint64{}
	n.routes = map[netip.Prefix]manet.SetRoute{}
	n.networks = map[netip.Prefix]bool{}
	n.held = manet.NewBuffer[*Packet](s.config.HoldMax, s.config.HoldMax, 30*time.Second)
	boots := n.boots
	s.At(s.now+time.Duration(s.random.Int64N(int64(time.Second))), func() {
		if n.boots == boots && !n.down {
			n.started = true
			s.handle(n, manet.Start{})
		}
	})
	return nil
}

// Now is the virtual time.
func (s *Sim) Now() manet.Time { return s.now }

// Nodes is how many nodes there are.
func (s *Sim) Nodes() int { return len(s.nodes) }

// State is a node's own view of itself.
func (s *Sim) State(node int) manet.State { return s.nodes[node].protocol.State(s.now) }

// Stats are a node's counts so far.
func (s *Sim) Stats(node int) NodeStats { return s.nodes[node].Stats }

// Held is how many data packets wait for a route at a node.
func (s *Sim) Held(node int) int { return s.nodes[node].held.Len() }

// Reboot makes a node forget everything, at once.
func (s *Sim) Reboot(node int) error {
	n := s.nodes[node]
	n.down = false
	s.clearQueues(n)
	return s.boot(n)
}

// PowerOff silences a node until it is rebooted.
func (s *Sim) PowerOff(node int) {
	n := s.nodes[node]
	n.down = true
	n.routes = map[netip.Prefix]manet.SetRoute{}
	s.clearQueues(n)
}

func (s *Sim) clearQueues(n *node) {
	for _, p := range n.ports {
		s.ports[p].queue = nil
	}
}

// Inject lets a node receive a control packet that nobody sent.
func (s *Sim) Inject(node int, p manet.Packet) {
	if n := s.nodes[node]; !n.down {
		s.handle(n, p)
	}
}

// At has something done at a time.
func (s *Sim) At(at manet.Time, do func()) { s.push(event{at: at, do: do}) }

// Run goes on until a time. It returns an error of the simulation itself.
func (s *Sim) Run(until manet.Time) error {
	for len(s.events) > 0 && s.events[0].at <= until && s.err == nil {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		s.step(e)
	}
	if s.err == nil {
		s.now = max(s.now, until)
	}
	return s.err
}

// event is one of: something to do, a node's timer, a port's next move.
type event struct {
	at     manet.Time
	serial uint64
	do     func()
	node   *node
	key    manet.TimerKey
	port   *port
}

func (s *Sim) push(e event) uint64 {
	s.serial++
	e.serial = s.serial
	e.at = max(e.at, s.now)
	heap.Push(&s.events, e)
	return e.serial
}

func (s *Sim) step(e event) {
	switch {
	case e.do != nil:
		e.do()
	case e.port != nil:
		s.transmit(e.port)
	case e.node.timers[e.key] == e.serial && !e.node.down:
		delete(e.node.timers, e.key)
		s.handle(e.node, manet.Timer{Key: e.key})
	}
}

// handle gives a node an event and does what it asks for.
func (s *Sim) handle(n *node, e manet.Event) {
	if n.down || !n.started {
		return
	}
	// Actions are valid until the next event, which releasing a packet causes.
	var released []netip.Addr
	var delivered [][]byte
	for _, a := range n.protocol.Handle(s.now, e) {
		switch a := a.(type) {
		case manet.Send:
			s.sendControl(n, a)
		case manet.SetTimer:
			n.timers[a.Key] = s.push(event{at: a.At, node: n, key: a.Key})
		case manet.StopTimer:
			delete(n.timers, a.Key)
		case manet.SetRoute:
			s.setRoute(n, a)
		case manet.DeleteRoute:
			delete(n.routes, a.Destination)
			delete(n.networks, a.Destination)
			n.Stats.RouteChanges++
		case manet.Release:
			released = append(released, a.Destination)
		case manet.Drop:
			s.Data.NoRoute += int64(len(n.held.Take(a.Destination)))
		case manet.Transmit:
			s.sendWhole(n, a)
		case manet.Deliver:
			delivered = append(delivered, a.Packet)
		case manet.Report:
			if s.OnReport != nil {
				s.OnReport(n.index, a)
			}
		}
	}
	for _, packet := range delivered {
		s.arrived(n, packet)
	}
	for _, destination := range released {
		for _, p := range n.held.Take(destination) {
			s.forward(n, p, true)
		}
	}
}

func (s *Sim) setRoute(n *node, r manet.SetRoute) {
	if len(r.Next) == 0 {
		s.err = fmt.Errorf("node %d set a route to %v without a next hop", n.index, r.Destination)
		return
	}
	r.Next = append([]manet.Hop(nil), r.Next...)
	s.several = s.several || len(r.Next) > 1
	n.routes[r.Destination] = r
	if !r.Destination.IsSingleIP() {
		n.networks[r.Destination] = true
	}
	n.Stats.RouteChanges++
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}
