package dsdv

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

const (
	me    = simtest.Me
	left  = "10.0.0.2"
	right = "10.0.0.3"
	far   = "10.0.0.9"
)

// newLab is one node whose neighbours are played by the test.
func newLab(t *testing.T, change func(*Config)) *simtest.Vector[*Node] {
	t.Helper()
	node := simtest.New(t, Broch, New, func(c *Config) { c.Jitter = 0 }, change)
	return simtest.NewVector(t, node, node.Neighbors.Boot)
}

func TestNewerAndNearerRoutesAreTaken(t *testing.T) {
	l := newLab(t, nil)
	for i, c := range []struct {
		from string
		e    distance.Entry
		want string
		hops int
		why  string
	}{
		{left, simtest.Entry(far, 100, 3), left, 4, "the first"},
		{right, simtest.Entry(far, 100, 3), left, 4, "as new and as near"},
		{right, simtest.Entry(far, 100, 2), right, 3, "as new and nearer"},
		{left, simtest.Entry(far, 98, 0), right, 3, "older and nearer"},
		{left, simtest.Entry(far, 102, 9), left, 10, "newer and farther"},
		{right, simtest.Entry(far, 103, distance.Infinite), left, 10, "broken, of who is not the next hop"},
		{left, simtest.Entry(far, 101, distance.Infinite), left, 10, "broken, and older"},
		{left, simtest.Entry(far, 103, distance.Infinite), "", 0, "broken, of the next hop"},
		{right, simtest.Entry(far, 102, 1), "", 0, "older than the break"},
		{right, simtest.Entry(far, 104, 254), "", 0, "too far"},
		{right, simtest.Entry(far, 104, 1), right, 2, "newer than the break"},
		{right, simtest.Entry(me, 4, 1), right, 2, "a route to ourselves"},
		{right, simtest.Entry("224.0.0.1", 4, 1), right, 2, "a route to a group"},
	} {
		l.Hear(c.from, c.e)
		if got := l.Route(far); got != c.want {
			t.Fatalf("%d, %s: the route goes over %q, want %q", i, c.why, got, c.want)
		}
		if r := l.Routes[manet.Host(netip.MustParseAddr(far))]; c.want != "" && r.Hops != c.hops {
			t.Errorf("%d, %s: %d hops, want %d", i, c.why, r.Hops, c.hops)
		}
	}
	if len(l.Routes) != 1 {
		t.Errorf("routes %v", l.Routes)
	}
}

func TestNumbersWrap(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left, simtest.Entry(far, 1<<32-2, 1))
	l.Hear(right, simtest.Entry(far, 0, 5))
	if l.Route(far) != right {
		t.Error("0 is not newer than 2^32 - 2")
	}
	l.Hear(right, simtest.Entry(far, 1, distance.Infinite))
	l.Hear(left, simtest.Entry(far, 1<<32-2, 1))
	if l.Route(far) != "" {
		t.Error("an old number counts after the wrap")
	}
}

func TestDumps(t *testing.T) {
	l := newLab(t, nil)
	l.Wait(time.Minute)
	for i, s := range l.Sent {
		if len(s.Entries) != 1 || s.Entries[0] != simtest.Entry(me, uint32(2*i+2), 0) || !s.Full || !s.Complete {
			t.Fatalf("dump %d is %+v", i, s.Update)
		}
		if i > 0 && (s.At-l.Sent[i-1].At > 15*time.Second || s.At-l.Sent[i-1].At < 13*time.Second) {
			t.Errorf("dumps at %v and %v", l.Sent[i-1].At, s.At)
		}
	}
	if len(l.Sent) < 5 {
		t.Fatalf("%d dumps in a minute", len(l.Sent))
	}
	// A neighbour that hears us is told everything, and that it is heard; what is
	// news a moment later is told a second after, together.
	l.Sent = nil
	began := l.Now
	l.Hear(left, simtest.Entry(far, 100, 1))
	l.Wait(10 * time.Millisecond)
	if e, at := l.Told(far); e != simtest.Entry(far, 100, 2) || at != began || !l.Sent[0].Full ||
		len(l.Sent[0].Heard) != 1 {
		t.Errorf("told %+v at %v", e, at-began)
	}
	l.Hear(left, simtest.Entry("10.0.0.7", 2, 1))
	l.Wait(500 * time.Millisecond)
	l.Hear(left, simtest.Entry("10.0.0.8", 2, 1))
	before := len(l.Sent)
	l.Wait(600 * time.Millisecond)
	e, at := l.Told("10.0.0.8")
	if e != simtest.Entry("10.0.0.8", 2, 2) || at != began+time.Second || len(l.Sent) != before+1 {
		t.Errorf("told %+v after %v in %d packets", e, at-began, len(l.Sent)-before)
	}
}

