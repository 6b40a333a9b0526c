package dsr

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// lab is one node, 10.0.0.1, whose neighbours the test plays.
type lab struct{ *simtest.Lab[*Node] }

// standard is the RFC's configuration, on the first of the interfaces.
func standard(i []manet.Interface, seed uint64) Config { return RFC4728(i[0], seed) }

func newLab(t *testing.T, change func(*Config)) *lab {
	t.Helper()
	return &lab{simtest.NewLab(t, simtest.New(t, standard, New, change), nil)}
}

// hear lets the node receive options from a node, by way of a neighbour.
func (l *lab) hear(from, to netip.Addr, ttl int, options ...Option) {
	l.T.Helper()
	l.Handle(manet.Received{Packet: l.packet(from, to, ttl, options...)})
}

func (l *lab) packet(from, to netip.Addr, ttl int, options ...Option) []byte {
	other := &Node{self: from}
	return other.compose(to, ttl, options...)
}

// take gives what was sent since, each as its options and its neighbour.
func (l *lab) take() (out []sentPacket) {
	l.T.Helper()
	for _, s := range l.Transmitted {
		h, _, err := Parse(s.Packet[ipBytes:])
		if err != nil {
			l.T.Fatal(err)
		}
		out = append(out, sentPacket{s.To, int(s.Packet[8]), destination(s.Packet), h})
	}
	l.Transmitted = nil
	return out
}

type sentPacket struct {
	next netip.Addr
	ttl  int
	to   netip.Addr
	Header
}

func (l *lab) one() sentPacket {
	l.T.Helper()
	all := l.take()
	if len(all) != 1 {
		l.T.Fatalf("%d packets were sent: %+v", len(all), all)
	}
	return all[0]
}

func (l *lab) want(got sentPacket, next netip.Addr, options ...Option) {
	l.T.Helper()
	if got.next != next || !reflect.DeepEqual(got.Options, options) {
		l.T.Errorf("to %v: %+v, want to %v: %+v", got.next, got.Options, next, options)
	}
}

// send gives the node a packet of its own to 10.0.0.5.
func (l *lab) send() { l.Handle(manet.Outgoing{Packet: data(100)}) }

// reply tells the node a route to 10.0.0.5 from there, over some nodes.
func (l *lab) reply(route ...byte) {
	l.T.Helper()
	way := addrs(append(route, 5)...)
	back := slices.Clone(way[:len(way)-1])
	slices.Reverse(back)
	l.hear(addr("10.0.0.5"), addr("10.0.0.1"), 255, SourceRoute{Route: back}, RouteReply{Route: way})
}

func TestDiscovery(t *testing.T) {
	l := newLab(t, nil)
	l.send()
	first := l.one()
	ask, _ := find[RouteRequest](&first.Header)
	if first.ttl != 1 || first.to != broadcast || ask.Target != addr("10.0.0.5") || len(ask.Route) != 0 {
		t.Errorf("the first request is %+v with a TTL of %d", ask, first.ttl)
	}
	l.Wait(31 * time.Millisecond)
	if second := l.one(); second.ttl != 255 {
		t.Errorf("the second request has a TTL of %d", second.ttl)
	}
	// 500 ms, then twice as long each time.
	for _, gap := range []time.Duration{500, 1000, 2000, 4000} {
		l.Wait(gap*time.Millisecond - 5*time.Millisecond)
		if early := l.take(); len(early) != 0 {
			t.Errorf("asked again before %v ms", gap)
		}
		l.Wait(5 * time.Millisecond)
		l.one()
	}
	l.send()
	l.reply(2, 3)
	for _, p := range l.take() {
		l.want(p, addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(2, 3)})
	}
	if l.Reported("discovery_us") < 7e6 {
		t.Errorf("reported %v", l.Reports)
	}
	l.send()
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(2, 3)})
}

