package dsr

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// ns2 is a lab's configuration that NS2 has.
func ns2(c *Config) { *c = NS2(c.Interface, c.Seed) }

// testCache is the path cache of 10.0.0.1, with two places in either part.
func testCache() *pathCache {
	return newPathCache(&Config{MaxHops: MaxHops, Paths: &Paths{Primary: 2, Secondary: 2}}, addr("10.0.0.1"))
}

// has asks for the nodes between here and 10.0.0.to; nil: no route.
func (c *pathCache) has(t *testing.T, to byte, want []netip.Addr) {
	t.Helper()
	if got, ok := c.route(0, addrs(to)[0]); ok != (want != nil) || ok && !slices.Equal(got, want) {
		t.Errorf("route to %d over %v (%v), want %v", to, got, ok, want)
	}
}

func TestPathsAreWhatWasHeard(t *testing.T) {
	nobody := netip.Addr{}
	for name, c := range map[string]struct {
		path []netip.Addr
		by   netip.Addr
		to   byte
		want []netip.Addr
	}{
		"from here on":                     {addrs(1, 2, 3, 5), nobody, 5, addrs(2, 3)},
		"to a node on the way":             {addrs(1, 2, 3, 5), nobody, 3, addrs(2)},
		"the rest of what is forwarded":    {addrs(7, 6, 1, 2, 5), nobody, 5, addrs(2)},
		"and not back":                     {addrs(7, 6, 1, 2, 5), nobody, 7, nil},
		"overheard: by who sent it":        {addrs(7, 6, 4, 5), addrs(6)[0], 5, addrs(6, 4)},
		"overheard of who did not send it": {addrs(7, 6, 4, 5), addrs(6)[0], 7, nil},
		"a reply to others that passes by": {addrs(7, 6, 4, 5), nobody, 5, nil},
		"that ends here":                   {addrs(7, 6, 1), nobody, 6, nil},
		"longer than a route may be, partly": {addrs(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18),
			nobody, 18, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wanted := range []bool{true, false} {
				cache := testCache()
				cache.learn(0, c.path, wanted, c.by)
				cache.has(t, c.to, c.want)
			}
		})
	}
}

func TestPathsStayUntilTheyBreakOrGiveWay(t *testing.T) {
	c := testCache()
	learn := func(wanted bool, path ...byte) { c.learn(0, addrs(path...), wanted, netip.Addr{}) }
	learn(true, 1, 2, 3, 5)
	c.expire(1000 * time.Hour)
	c.has(t, 5, addrs(2, 3))
	// The shortest is taken, of equals the primary cache's.
	learn(false, 1, 6, 7, 5)
	c.has(t, 5, addrs(2, 3))
	learn(false, 1, 4, 5)
	c.has(t, 5, addrs(4))
	// Use makes a path one of the primary cache: two more do not displace it there.
	c.use(0, addr("10.0.0.5"))
	if s := c.sizes(); s["primary"] != 2 || s["secondary"] != 1 {
		t.Errorf("after use %v", s)
	}
	learn(false, 1, 8, 9)
	learn(false, 1, 8, 10)
	learn(false, 1, 8, 11)
	c.has(t, 5, addrs(4))
	c.has(t, 9, nil) // the oldest of the secondary cache
	c.has(t, 11, addrs(8))
	// A path that goes on from one takes its place; one that is part of it changes nothing.
	before := c.version()
	learn(true, 1, 4)
	if c.version() != before {
		t.Error("a part of a path that is known changes the cache")
	}
	learn(true, 1, 4, 5, 12)
	c.has(t, 3, addrs(2))
	c.has(t, 12, addrs(4, 5))
	// A link breaks in one direction, what is before it stays, and it is learned again at once.
	if c.lose(0, addrs(5)[0], addrs(4)[0]) || !c.lose(0, addrs(4)[0], addrs(5)[0]) {
		t.Error("the link from 4 to 5 and not the one back is known")
	}
	c.has(t, 4, []netip.Addr{})
	c.has(t, 5, addrs(2, 3))
	learn(true, 1, 4, 5)
	c.has(t, 5, addrs(4))
	if !c.lose(0, addrs(1)[0], addrs(4)[0]) {
		t.Error("the first link is not known")
	}
	c.has(t, 4, nil)
	c.forgetNeighbors()
	c.has(t, 5, nil)
}

