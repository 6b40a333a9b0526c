package aodv

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

const (
	me    = simtest.Me
	left  = "10.0.0.2"
	right = "10.0.0.3"
	far   = "10.0.0.9"
	src   = "10.0.0.8"
)

// lab is one node whose neighbours are played by the test.
type lab struct {
	*simtest.Lab[*Node]
	sent []sent
}

type sent struct {
	at  manet.Time
	to  netip.Addr
	ttl int
	m   Message
}

func newLab(t *testing.T, change func(*Config)) *lab {
	t.Helper()
	l := &lab{}
	l.Lab = simtest.NewLab(t, simtest.New(t, LinkLayer, New, func(c *Config) { c.QuietStart, c.Jitter = 0, 0 }, change),
		l.read)
	return l
}

func (l *lab) read(a manet.Send) {
	m, err := Parse(a.Data)
	if err != nil {
		l.T.Fatalf("the node sent a packet that cannot be read: %v", err)
	}
	l.sent = append(l.sent, sent{l.Now, a.To, a.TTL, m})
}

func (l *lab) hear(from string, m Message, ttl int, unicast bool) {
	l.T.Helper()
	l.Handle(manet.Packet{From: addr(from), TTL: ttl, Unicast: unicast, Data: m.Marshal()})
}

// take removes and returns what was sent.
func (l *lab) take() []sent {
	out := l.sent
	l.sent = nil
	return out
}

func rreq(id uint32, seq uint32) RREQ {
	return RREQ{ID: id, HopCount: 1, Destination: addr(far), UnknownSeq: true, Originator: addr(src),
		OriginatorSeq: seq}
}

func rrep(seq uint32, hops uint8, to string) RREP {
	return RREP{HopCount: hops, Destination: addr(far), DestinationSeq: seq, Originator: addr(to),
		Lifetime: 6 * time.Second}
}

// relay puts the node between src (over left) and far (over right).
func relay(t *testing.T, change func(*Config)) *lab {
	l := newLab(t, change)
	l.hear(left, rreq(1, 10), 5, false)
	l.hear(right, rrep(20, 1, src), 30, true)
	if l.Route(src) != left || l.Route(far) != right {
		t.Fatalf("routes over %q and %q", l.Route(src), l.Route(far))
	}
	l.take()
	return l
}

func TestExpandingRing(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.Need(far)
	l.Wait(time.Minute)
	var ttls []int
	var at []time.Duration
	for i, s := range l.sent {
		m, ok := s.m.(RREQ)
		if !ok || s.to.IsValid() {
			t.Fatalf("sent %+v", s)
		}
		if m.OriginatorSeq != uint32(i+1) || !m.UnknownSeq || m.HopCount != 0 || !m.Gratuitous ||
			m.ID != l.sent[0].m.(RREQ).ID+uint32(i) {
			t.Errorf("RREQ %d is %+v", i, m)
		}
		ttls, at = append(ttls, s.ttl), append(at, s.at/time.Millisecond)
	}
	if !slices.Equal(ttls, []int{1, 3, 5, 7, 35, 35, 35}) {
		t.Errorf("TTLs %v", ttls)
	}
	// 2·40 ms·(TTL + 2), then 2.8 s and twice as long for the next.
	if !slices.Equal(at, []time.Duration{0, 240, 640, 1200, 1920, 4720, 10320}) {
		t.Errorf("times %v ms", at)
	}
	if len(l.Dropped) != 1 || !l.Dropped[0].Unreachable || l.Dropped[0].Destination != addr(far) {
		t.Errorf("in the end: %+v", l.Dropped)
	}
	if l.Node.config.DiscoveryBound() < 21520*time.Millisecond {
		t.Errorf("the bound is %v", l.Node.config.DiscoveryBound())
	}
}