func TestDiscoveryEnds(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxRequestRexmt = 3 })
	for range 100 {
		l.send()
	}
	l.Wait(20 * time.Second)
	if got := len(l.take()); got != 4 || len(l.Dropped) != 36+1 || !l.Dropped[36].Unreachable {
		t.Fatalf("%d requests, %d times something is dropped", got, len(l.Dropped))
	}
	if d := l.Dropped[35]; d.Unreachable || d.Reason != "no room" || len(d.Packets) != 1 {
		t.Errorf("dropped %d packets, as %q, unreachable: %v; want the oldest alone", len(d.Packets), d.Reason,
			d.Unreachable)
	}
	if got := len(l.Dropped[36].Packets); got != 64 {
		t.Errorf("%d packets of local senders are given back, want all that were held", got)
	}
	s := l.Node.State(l.Now)
	if s.Counters["buffer_expired"] != 36 || s.TableSizes["buffer"] != 0 {
		t.Errorf("of 100 packets 64 are held: %v, %v", s.Counters, s.TableSizes)
	}
	failed := manet.Report{Kind: "discovery_failed", Addr: addr("10.0.0.5")}
	if !slices.Equal(l.Reports, []manet.Report{failed}) {
		t.Errorf("reported %v, want one discovery that failed", l.Reports)
	}
	// Packets that grow too old in the buffer end a discovery too.
	l = newLab(t, nil)
	l.send()
	l.Wait(2 * time.Minute)
	if asked := len(l.take()); asked > 10 || len(l.Node.State(l.Now).Discovery) != 0 {
		t.Errorf("asked %d times for a packet that is long gone", asked)
	}
	if !slices.Equal(l.Reports, []manet.Report{failed}) {
		t.Errorf("reported %v of packets that grew too old, want one discovery that failed", l.Reports)
	}
}

func TestRequestIsAnsweredOrForwarded(t *testing.T) {
	l := newLab(t, nil)
	from := addr("10.0.0.7")
	ask := RouteRequest{ID: 3, Target: addr("10.0.0.1"), Route: addrs(6, 2)}
	l.hear(from, broadcast, 250, ask)
	l.Wait(11 * time.Millisecond)
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(2, 6)},
		RouteReply{Route: addrs(6, 2, 1)})
	ask.Target = addr("10.0.0.9")
	for range 2 {
		l.hear(from, broadcast, 250, ask)
	}
	l.Wait(11 * time.Millisecond)
	got := l.one()
	l.want(got, netip.Addr{}, RouteRequest{ID: 3, Target: ask.Target, Route: addrs(6, 2, 1)})
	if got.ttl != 249 {
		t.Errorf("it continues with a TTL of %d", got.ttl)
	}
	for name, other := range map[string]RouteRequest{
		"came by here": {ID: 4, Target: ask.Target, Route: addrs(1, 2)},
		"a node twice": {ID: 5, Target: ask.Target, Route: addrs(2, 2)},
		"multicast":    {ID: 6, Target: addr("224.0.0.1"), Route: addrs(2)},
		"too long a way": {ID: 7, Target: ask.Target, Route: addrs(20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
			33, 34)},
		"no node's route": {ID: 8, Target: ask.Target, Route: []netip.Addr{broadcast}}} {
		l.hear(from, broadcast, 250, other)
		l.Wait(11 * time.Millisecond)
		if sent := l.take(); len(sent) != 0 {
			t.Errorf("%s: %+v", name, sent)
		}
	}
	l.hear(from, broadcast, 1, RouteRequest{ID: 9, Target: ask.Target})
	l.Handle(manet.Received{From: addr("10.0.0.8"), Packet: l.packet(from, broadcast, 9,
		RouteRequest{ID: 10, Target: ask.Target, Route: addrs(2)})})
	l.Wait(11 * time.Millisecond)
	if sent := l.take(); len(sent) != 0 {
		t.Errorf("at the end of its TTL, or by another than it says: %+v", sent)
	}
}