// Ten minutes after a route was of use its link cache has let it go, and the
// request is passed on; a path cache answers with it.
func TestAPathIsAnsweredAfterAnyTime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		cached int64
	}{"RFC 4728": {nil, 0}, "NS2": {ns2, 1}} {
		l := newLab(t, c.change)
		l.reply(2, 3)
		l.send()
		l.take()
		l.Wait(10 * time.Minute)
		l.hear(addr("10.0.0.7"), broadcast, 255, RouteRequest{ID: 3, Target: addr("10.0.0.5"), Route: addrs(6)})
		l.Wait(30 * time.Millisecond)
		got := l.one()
		reply, answered := find[RouteReply](&got.Header)
		if n := l.Node.State(l.Now).Counters["cached_replies"]; n != c.cached || answered != (c.cached > 0) {
			t.Errorf("%s: %d replies from the cache, sent %+v", name, n, got)
		}
		if answered && !slices.Equal(reply.Route, addrs(6, 1, 2, 3, 5)) {
			t.Errorf("%s: answered %v", name, reply.Route)
		}
	}
}

// ns-2 asks the neighbours first in every round, and rounds begin 2, 8 and then 10 s
// after the one before.
func TestRoundsOfRequests(t *testing.T) {
	l := newLab(t, ns2)
	l.send()
	for i, want := range []struct {
		after time.Duration
		ttl   int
	}{{0, 1}, {30 * time.Millisecond, 255}, {1970 * time.Millisecond, 1}, {30 * time.Millisecond, 255},
		{7970 * time.Millisecond, 1}, {30 * time.Millisecond, 255}, {9970 * time.Millisecond, 1}} {
		if want.after > 0 {
			l.Wait(want.after - time.Millisecond)
			if early := l.take(); len(early) != 0 {
				t.Fatalf("request %d is early", i)
			}
			l.Wait(time.Millisecond)
		}
		if got := l.one(); got.ttl != want.ttl {
			t.Errorf("request %d has a TTL of %d, want %d", i, got.ttl, want.ttl)
		}
	}
}

// An error goes back the way that the packet came, which a cache of paths does not
// know otherwise; a packet that can be salvaged is.
func TestErrorsGoBackTheWayOfThePacket(t *testing.T) {
	lost := RouteError{Type: NodeUnreachable, Source: addr("10.0.0.1"), Destination: addr("10.0.0.7"),
		Unreachable: addr("10.0.0.2")}
	for _, whole := range []bool{true, false} { // whether the link layer gives the packet back
		l := newLab(t, ns2)
		l.reply(4)
		l.Handle(manet.Received{Packet: relayed(l)})
		sent := l.Transmitted[0]
		l.take()
		if whole {
			l.Handle(manet.Undelivered{Neighbor: addr("10.0.0.2"), Packet: sent.Packet})
		} else {
			l.Handle(manet.LinkFailed{Neighbor: addr("10.0.0.2")})
		}
		got := l.take()
		if len(got) != map[bool]int{true: 2, false: 1}[whole] {
			t.Fatalf("sent %+v", got)
		}
		l.want(got[0], addr("10.0.0.6"), SourceRoute{SegmentsLeft: 1, Route: addrs(6)}, lost)
		if whole {
			l.want(got[1], addr("10.0.0.4"), SourceRoute{Salvage: 1, SegmentsLeft: 1, Route: addrs(1, 4)})
		}
		// What this node found itself it does not spread with its next request.
		other := data(30)
		other[19] = 9
		seal(other)
		l.Handle(manet.Outgoing{Packet: other})
		next := l.one()
		if _, told := find[RouteError](&next.Header); told {
			t.Errorf("asked with %+v", next.Options)
		}
	}
}