func TestDiscovery(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.Wait(100 * time.Millisecond)
	l.take()
	l.hear(right, rrep(20, 1, me), 30, true)
	if r := l.Routes[manet.Host(addr(far))]; l.Route(far) != right || r.Hops != 2 ||
		!slices.Equal(l.Released, []netip.Addr{addr(far)}) {
		t.Errorf("route %+v, released %v", r, l.Released)
	}
	if l.Reported("discovery_us") != 100000 || len(l.take()) != 0 {
		t.Errorf("reports %v", l.Reports)
	}
	// Data keeps the route, silence ends it, and then its number is one higher.
	for range 10 {
		l.Wait(2 * time.Second)
		l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(me), Local: true})
	}
	if l.Route(far) == "" || l.Route(right) == "" {
		t.Error("a route that is used has expired")
	}
	l.Wait(7 * time.Second)
	if l.Route(far) != "" {
		t.Error("a route that is not used does not expire")
	}
	l.Need(far)
	if s := l.take(); len(s) != 1 || s[0].m.(RREQ).DestinationSeq != 21 || s[0].m.(RREQ).UnknownSeq || s[0].ttl != 4 {
		t.Errorf("asked again with %+v, want number 21 and a TTL of 2 + 2", s)
	}
	l.Wait(25 * time.Second)
	l.Need(far)
	l.Wait(time.Millisecond)
	if r := l.Node.routes[addr(far)]; r != nil {
		t.Errorf("a route is remembered for longer than DELETE_PERIOD: %+v", r)
	}
}

func TestRREQIsAnsweredOrForwarded(t *testing.T) {
	l := newLab(t, nil)
	own := rreq(1, 10)
	own.Destination, own.UnknownSeq, own.DestinationSeq = addr(me), false, 77
	l.hear(left, own, 5, false)
	s := l.take()
	want := RREP{Destination: addr(me), DestinationSeq: 77, Originator: addr(src), Lifetime: 6 * time.Second}
	if len(s) != 1 || s[0].to != addr(left) || s[0].m != Message(want) {
		t.Fatalf("answered %+v, want %+v", s, want)
	}
	if l.hear(left, own, 5, false); len(l.take()) != 0 {
		t.Error("a double was answered")
	}
	l.hear(left, rreq(2, 11), 5, false)
	if s = l.take(); len(s) != 1 || s[0].ttl != 4 || s[0].m.(RREQ).HopCount != 2 {
		t.Errorf("forwarded %+v", s)
	}
	if l.hear(left, rreq(3, 12), 1, false); len(l.take()) != 0 {
		t.Error("forwarded at the end of its TTL")
	}
	// A longer path of the same number does not take the reverse route over.
	longer := rreq(4, 12)
	longer.HopCount = 5
	l.hear(right, longer, 5, false)
	if l.Route(src) != left {
		t.Errorf("the reverse route goes over %q now", l.Route(src))
	}
	// Nor does an older number that is nearer; a newer one does, wrapped.
	older := rreq(5, 11)
	older.HopCount = 0
	l.hear(right, older, 5, false)
	if l.Route(src) != left {
		t.Error("an older number was believed")
	}
	l.Node.routes[addr(src)].seq = 0xfffffffe
	l.hear(right, rreq(6, 3), 5, false)
	if l.Route(src) != right {
		t.Error("a newer number that wrapped was not believed")
	}
}

func TestRelayAnswers(t *testing.T) {
	l := relay(t, nil)
	ask := func(id, seq uint32, change func(*RREQ)) []sent {
		m := RREQ{ID: id, Destination: addr(far), DestinationSeq: seq, Originator: addr("10.0.0.7"),
			OriginatorSeq: 5 + id, HopCount: 0}
		change(&m)
		l.hear("10.0.0.7", m, 5, false)
		return l.take()
	}
	s := ask(1, 20, func(m *RREQ) { m.Gratuitous = true })
	if len(s) != 2 {
		t.Fatalf("sent %+v", s)
	}
	answer, gratuitous := s[0].m.(RREP), s[1].m.(RREP)
	if s[0].to != addr("10.0.0.7") || answer.HopCount != 2 || answer.DestinationSeq != 20 {
		t.Errorf("answered %+v", s[0])
	}
	if s[1].to != addr(right) || gratuitous.Destination != addr("10.0.0.7") || gratuitous.Originator != addr(far) ||
		gratuitous.HopCount != 1 || gratuitous.DestinationSeq != 6 {
		t.Errorf("gratuitous %+v", s[1])
	}
	if r := l.Node.routes[addr(far)]; !slices.Contains(r.precursors, addr("10.0.0.7")) {
		t.Errorf("precursors %v", r.precursors)
	}
	for i, c := range []struct {
		name   string
		change func(*RREQ)
	}{
		{"destination only", func(m *RREQ) { m.DestinationOnly = true }},
		{"a newer number", func(m *RREQ) { m.DestinationSeq = 21 }},
	} {
		s := ask(uint32(2+i), 20, c.change)
		if len(s) != 1 {
			t.Fatalf("%s: sent %+v", c.name, s)
		}
		if m, ok := s[0].m.(RREQ); !ok || m.DestinationSeq < 20 {
			t.Errorf("%s: sent %+v, want the RREQ forwarded", c.name, s)
		}
	}
	// Who asks is not sent back to itself.
	l.hear(right, RREQ{ID: 9, Destination: addr(far), UnknownSeq: true, Originator: addr(right), OriginatorSeq: 1}, 5,
		false)
	if s := l.take(); len(s) != 1 || s[0].m.(RREQ).DestinationSeq != 20 || s[0].m.(RREQ).UnknownSeq {
		t.Errorf("the next hop of a route asked for it and got %+v; want the RREQ forwarded with the number known here",
			s)
	}
}