func TestCachedReply(t *testing.T) {
	for _, on := range []bool{true, false} {
		l := newLab(t, func(c *Config) { c.CachedReplies = on })
		l.reply(2, 3)
		l.hear(addr("10.0.0.7"), broadcast, 1, RouteRequest{ID: 3, Target: addr("10.0.0.5"), Route: addrs(6)})
		l.Wait(30 * time.Millisecond)
		if !on {
			if sent := l.take(); len(sent) != 0 {
				t.Errorf("switched off, and %+v", sent)
			}
			continue
		}
		l.want(l.one(), addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)},
			RouteReply{Route: addrs(6, 1, 2, 3, 5)})
		// Not where the route would come by a node twice, nor where the asker is
		// heard to use one as short.
		l.hear(addr("10.0.0.7"), broadcast, 1, RouteRequest{ID: 4, Target: addr("10.0.0.5"), Route: addrs(3)})
		l.hear(addr("10.0.0.7"), broadcast, 1, RouteRequest{ID: 5, Target: addr("10.0.0.5"), Route: addrs(6)})
		used := l.packet(addr("10.0.0.7"), addr("10.0.0.5"), 64, SourceRoute{SegmentsLeft: 2, Route: addrs(8, 9)})
		used[ipBytes] = 17
		l.Handle(manet.Received{Overheard: true, Packet: used})
		l.Wait(30 * time.Millisecond)
		if sent := l.take(); len(sent) != 0 {
			t.Errorf("needless replies: %+v", sent)
		}
	}
}

// relayed is a packet from 10.0.0.7 to 10.0.0.5 that this node is to forward.
func relayed(l *lab) []byte {
	p, err := Encapsulate(data(50), addrs(6, 1, 2, 3))
	if err != nil {
		l.T.Fatal(err)
	}
	p[15] = 7
	p[ipBytes+fixedBytes+3]--
	seal(p)
	return p
}

func TestSalvage(t *testing.T) {
	for _, on := range []bool{true, false} {
		l := newLab(t, func(c *Config) { c.Salvaging = on })
		l.reply(4)
		l.Handle(manet.Received{Packet: relayed(l)})
		sent := l.Transmitted[0]
		l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(6, 1, 2, 3)})
		l.Handle(manet.Undelivered{Neighbor: addr("10.0.0.2"), Packet: sent.Packet})
		got := l.take()
		if len(got) != map[bool]int{true: 2, false: 1}[on] {
			t.Fatalf("salvaging %v: %+v", on, got)
		}
		l.want(got[0], addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)},
			RouteError{Type: NodeUnreachable, Source: addr("10.0.0.1"), Destination: addr("10.0.0.7"),
				Unreachable: addr("10.0.0.2")})
		if on {
			l.want(got[1], addr("10.0.0.4"), SourceRoute{Salvage: 1, SegmentsLeft: 1, Route: addrs(1, 4)})
		}
		if dropped := slices.ContainsFunc(l.Dropped, func(d manet.Drop) bool {
			return d.Reason == "not salvaged" && len(d.Packets) == 1
		}); dropped == on {
			t.Errorf("salvaging %v: the packet is told as dropped: %v", on, dropped)
		}
	}
	// A link that fails without giving a packet back still has its error told.
	l := newLab(t, nil)
	l.Handle(manet.Received{Packet: relayed(l)})
	l.take()
	l.Handle(manet.LinkFailed{Neighbor: addr("10.0.0.2")})
	got := l.one()
	if o, ok := find[RouteError](&got.Header); !ok || o.Unreachable != addr("10.0.0.2") || got.to != addr("10.0.0.7") {
		t.Errorf("told %+v", got)
	}
}