// Where full dumps are frequent, newer numbers go with them; but one that a
// neighbour has lost the route for is told at once.
func TestNumbersGoWithFullDumps(t *testing.T) {
	l := newLab(t, func(c *Config) { *c = c.Every(time.Second) })
	l.Hear(left, simtest.Entry(far, 100, 1))
	l.Wait(3 * time.Second)
	l.Sent = nil
	for seq := uint32(102); seq < 120; seq += 2 {
		l.Hear(right)
		l.Hear(left, simtest.Entry(far, seq, 1))
		l.Wait(500 * time.Millisecond)
	}
	for _, s := range l.Sent {
		if !s.Full {
			t.Errorf("an incremental dump at %v: %+v", s.At, s.Update)
		}
	}
	l.Hear(right, simtest.Entry(far, 201, distance.Infinite))
	l.Hear(left, simtest.Entry(far, 202, 1))
	began := l.Now
	l.Sent = nil
	l.Wait(100 * time.Millisecond)
	if e, at := l.Told(far); e != simtest.Entry(far, 202, 2) || at-began > 70*time.Millisecond {
		t.Errorf("told %+v after %v", e, at-began)
	}
}

func TestALongIncrementIsAFullDump(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left)
	l.Wait(2 * time.Second)
	l.Sent = nil
	var many []distance.Entry
	for i := range 200 {
		many = append(many, distance.Entry{To: netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), Seq: 2, Hops: 1})
	}
	l.Hear(left, many[:100]...)
	l.Hear(left, many[100:]...)
	l.Wait(time.Second)
	total := 0
	for _, s := range l.Sent {
		total += len(s.Entries)
		if !s.Full || len(s.Send.Data) > 1500-28 {
			t.Errorf("a packet of %d bytes, full %v", len(s.Send.Data), s.Full)
		}
	}
	if total != 201 || len(l.Sent) != 2 {
		t.Errorf("%d entries in %d packets, want 201 in 2", total, len(l.Sent))
	}
}

func TestSettling(t *testing.T) {
	l := newLab(t, func(c *Config) { c.SettlingStart = 4 * time.Second })
	l.Hear(right)
	l.Hear(left, simtest.Entry(far, 100, 2))
	l.Wait(2 * time.Second)
	// A newer number over a longer path: the shorter is likely to follow, and
	// packets go the newer way while the older is told.
	l.Hear(right, simtest.Entry(far, 102, 6))
	began := l.Now
	l.Wait(time.Second)
	if e, _ := l.Told(far); l.Route(far) != right || e != simtest.Entry(far, 100, 3) {
		t.Errorf("while it settles the route goes over %q and %+v is told", l.Route(far), e)
	}
	l.Hear(left, simtest.Entry(far, 102, 2))
	l.Wait(time.Second)
	if e, at := l.Told(far); e != simtest.Entry(far, 102, 3) || at-began > 2*time.Second {
		t.Errorf("the better way is told as %+v after %v", e, at-began)
	}
	// The next longer path waits for twice the average: (7·(7/8·4 s + 0) + 1 s)/8 twice, about 6.4
	// s.
	l.Hear(right, simtest.Entry(far, 104, 6))
	began = l.Now
	l.Wait(5 * time.Second)
	if e, at := l.Told(far); at > began && e.Seq == 104 {
		t.Errorf("told %+v after %v", e, at-began)
	}
	l.Wait(3 * time.Second)
	if e, _ := l.Told(far); e != simtest.Entry(far, 104, 7) {
		t.Errorf("what has settled is told as %+v", e)
	}
}

func TestBrokenLink(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(right)
	l.Hear(left, simtest.Entry(far, 100, 1), simtest.Entry(left, 50, 0))
	l.Wait(2 * time.Second)
	began := l.Now
	l.Handle(manet.LinkFailed{Neighbor: netip.MustParseAddr(left)})
	if l.Route(far) != "" || l.Route(left) != "" {
		t.Error("routes over a broken link")
	}
	l.Wait(time.Second)
	if e, at := l.Told(far); e != simtest.Entry(far, 101, distance.Infinite) || at != began {
		t.Errorf("told %+v after %v, want an odd number at once", e, at-began)
	}
	// Who lost a route of which we have one as new is told about ours.
	l.Hear(right, simtest.Entry(far, 102, 4))
	l.Wait(30 * time.Second)
	l.Hear(right, simtest.Entry(far, 106, 4))
	l.Wait(2 * time.Second)
	l.Sent = nil
	l.Hear(left, simtest.Entry(far, 101, distance.Infinite))
	l.Wait(1100 * time.Millisecond)
	l.WantTold(simtest.Entry(far, 106, 5))
}

func TestSilentNeighbor(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left, simtest.Entry(far, 100, 1))
	l.Wait(44 * time.Second)
	if l.Route(far) == "" {
		t.Error("lost before three periods have passed")
	}
	l.Wait(8 * time.Second)
	if l.Route(far) != "" || l.Node.Neighbors.Len() != 0 {
		t.Error("a silent neighbour is kept")
	}
	// A number that never grows is not believed for ever, though its teller lives.
	for i := range 40 {
		l.Hear(left, simtest.Entry(far, 200, 1))
		l.Wait(3 * time.Second)
		if got, want := l.Route(far) != "", time.Duration(i+1)*3*time.Second < l.Node.config.RouteHold(); got != want {
			t.Fatalf("after %d s the route is there: %v", 3*(i+1), got)
		}
	}
}