func TestRREPIsForwarded(t *testing.T) {
	l := newLab(t, nil)
	l.hear(left, rreq(1, 10), 5, false)
	l.take()
	l.hear(right, rrep(20, 1, src), 30, true)
	s := l.take()
	if len(s) != 1 || s[0].to != addr(left) || s[0].m.(RREP).HopCount != 2 {
		t.Fatalf("forwarded %+v", s)
	}
	if p := l.Node.routes[addr(far)].precursors; !slices.Equal(p, []netip.Addr{addr(left)}) {
		t.Errorf("precursors %v", p)
	}
	// One that reports a longer path continues with ours: its originator waits.
	l.hear("10.0.0.4", rrep(20, 3, src), 30, true)
	if s = l.take(); len(s) != 1 || s[0].to != addr(left) || s[0].m.(RREP).HopCount != 2 || l.Route(far) != right {
		t.Errorf("an RREP of a longer way was forwarded as %+v", s)
	}
	if l.hear("10.0.0.4", rrep(19, 0, src), 30, true); l.take()[0].m.(RREP).DestinationSeq != 20 || l.Route(far) !=
		right {
		t.Error("an older RREP was forwarded as it came, or believed")
	}
	if l.hear(right, rrep(30, 1, "10.0.0.77"), 30, true); len(l.take()) != 0 {
		t.Error("an RREP was forwarded without a reverse route")
	}
	for _, hostile := range []RREP{{Destination: addr(me), DestinationSeq: 9, Originator: addr(src)},
		{HopCount: 255, Destination: addr(far), DestinationSeq: 99, Originator: addr(src)},
		{Destination: addr("224.0.0.1"), DestinationSeq: 9, Originator: addr(src)}} {
		l.hear(right, hostile, 30, true)
		if l.Route(me) != "" || l.Route("224.0.0.1") != "" || l.Node.routes[addr(far)].seq == 99 || len(l.take()) != 0 {
			t.Errorf("%+v was believed", hostile)
		}
	}
}

func TestLinkBreaks(t *testing.T) {
	l := relay(t, func(c *Config) { c.LocalRepair = false })
	l.Handle(manet.LinkFailed{Neighbor: addr(right), Destination: addr(far)})
	s := l.take()
	// The neighbour itself has precursors too (section 6.7), and no number.
	want := RERR{Destinations: []Unreachable{{addr(right), 0}, {addr(far), 21}}}
	if len(s) != 1 || s[0].to != addr(left) || !slices.Equal(s[0].m.(RERR).Destinations, want.Destinations) {
		t.Fatalf("told %+v, want %+v to the one precursor", s, want)
	}
	if l.Route(far) != "" || l.Route(right) != "" {
		t.Error("routes over the broken link stay")
	}
	// Data that comes nevertheless is reported again.
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(src), Previous: addr(left)})
	if s = l.take(); len(s) != 1 || s[0].to != addr(left) || s[0].m.(RERR).Destinations[0] != want.Destinations[1] ||
		len(l.Dropped) != 1 {
		t.Errorf("told %+v, dropped %v", s, l.Dropped)
	}
	// RERRs are limited to ten a second.
	for range 50 {
		l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(src), Previous: addr(left)})
	}
	if s = l.take(); len(s) != 8 {
		t.Errorf("%d RERRs more in the same second, want 8", len(s))
	}
}