// TestForgedRoutes: a packet of a neighbour that is not on its source route is
// not carried, nor believed.
//
//attack:air a source route with which its sender cannot have been given the packet | it has to name the neighbour
//attack:and from which it came
func TestForgedRoutes(t *testing.T) {
	l := newLab(t, nil)
	l.Handle(manet.Received{From: addr("10.0.0.8"), Packet: relayed(l)})
	l.Handle(manet.Received{From: addr("10.0.0.8"), Overheard: true, Packet: relayed(l)})
	if s := l.Node.State(l.Now); len(l.take()) != 0 || s.TableSizes["links"] != 0 || s.Counters["hostile"] != 2 {
		t.Errorf("%v, %v", s.Counters, s.TableSizes)
	}
	l.Handle(manet.Received{From: addr("10.0.0.6"), Packet: relayed(l)})
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(6, 1, 2, 3)})
}

func TestOwnPacketGoesAnotherWay(t *testing.T) {
	l := newLab(t, nil)
	l.reply(2)
	l.reply(3, 4)
	l.send()
	sent := l.Transmitted[0]
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 1, Route: addrs(2)})
	l.Handle(manet.Undelivered{Neighbor: addr("10.0.0.2"), Packet: sent.Packet})
	sent = l.Transmitted[0]
	l.want(l.one(), addr("10.0.0.3"), SourceRoute{SegmentsLeft: 2, Route: addrs(3, 4)})
	// An error takes the link of the second route; the request that follows
	// reports it, before it asks.
	lost := RouteError{Type: NodeUnreachable, Source: addr("10.0.0.4"), Destination: addr("10.0.0.1"),
		Unreachable: addr("10.0.0.5")}
	l.hear(addr("10.0.0.4"), addr("10.0.0.1"), 255, SourceRoute{Route: addrs(3)}, lost)
	l.Handle(manet.Outgoing{Packet: data(30)})
	got := l.one()
	ask, _ := find[RouteRequest](&got.Header)
	l.want(got, netip.Addr{}, lost, ask)
	if l.Node.State(l.Now).TableSizes["buffer"] != 1 {
		t.Error("the packet does not wait")
	}
	var ways []string
	for _, r := range l.Reports {
		if r.Kind == "source_route" {
			ways = append(ways, fmt.Sprintf("%v: %s (%v hops)", r.Addr, r.Note, r.Value))
		}
	}
	if want := []string{"10.0.0.5: 10.0.0.2 (2 hops)", "10.0.0.5: 10.0.0.3 10.0.0.4 (3 hops)",
		"10.0.0.5:  (0 hops)"}; !slices.Equal(ways, want) {
		t.Errorf("ways %q, want %q", ways, want)
	}
}

// A link that was lost to a collision is used again as soon as an answer comes over it.
func TestLostLinkComesBack(t *testing.T) {
	l := newLab(t, nil)
	l.reply(2, 3)
	lost := RouteError{Type: NodeUnreachable, Source: addr("10.0.0.2"), Destination: addr("10.0.0.1"),
		Unreachable: addr("10.0.0.3")}
	l.hear(addr("10.0.0.2"), addr("10.0.0.1"), 255, SourceRoute{Route: []netip.Addr{}}, lost)
	l.send()
	for range 2 { // the neighbours are told about it, and then all
		got := l.one()
		ask, _ := find[RouteRequest](&got.Header)
		l.want(got, netip.Addr{}, lost, ask)
		// a neighbour's copy
		l.hear(addr("10.0.0.1"), broadcast, 254, lost, RouteRequest{ID: ask.ID, Target: ask.Target, Route: addrs(2)})
		l.Wait(510 * time.Millisecond)
	}
	got := l.one()
	ask, _ := find[RouteRequest](&got.Header)
	l.want(got, netip.Addr{}, ask)
	l.hear(addr("10.0.0.2"), addr("10.0.0.1"), 255, SourceRoute{Route: []netip.Addr{}}, lost) // it fails again
	// From a cache beyond the link: not for others, but for who asked.
	other := l.packet(addr("10.0.0.3"), addr("10.0.0.7"), 255, SourceRoute{Route: addrs(2)},
		RouteReply{Route: addrs(2, 3, 5)})
	l.Handle(manet.Received{Overheard: true, Packet: other})
	if sent := l.take(); len(sent) != 0 {
		t.Errorf("with a link that another's reply has: %+v", sent)
	}
	l.hear(addr("10.0.0.3"), addr("10.0.0.1"), 255, SourceRoute{Route: addrs(2)}, RouteReply{Route: addrs(2, 3, 5)})
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(2, 3)})
}