func TestOneWayLinksAndReboots(t *testing.T) {
	l := newLab(t, nil)
	l.HearUpdate(left, distance.Update{Complete: true, Boot: 7, Entries: []distance.Entry{simtest.Entry(far, 100, 1)}})
	if l.Route(far) != "" {
		t.Error("learned of one that does not hear us")
	}
	l.HearUpdate(left, distance.Update{Complete: true, Boot: 7,
		Heard:   []distance.Heard{{Addr: netip.MustParseAddr(me), Boot: 1}},
		Entries: []distance.Entry{simtest.Entry(far, 100, 1)}})
	if l.Route(far) != "" {
		t.Error("learned of one that heard us before our reboot only")
	}
	l.Hear(left, simtest.Entry(far, 100, 1))
	if l.Route(far) != left {
		t.Fatal("not learned of one that hears us")
	}
	l.HearUpdate(left, distance.Update{Boot: 7}) // no list, no word about us
	if l.Route(far) != left {
		t.Error("lost by a packet without a list of neighbours")
	}
	l.HearUpdate(left, distance.Update{Complete: true, Boot: 7})
	if l.Route(far) != "" {
		t.Error("a route over one that ceased to hear us")
	}
	l.Hear(left, simtest.Entry(far, 102, 1))
	l.HearUpdate(left, distance.Update{Complete: true, Boot: 8,
		Heard: []distance.Heard{{Addr: netip.MustParseAddr(me), Boot: l.Node.Neighbors.Boot}}})
	if l.Route(far) != "" {
		t.Error("a route over one that lost its state")
	}
}

func TestOwnNumber(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left)
	l.Wait(5 * time.Second)
	for _, c := range [][2]uint32{{501, 502}, {777, 778}} {
		l.Hear(left, simtest.Entry(me, c[0], distance.Infinite)) // someone lost the route to us
		l.Wait(2 * time.Second)
		l.WantTold(simtest.Entry(me, c[1], 0))
	}
	l.Hear(left, simtest.Entry(me, 1000, 3)) // as we were before a reboot
	l.Wait(2 * time.Second)
	l.WantTold(simtest.Entry(me, 1002, 0))
}

func TestInterfaceDown(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left, simtest.Entry(far, 100, 1))
	l.Handle(manet.InterfaceDown{})
	l.Sent = nil
	l.Hear(left, simtest.Entry(far, 102, 1))
	l.Wait(time.Minute)
	if len(l.Routes) != 0 || len(l.Sent) != 0 {
		t.Errorf("routes %v, %d packets over an interface that is down", l.Routes, len(l.Sent))
	}
	l.Handle(manet.InterfaceUp{})
	l.Wait(time.Second)
	if len(l.Sent) == 0 {
		t.Error("silent on an interface that came up again")
	}
}

// Data waits while there is no route, however long, and goes when there is one.
func TestDataWaitsForARoute(t *testing.T) {
	l := newLab(t, nil)
	want := func(what string, released ...netip.Addr) {
		t.Helper()
		if !slices.Equal(l.Released, released) || l.Dropped != nil {
			t.Errorf("%s: released %v, want %v; dropped %v", what, l.Released, released, l.Dropped)
		}
		l.Released = nil
	}
	to := netip.MustParseAddr(far)
	l.Need(far)
	want("nobody is known")
	l.Hear(left, simtest.Entry(far, 100, 1))
	want("the first route", to)
	l.Need(far)
	want("a route that came meanwhile", to)
	l.Handle(manet.LinkFailed{Neighbor: netip.MustParseAddr(left)})
	l.Need(far)
	l.Wait(3 * time.Minute)
	l.Hear(right, simtest.Entry(far, 100, 1))
	want("a broken route")
	l.Hear(right, simtest.Entry(far, 102, 1))
	want("a newer one", to)
	l.Hear(right, simtest.Entry(far, 104, 1))
	want("one that there was")
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, Broch, New, map[string]func(*Config){
		"no interface": func(c *Config) { c.Interfaces = nil },
		"no address":   func(c *Config) { c.Interfaces[0].Address = netip.Addr{} },
		"period":       func(c *Config) { c.Period = 0 },
		"missed":       func(c *Config) { c.MissedPeriods = 0 },
		"aggregation":  func(c *Config) { c.Aggregation = time.Hour },
		"weight":       func(c *Config) { c.SettlingWeight = 1 },
		"odd number":   func(c *Config) { c.FirstSeq = 3 },
		"tables":       func(c *Config) { c.MaxEntries = 1 },
	})
}