func TestRERR(t *testing.T) {
	l := relay(t, nil)
	l.hear(left, RERR{Destinations: []Unreachable{{addr(far), 50}}}, 1, false)
	if l.Route(far) == "" || len(l.take()) != 0 {
		t.Error("believed an RERR from who is not the next hop")
	}
	l.hear(right, RERR{NoDelete: true, Destinations: []Unreachable{{addr(far), 21}}}, 1, false)
	if s := l.take(); l.Route(far) == "" || len(s) != 1 || !s[0].m.(RERR).NoDelete {
		t.Errorf("a route was deleted against the N flag, or it was not passed on: %+v", s)
	}
	l.hear(right, RERR{Destinations: []Unreachable{{addr(far), 5}}}, 1, false)
	s := l.take()
	if l.Route(far) != "" || len(s) != 1 || s[0].m.(RERR).Destinations[0].Seq != 21 {
		t.Errorf("passed on %+v; a number must never go back", s)
	}
	l.hear(right, rrep(20, 1, src), 30, true)
	if l.Route(far) != "" {
		t.Error("a route from before the break was believed")
	}
}

func TestLocalRepair(t *testing.T) {
	l := relay(t, nil)
	l.Handle(manet.LinkFailed{Neighbor: addr(right), Destination: addr(far)})
	s := l.take()
	if len(s) != 2 || s[1].m.(RREQ).DestinationSeq != 21 || s[1].ttl != 4 {
		t.Fatalf("sent %+v, want, after an RERR for the neighbour itself, an RREQ with TTL 2 + LOCAL_ADD_TTL and the "+
			"number raised", s)
	}
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(src), Previous: addr(left)})
	if len(l.Dropped) != 0 || len(l.take()) != 0 {
		t.Error("data is not held during a repair")
	}
	l.hear("10.0.0.5", rrep(22, 3, me), 30, true)
	s = l.take()
	if l.Route(far) != "10.0.0.5" || !slices.Contains(l.Released, addr(far)) {
		t.Error("not repaired")
	}
	if len(s) != 1 || !s[0].m.(RERR).NoDelete || s[0].to != addr(left) {
		t.Errorf("sent %+v, want an RERR with the N flag: the way is longer now", s)
	}
	l.Handle(manet.LinkFailed{Neighbor: addr("10.0.0.5"), Destination: addr(far)})
	l.take()
	l.Wait(3 * time.Second)
	s = l.take()
	if len(s) != 1 || s[0].m.(RERR).NoDelete || len(l.Dropped) != 1 {
		t.Errorf("after a repair that failed: %+v, %v", s, l.Dropped)
	}
	// Half the way back to the sender counts where it is longer than the way on:
	// max(2, 0.5 * 7) + LOCAL_ADD_TTL.
	l = newLab(t, nil)
	far7 := rreq(1, 10)
	far7.HopCount = 6
	l.hear(left, far7, 5, false)
	l.hear(right, rrep(20, 1, src), 30, true)
	l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(src), Previous: addr(left)})
	l.take()
	l.Handle(manet.LinkFailed{Neighbor: addr(right), Destination: addr(far)})
	if s := l.take(); len(s) != 2 || s[1].ttl != 6 {
		t.Errorf("sent %+v for a sender 7 hops away, want an RREQ with a TTL of 6", s)
	}
	// Too far to be repaired: more than 0.3·NET_DIAMETER hops.
	l = newLab(t, nil)
	l.hear(left, rreq(1, 10), 5, false)
	l.hear(right, rrep(20, 10, src), 30, true)
	l.take()
	l.Handle(manet.LinkFailed{Neighbor: addr(right), Destination: addr(far)})
	if _, ok := l.take()[0].m.(RERR); !ok {
		t.Error("tried to repair a route of 11 hops")
	}
}

// A route to who asked for one is mended for others' data as well, though it has no precursors. Own data is the
// source's, which has nobody upstream of it.
func TestLocalRepairTowardsWhoAsked(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   bool
	}{"another node's data": {far, true}, "own data": {me, false}} {
		l := relay(t, nil)
		l.Handle(manet.RouteUsed{Destination: addr(src), Source: addr(c.source), Local: c.source == me})
		l.take()
		l.Handle(manet.LinkFailed{Neighbor: addr(left), Destination: addr(src)})
		asks := slices.ContainsFunc(l.take(), func(s sent) bool {
			m, is := s.m.(RREQ)
			return is && m.Destination == addr(src)
		})
		if asks != c.want {
			t.Errorf("%s: asks for a new way %v, want %v", name, asks, c.want)
		}
	}
}