func TestShortening(t *testing.T) {
	l := newLab(t, nil)
	p, err := Encapsulate(data(50), addrs(6, 2, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	p[15] = 7
	seal(p)
	for range 2 { // the second is within the hold-off
		l.Handle(manet.Received{From: addr("10.0.0.7"), Overheard: true, Packet: bytes.Clone(p)})
	}
	l.Wait(11 * time.Millisecond)
	l.want(l.one(), addr("10.0.0.7"), SourceRoute{Route: []netip.Addr{}}, RouteReply{Route: addrs(1, 5)})
	if len(l.Delivered) != 0 {
		t.Error("what was overheard is delivered")
	}
	l.Wait(time.Second)
	p[ipBytes+fixedBytes+3] = 3 // 10.0.0.6 sends it on now
	seal(p)
	l.Handle(manet.Received{From: addr("10.0.0.6"), Overheard: true, Packet: p})
	l.Wait(11 * time.Millisecond)
	l.want(l.one(), addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)}, RouteReply{Route: addrs(6, 1, 5)})
}

func TestNetworkAcknowledgements(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Maintenance = NetworkAcks })
	l.reply(2)
	l.send()
	got := l.one()
	ask, ok := find[AckRequest](&got.Header)
	if !ok {
		t.Fatalf("no acknowledgement is asked for: %+v", got)
	}
	l.send()
	if _, ok := find[AckRequest](&l.take()[0].Header); ok {
		t.Error("two are asked for at once")
	}
	l.hear(addr("10.0.0.2"), addr("10.0.0.1"), 1, Ack{ID: ask.ID, Source: addr("10.0.0.2"),
		Destination: addr("10.0.0.1")})
	l.Wait(200 * time.Millisecond)
	l.send()
	if got := l.one(); len(got.Options) != 1 || l.Node.held != 0 {
		t.Errorf("within the hold-off, %+v; %d held", got, l.Node.held)
	}
	// Nobody answers: two more tries, then the link is broken, and both packets
	// wait for another route.
	l.Wait(time.Second)
	l.take()
	l.send()
	l.send()
	l.Wait(5 * time.Second)
	tries := 0
	for _, p := range l.take() {
		if _, ok := find[AckRequest](&p.Header); ok {
			tries++
		}
	}
	if s := l.Node.State(l.Now); tries != 3 || s.TableSizes["buffer"] != 2 || s.TableSizes["held"] != 0 {
		t.Errorf("%d tries, %v", tries, s.TableSizes)
	}
}

func TestAcknowledges(t *testing.T) {
	l := newLab(t, nil)
	p, err := requestAck(relayed(l), 300)
	if err != nil {
		t.Fatal(err)
	}
	l.Handle(manet.Received{Packet: p})
	got := l.take()
	l.want(got[0], addr("10.0.0.6"), Ack{ID: 300, Source: addr("10.0.0.1"), Destination: addr("10.0.0.6")})
	l.want(got[1], addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(6, 1, 2, 3)})
}

