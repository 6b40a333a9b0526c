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
		if i > 0 && (s.At-l.Sent[i-1].At > 15*time.Second || s.At-l.Sent[i-1].At < 11250*time.Millisecond) {
			t.Errorf("dumps at %v and %v", l.Sent[i-1].At, s.At)
		}
	}
	if len(l.Sent) < 5 {
		t.Fatalf("%d dumps in a minute", len(l.Sent))
	}
	// A new neighbour is told at once that it is heard, and those of the next tenth of a second together.
	l.Sent = nil
	for _, from := range []string{left, right, far} {
		l.Hear(from)
		l.Wait(10 * time.Millisecond)
	}
	l.Wait(100 * time.Millisecond)
	if len(l.Sent) != 2 || len(l.Sent[0].Heard) != 1 || len(l.Sent[1].Heard) != 3 || len(l.Sent[1].Entries) != 0 {
		t.Errorf("told %+v", l.Sent)
	}
}

// What is news is told once it has settled, and much news is a full dump: more than three routes and a third of all.
func TestMuchNewsIsAFullDump(t *testing.T) {
	for _, c := range []struct {
		old, news int
		full      bool
	}{{0, 3, false}, {0, 4, true}, {7, 4, false}, {6, 4, true}, {0, 200, true}} {
		l := newLab(t, func(c *Config) { c.Period = time.Hour })
		l.Hear(left)
		l.Wait(time.Minute)
		seq := uint32(2)
		some := func(of, count int) {
			for i := range count {
				l.Hear(left, distance.Entry{To: netip.AddrFrom4([4]byte{10, byte(of), 0, byte(i)}), Seq: seq, Hops: 1})
			}
		}
		some(1, c.old)
		l.Wait(12 * time.Second)
		l.Node.dumpFull() // of what is told in a full dump nothing is news
		l.Wait(time.Minute)
		l.Sent = nil
		some(2, c.news)
		l.Wait(11 * time.Second)
		if len(l.Sent) != 0 {
			t.Errorf("%+v: told %+v before it has settled", c, l.Sent)
		}
		l.Wait(2 * time.Second)
		total := 0
		for _, s := range l.Sent {
			total += len(s.Entries)
			if s.Full != c.full || len(s.Send.Data) > 1500-28 {
				t.Errorf("%+v: a packet of %d bytes, full %v", c, len(s.Send.Data), s.Full)
			}
		}
		if want := map[bool]int{false: c.news, true: c.old + c.news + 1}[c.full]; total != want {
			t.Errorf("%+v: %d entries, want %d", c, total, want)
		}
	}
}

func TestSettling(t *testing.T) {
	l := newLab(t, func(c *Config) { c.SettlingStart = 4 * time.Second })
	l.Hear(right)
	l.Wait(2 * time.Second)
	// settles asks that nothing is told about the destination for a time, and then in a dump of a kind.
	settles := func(what string, hold time.Duration, full bool, want distance.Entry) {
		t.Helper()
		began := l.Now
		if got := l.Node.Table.Get(netip.MustParseAddr(far)).Extra.from - began; got != hold {
			t.Errorf("%s: settles for %v, want %v", what, got, hold)
		}
		l.Sent = nil
		for l.Wait(0); l.Now < began+30*time.Second; l.Wait(100 * time.Millisecond) {
			if e, at := l.Told(far); e.To.IsValid() {
				if e != want || at < began+hold || l.Sent[len(l.Sent)-1].Full != full {
					t.Errorf("%s: told %+v after %v, full %v", what, e, at-began, l.Sent[len(l.Sent)-1].Full)
				}
				return
			}
		}
		t.Errorf("%s: not told", what)
	}
	l.Hear(left, simtest.Entry(far, 100, 2))
	settles("a new destination", 8*time.Second, false, simtest.Entry(far, 100, 3))
	l.Hear(left, simtest.Entry(far, 102, 2))
	settles("a newer number", 7*time.Second, true, simtest.Entry(far, 102, 3)) // 2 · 7/8 · 4 s
	l.Hear(right, simtest.Entry(far, 104, 6))
	l.Wait(time.Second)
	if l.Route(far) != right {
		t.Errorf("while it settles the route goes over %q", l.Route(far))
	}
	l.Hear(left, simtest.Entry(far, 104, 1)) // 2 · (7/8)² · 4 s
	settles("a nearer way", 6125*time.Millisecond, false, simtest.Entry(far, 104, 2))
	l.Hear(left, simtest.Entry(far, 106, 1)) // 2 · ((7/8)³ · 4 s + 1/8 · 1 s)
	settles("the next number", 5609375*time.Microsecond, true, simtest.Entry(far, 106, 2))
	l.Hear(left, simtest.Entry(far, 107, distance.Infinite))
	settles("a broken route", 0, true, simtest.Entry(far, 107, distance.Infinite))
	l.Hear(left, simtest.Entry(far, 108, 1))
	settles("one that is back", 0, true, simtest.Entry(far, 108, 2))
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
	if e, at := l.Told(far); e != simtest.Entry(far, 101, distance.Infinite) || at-began > time.Second {
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
	l.Hear(left) // what it told before counts now
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
	for _, c := range [][2]uint32{{501, 504}, {777, 780}, {3, 782}} {
		l.Hear(left, simtest.Entry(me, c[0], distance.Infinite)) // someone lost the route to us
		l.Wait(2 * time.Second)
		l.WantTold(simtest.Entry(me, c[1], 0))
	}
	l.Hear(left, simtest.Entry(me, 1000, 3)) // as we were before a reboot
	l.Wait(2 * time.Second)
	l.WantTold(simtest.Entry(me, 1004, 0))
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