func TestBlacklist(t *testing.T) {
	l := newLab(t, func(c *Config) { c.AckRREPs = true })
	own := rreq(1, 10)
	own.Destination = addr(me)
	l.hear(left, own, 5, false)
	if s := l.take(); !s[0].m.(RREP).AckWanted {
		t.Fatal("asked for no acknowledgement")
	}
	l.hear(left, RREPAck{}, 1, true)
	l.Wait(time.Second)
	if len(l.Node.blacklist) != 0 {
		t.Fatal("blacklisted in spite of an acknowledgement")
	}
	own.ID++
	l.hear(left, own, 5, false)
	l.take()
	l.Wait(time.Second)
	own.ID++
	if l.hear(left, own, 5, false); len(l.take()) != 0 {
		t.Error("answered a neighbour that did not acknowledge")
	}
	l.Wait(l.Node.config.blacklistTimeout())
	own.ID++
	own.OriginatorSeq = 20
	if l.hear(left, own, 5, false); len(l.take()) != 1 {
		t.Error("a neighbour is never forgiven")
	}
	// An RREP that the link layer could not deliver has the same effect.
	m := newLab(t, nil)
	m.hear(left, own, 5, false)
	m.Handle(manet.LinkFailed{Neighbor: addr(left)})
	m.take()
	own.ID++
	if m.hear(left, own, 5, false); len(m.take()) != 0 {
		t.Error("answered a neighbour that does not hear us")
	}
	// What is known to have been anything else has not, whatever was answered of late.
	for name, failed := range map[string]manet.LinkFailed{"data": {Known: true, Destination: addr(src)},
		"an answer of ARP": {Known: true}, "an RERR": {Known: true, Type: TypeRERR}} {
		o := newLab(t, nil)
		o.hear(left, own, 5, false)
		failed.Neighbor = addr(left)
		if o.Handle(failed); len(o.Node.blacklist) != 0 {
			t.Errorf("blacklisted for %s", name)
		}
	}
	o := newLab(t, nil)
	o.hear(left, own, 5, false)
	if o.Handle(manet.LinkFailed{Neighbor: addr(left), Known: true, Type: TypeRREP}); len(o.Node.blacklist) != 1 {
		t.Error("not blacklisted for an RREP")
	}
	// RREP-ACKs are given to who asks.
	m.hear(right, RREP{AckWanted: true, Destination: addr(far), DestinationSeq: 1, Originator: addr(me),
		Lifetime: time.Second}, 30, true)
	if s := m.take(); len(s) != 1 || s[0].m != Message(RREPAck{}) || s[0].to != addr(right) {
		t.Errorf("sent %+v, want an RREP-ACK", s)
	}
}

func TestHello(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Hello, c.LocalRepair = true, false })
	l.Wait(5 * time.Second)
	if len(l.take()) != 0 {
		t.Error("sent HELLOs without an active route")
	}
	l.hear(left, rreq(1, 10), 5, false)
	l.hear(right, rrep(20, 1, src), 30, true)
	l.take()
	hello := func(from string) {
		l.hear(from, RREP{Destination: addr(from), DestinationSeq: 4, Originator: addr(from),
			Lifetime: 2 * time.Second}, 1, false)
	}
	for range 4 {
		hello(left)
		hello(right)
		l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(src), Previous: addr(left)})
		l.Wait(time.Second)
	}
	s := l.take()
	if len(s) < 3 || s[0].m != Message(RREP{Destination: addr(me), Originator: addr(me), Lifetime: 2 * time.Second}) ||
		s[0].ttl != 1 || s[0].to.IsValid() {
		t.Errorf("HELLOs: %+v", s)
	}
	for range 3 { // right is silent
		hello(left)
		l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(src), Previous: addr(left)})
		l.Wait(time.Second)
	}
	if l.Route(far) != "" || l.Route(src) == "" {
		t.Errorf("after silence: routes over %q and %q", l.Route(far), l.Route(src))
	}
	if !slices.ContainsFunc(l.take(), func(s sent) bool { _, ok := s.m.(RERR); return ok }) {
		t.Error("the silence of a next hop was told to nobody")
	}
}