func TestPassiveAcknowledgements(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Maintenance = PassiveAcks })
	l.reply(2)
	l.send()
	sent := l.Transmitted[0].Packet
	if got := l.one(); len(got.Options) != 1 {
		t.Errorf("an acknowledgement is asked for before the next hop is listened to: %+v", got)
	}
	heard := bytes.Clone(sent)
	if _, err := Forward(heard, addr("10.0.0.2")); err != nil {
		t.Fatal(err)
	}
	l.Handle(manet.Received{From: addr("10.0.0.2"), Overheard: true, Packet: heard})
	l.Wait(300 * time.Millisecond)
	if sent := l.take(); len(sent) != 0 || l.Node.held != 0 {
		t.Errorf("heard to be forwarded, and again %+v", sent)
	}
	// Not heard: once more as it was, then two that ask.
	l.send()
	l.Wait(3 * time.Second)
	var asked []bool
	for _, p := range l.take() {
		if _, ok := find[SourceRoute](&p.Header); ok {
			_, ask := find[AckRequest](&p.Header)
			asked = append(asked, ask)
		}
	}
	if !slices.Equal(asked, []bool{false, false, true, true}) {
		t.Errorf("tries that ask: %v", asked)
	}
}

func TestBlacklist(t *testing.T) {
	l := newLab(t, nil)
	ask := RouteRequest{ID: 3, Target: addr("10.0.0.1"), Route: addrs(2)}
	l.hear(addr("10.0.0.7"), broadcast, 250, ask)
	l.Wait(11 * time.Millisecond)
	reply := l.Transmitted[0]
	l.take()
	l.Handle(manet.Undelivered{Neighbor: addr("10.0.0.2"), Packet: reply.Packet})
	l.take()
	other := RouteRequest{ID: 4, Target: addr("10.0.0.9"), Route: addrs(2)}
	l.hear(addr("10.0.0.7"), broadcast, 250, other)
	l.Wait(4 * time.Second)
	if sent := l.take(); len(sent) != 0 {
		t.Errorf("a request over a link that works in one direction goes on: %+v", sent)
	}
	other.ID++
	l.hear(addr("10.0.0.7"), broadcast, 250, other)
	test := l.one()
	if o, _ := find[RouteRequest](&test.Header); test.next != addr("10.0.0.2") || o.Target != test.next ||
		test.ttl != 1 {
		t.Errorf("the link is tested by %+v", test)
	}
	l.hear(addr("10.0.0.2"), addr("10.0.0.1"), 255, SourceRoute{Route: []netip.Addr{}}, RouteReply{Route: addrs(2)})
	other.ID++
	l.hear(addr("10.0.0.7"), broadcast, 250, other)
	l.Wait(11 * time.Millisecond)
	if got := l.one(); got.next.IsValid() {
		t.Errorf("after the answer: %+v", got)
	}
}

func TestUnknownOptions(t *testing.T) {
	for kind, want := range map[uint8]Option{0x10: Unknown{0x10, []byte{1, 2}}, 0x30: nil,
		0x50: Unknown{0x50, []byte{0x81, 2}}, 0x70: SourceRoute{}, 0x90: Unknown{0x90, []byte{1, 2}}} {
		l := newLab(t, nil)
		l.hear(addr("10.0.0.7"), addr("10.0.0.5"), 64, SourceRoute{SegmentsLeft: 3, Route: addrs(6, 1, 2, 3)},
			Unknown{kind, []byte{1, 2}})
		got := l.take()
		if kind == 0x70 {
			if len(got) != 0 {
				t.Errorf("type %#x: %+v", kind, got)
			}
			continue
		}
		if len(got) == 0 {
			t.Fatalf("type %#x: nothing goes on", kind)
		}
		options := []Option{SourceRoute{SegmentsLeft: 2, Route: addrs(6, 1, 2, 3)}}
		if want != nil {
			options = append(options, want)
		}
		l.want(got[len(got)-1], addr("10.0.0.2"), options...)
	}
}