// A reply is salvaged too, unless it names the link that it was lost on.
func TestRepliesAreSalvaged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		told   []netip.Addr // by the reply, from 10.0.0.7 on
		want   bool
	}{
		"RFC 4728":                  {nil, addrs(8, 5), false},
		"NS2":                       {ns2, addrs(8, 5), true},
		"NS2, over the link":        {ns2, addrs(2, 1, 5), false},
		"NS2, over the link, there": {ns2, addrs(1, 2, 5), false},
	} {
		l := newLab(t, c.change)
		l.hear(addr("10.0.0.7"), addr("10.0.0.1"), 255, SourceRoute{Route: addrs(4)}, RouteReply{Route: addrs(4, 7)})
		l.hear(addr("10.0.0.5"), addr("10.0.0.7"), 255, SourceRoute{SegmentsLeft: 2, Route: addrs(1, 2)},
			RouteReply{Route: c.told})
		sent := l.Transmitted[0]
		l.take()
		l.Handle(manet.Undelivered{Neighbor: addr("10.0.0.2"), Packet: sent.Packet})
		again := false
		for _, p := range l.take() {
			if _, reply := find[RouteReply](&p.Header); reply {
				again = p.next == addr("10.0.0.4")
			}
		}
		if again != c.want {
			t.Errorf("%s: the reply is sent again: %v, want %v", name, again, c.want)
		}
	}
}

// A route that was of use ten minutes ago now has a broken link and another way round
// it. Over a cache of paths the node that all go over offers the old route to who
// asks, and what is sent by it is lost; over RFC 4728's cache the request is passed
// on and finds the new way.
func TestStaleRoutesAreAnsweredFromACacheOfPaths(t *testing.T) {
	const source, relay, old, end, fresh, asker = 0, 1, 2, 3, 4, 5
	for name, c := range map[string]struct {
		config func(manet.Interface, uint64) Config
		stale  bool
	}{"RFC 4728": {RFC4728, false}, "NS2": {NS2, true}} {
		maker := func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) { return New(c.config(i[0], seed)) }
		sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 6, Feedback: true, Carrier: true,
			Promiscuous: true, Make: maker})
		for _, link := range [][2]int{{source, relay}, {relay, old}, {old, end}, {relay, fresh}} {
			sim.Connect(link[0], link[1])
		}
		sim.Flow(source, end, 200, 250*time.Millisecond, 2*time.Second, 6*time.Second)
		sim.At(10*time.Second, func() {
			sim.Cut(old, end)
			sim.Connect(fresh, end)
			sim.Connect(relay, asker) // which has overheard nothing of the old way
		})
		var before simulation.DataStats
		const later = 10 * time.Minute
		sim.At(later-time.Second, func() { before = sim.Data })
		sim.Flow(asker, end, 200, 250*time.Millisecond, later, later+10*time.Second)
		if err := sim.Run(later + 20*time.Second); err != nil {
			t.Fatal(err)
		}
		if before.Delivered != before.Sent || before.Sent == 0 {
			t.Fatalf("%s: of %d packets %d arrived before", name, before.Sent, before.Delivered)
		}
		lost := (sim.Data.Sent - before.Sent) - (sim.Data.Delivered - before.Delivered)
		cached, errors := sim.State(relay).Counters["cached_replies"], sim.State(old).Counters["errors"]
		if stale := cached > 0; stale != c.stale || (lost > 0) != c.stale || (errors > 0) != c.stale {
			t.Errorf("%s: %d replies from the relay's cache, %d errors from where the link is gone, %d packets lost; "+
				"stale: %v", name, cached, errors, lost, c.stale)
		}
		if arrived := sim.Data.Delivered - before.Delivered; arrived < 30 {
			t.Errorf("%s: %d of 40 packets arrived: the new way is not found", name, arrived)
		}
	}
}