func TestQuietStart(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuietStart = 15 * time.Second })
	own := rreq(1, 10)
	own.Destination = addr(me)
	l.hear(left, own, 5, false)
	l.hear(left, rreq(2, 11), 5, false)
	l.Need(far)
	known := own
	known.ID, known.UnknownSeq, known.DestinationSeq = 9, false, 55
	l.hear(left, known, 5, false)
	if len(l.take()) != 0 || len(l.Routes) != 0 {
		t.Errorf("a node without memory answers, forwards, asks or learns: %v", l.Routes)
	}
	if l.Node.seq != 55 {
		t.Errorf("own number %d, want the one that others knew", l.Node.seq)
	}
	l.Wait(10 * time.Second)
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(src), Previous: addr(left)})
	if s := l.take(); len(s) != 1 || s[0].m.(RERR).Destinations[0].Destination != addr(far) {
		t.Errorf("data for another: %+v, want an RERR", s)
	}
	l.Wait(10 * time.Second)
	if len(l.take()) != 0 {
		t.Error("the wait did not start over")
	}
	l.Wait(6 * time.Second)
	if s := l.take(); len(s) == 0 {
		t.Error("asks never")
	}
}

func TestRREQsAreLimited(t *testing.T) {
	l := newLab(t, nil)
	for i := range 30 {
		l.Need(netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}).String())
	}
	if n := len(l.take()); n != 10 {
		t.Errorf("%d RREQs at once, want 10", n)
	}
	l.Wait(time.Minute)
	per := map[time.Duration]int{}
	for _, s := range l.take() {
		per[s.at/time.Second]++
	}
	for second, n := range per {
		if n > 20 { // ten in each second that begins anywhere
			t.Errorf("%d RREQs in second %d", n, second)
		}
	}
	if len(l.Dropped) == 0 || len(l.Node.discoveries) > 30 {
		t.Error("discoveries never end")
	}
}

//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostilePacketsFillNothing(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxEntries = 64; c.Hello = true })
	for i := range 5000 {
		a := netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})
		l.hear(a.String(), RREQ{ID: uint32(i), Destination: addr(far), Originator: a, OriginatorSeq: uint32(i)}, 255,
			false)
		l.hear(a.String(), RREP{Destination: a, Originator: a, DestinationSeq: 1, Lifetime: 1 << 40}, 255, false)
		l.Handle(manet.NeedRoute{Destination: netip.AddrFrom4([4]byte{10, 3, byte(i >> 8), byte(i)}), Local: true})
	}
	for table, size := range l.Node.State(l.Now).TableSizes {
		if size > 64 && table != "delayed" || size > manet.MaxDelayed {
			t.Errorf("%d entries in table %s", size, table)
		}
	}
	l.Wait(20 * time.Minute)
	if n := len(l.Node.routes) + len(l.Node.seen) + len(l.Node.discoveries) + len(l.Node.watched) +
		len(l.Node.answered); n != 0 {
		t.Errorf("%d entries are never forgotten", n)
	}
}

func TestInterfaceDown(t *testing.T) {
	l := relay(t, nil)
	l.Handle(manet.InterfaceDown{})
	if len(l.Routes) != 0 {
		t.Errorf("routes over an interface that is down: %v", l.Routes)
	}
	l.take()
	l.hear(left, rreq(7, 20), 5, false)
	l.Need(far)
	if len(l.take()) != 0 {
		t.Error("sent on an interface that is down")
	}
	l.Handle(manet.InterfaceUp{})
	l.Wait(time.Second)
	if len(l.take()) == 0 {
		t.Error("silent on an interface that came up again")
	}
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, RFC3561, New, map[string]func(*Config){
		"no interface": func(c *Config) { c.Interfaces = nil },
		"no address":   func(c *Config) { c.Interfaces[0].Address = netip.Addr{} },
		"timeout":      func(c *Config) { c.ActiveRouteTimeout = 0 },
		"diameter":     func(c *Config) { c.NetDiameter = 256 },
		"retries":      func(c *Config) { c.RREQRetries = -1 },
		"tables":       func(c *Config) { c.MaxEntries = 1 },
		"jitter":       func(c *Config) { c.Jitter = -1 },
	})
	if c := P3(nil, 1); c.ActiveRouteTimeout != 50*time.Second || c.TTLStart != 1 || c.TTLIncrement != 2 ||
		c.TTLThreshold != 7 || !c.LocalRepair || c.Hello {
		t.Errorf("P3 is %+v", c)
	}
}