// However many options a packet has that nobody knows, one error is all that it brings.
//
//attack:air a packet full of options that nobody knows, each to be answered to whoever it names as its source | one
//attack:and error a packet
func TestAPacketBringsOneError(t *testing.T) {
	l := newLab(t, nil)
	options := []Option{SourceRoute{SegmentsLeft: 3, Route: addrs(6, 1, 2, 3)}}
	l.hear(addr("10.0.0.7"), addr("10.0.0.5"), 64, options...) // from which a way back is known
	l.take()
	for range 700 {
		options = append(options, Unknown{Type: 0xb0}) // to be reported and taken out
	}
	l.hear(addr("10.0.0.7"), addr("10.0.0.5"), 64, options...)
	sent := l.take()
	if len(sent) != 2 || sent[0].to != addr("10.0.0.7") {
		t.Fatalf("%d packets, the first of them %+v; want an error, and the packet on its way", len(sent), sent[0])
	}
	l.want(sent[0], addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)}, RouteError{
		Type: OptionNotSupported, Source: addr("10.0.0.1"), Destination: addr("10.0.0.7"), Unsupported: 0xb0})
	l.want(sent[1], addr("10.0.0.2"), SourceRoute{SegmentsLeft: 2, Route: addrs(6, 1, 2, 3)})
}

func TestDeliver(t *testing.T) {
	l := newLab(t, nil)
	p, err := Encapsulate(data(50), addrs(6))
	if err != nil {
		t.Fatal(err)
	}
	p[15], p[19] = 7, 1
	p[ipBytes+fixedBytes+3] = 0
	nested := bytes.Clone(p)
	nested[ipBytes] = Protocol
	l.Handle(manet.Received{Packet: nested})
	l.Handle(manet.Received{Packet: p[:len(p)-1]})
	if len(l.Delivered) != 0 {
		t.Error("a packet in a packet, or one cut short, is delivered")
	}
	l.Handle(manet.Received{Packet: append(p, 0, 0)}) // padded by Ethernet
	want := data(50)
	want[15], want[19] = 7, 1
	seal(want)
	if len(l.Delivered) != 1 || !bytes.Equal(l.Delivered[0], want) {
		t.Errorf("delivered %x, want %x", l.Delivered, want)
	}
	// The way back is known without a search.
	back := data(10)
	back[15], back[19] = 1, 7
	l.Handle(manet.Outgoing{Packet: back})
	l.want(l.one(), addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)})
}

func TestLinksExpire(t *testing.T) {
	l := newLab(t, func(c *Config) { c.UseExtends = 40 * time.Second })
	l.reply(2)
	l.reply(3, 4)
	l.Wait(20 * time.Second)
	l.send()
	l.want(l.one(), addr("10.0.0.2"), SourceRoute{SegmentsLeft: 1, Route: addrs(2)})
	l.Wait(10 * time.Second) // 30 s after: what was used is believed in, the rest is not
	if got := l.Node.State(l.Now).TableSizes["links"]; got != 2 {
		t.Errorf("%d links, want the two that were used", got)
	}
	l.Wait(40 * time.Second)
	if got := l.Node.State(l.Now).TableSizes; got["links"] != 0 || got["chosen"] != 0 || got["nodes"] != 0 {
		t.Errorf("in the end %v", got)
	}
}

func TestInterfaceDown(t *testing.T) {
	l := newLab(t, nil)
	l.reply(2)
	l.Handle(manet.InterfaceDown{})
	l.send()
	if sent := l.take(); len(sent) != 0 {
		t.Errorf("sent while down: %+v", sent)
	}
	l.Handle(manet.InterfaceUp{})
	l.Wait(time.Second)
	if len(l.take()) == 0 || l.Node.State(l.Now).TableSizes["buffer"] != 1 {
		t.Error("what waited is not asked for once the interface is up")
	}
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, standard, New, map[string]func(*Config){
		"address": func(c *Config) {
			c.Interface.Address = netip.Addr{}
		}, "mtu": func(c *Config) { c.Interface.MTU = 600 },
		"hops": func(c *Config) {
			c.MaxHops = 63
		}, "period": func(c *Config) { c.RequestPeriod = 0 }, "tries": func(c *Config) { c.MaxMaintRexmt = 0 },
		"below": func(c *Config) { c.BroadcastJitter = -1 }, "maintenance": func(c *Config) { c.Maintenance = 9 },
		"entries": func(c *Config) { c.MaxEntries = 1 },
	})
}
