package aomdv_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/aomdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

const (
	me  = simtest.Me
	far = "10.0.0.9"
	src = "10.0.0.8"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// neighbor is the address of one of the neighbours, which are played by the
// test; edge is one of the neighbours of far or of src.
func neighbor(i byte) string { return netip.AddrFrom4([4]byte{10, 0, 1, i}).String() }
func edge(i byte) string     { return netip.AddrFrom4([4]byte{10, 0, 2, i}).String() }

// lab is one node whose neighbours are played by the test.
type lab struct {
	*simtest.Lab[*aodv.Node]
	sent []sent
}

type sent struct {
	to netip.Addr
	m  aodv.Message
}

func newLab(t *testing.T, change func(*aomdv.Config)) *lab {
	t.Helper()
	node := simtest.New(t, aomdv.LinkDisjoint, aomdv.New, func(c *aomdv.Config) { c.QuietStart, c.Jitter = 0, 0 },
		change)
	l := &lab{}
	l.Lab = simtest.NewLab(t, node, func(a manet.Send) {
		m, err := aodv.Parse(a.Data)
		if err != nil {
			t.Fatalf("the node sent a packet that cannot be read: %v", err)
		}
		l.sent = append(l.sent, sent{a.To, m})
	})
	return l
}

func (l *lab) hear(from string, m aodv.Message) {
	l.T.Helper()
	_, reply := m.(aodv.RREP)
	l.Handle(manet.Packet{From: addr(from), TTL: 20, Unicast: reply, Data: m.Marshal()})
}

// take removes and returns what was sent.
func (l *lab) take() []sent {
	out := l.sent
	l.sent = nil
	return out
}

// hops are the next hops to a destination, best first.
func (l *lab) hops(to string) (out []string) {
	for _, h := range l.Routes[manet.Host(addr(to))].Next {
		out = append(out, h.Addr.String())
	}
	return out
}

func rreq(id uint32, to string, hops uint8, first string) aodv.RREQ {
	return aodv.RREQ{ID: id, HopCount: hops, Destination: addr(to), UnknownSeq: true, Originator: addr(src),
		OriginatorSeq: id, FirstHop: addr(first)}
}

func rrep(seq uint32, hops uint8, first string) aodv.RREP {
	return aodv.RREP{HopCount: hops, Destination: addr(far), DestinationSeq: seq, Originator: addr(me),
		Lifetime: 6 * time.Second, FirstHop: addr(first)}
}

func TestWaysAreDisjoint(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	for i, c := range []struct {
		from string
		m    aodv.RREP
		want []string
		why  string
	}{
		{neighbor(1), rrep(10, 3, edge(1)), []string{neighbor(1)}, "the first"},
		{neighbor(2), rrep(10, 4, edge(1)), []string{neighbor(1)}, "the same last hop"},
		{neighbor(1), rrep(10, 4, edge(2)), []string{neighbor(1)}, "the same next hop"},
		{neighbor(3), rrep(10, 4, edge(3)), []string{neighbor(1), neighbor(3)}, "another way"},
		{neighbor(4), rrep(10, 2, edge(4)), []string{neighbor(4), neighbor(1), neighbor(3)},
			"a shorter one goes first"},
		{neighbor(5), rrep(10, 2, edge(5)), []string{neighbor(4), neighbor(1), neighbor(3)}, "a fourth"},
		{neighbor(6), rrep(9, 1, edge(6)), []string{neighbor(4), neighbor(1), neighbor(3)}, "an older number"},
		{neighbor(6), rrep(11, 7, edge(6)), []string{neighbor(6)}, "a newer number ends all that was"},
	} {
		l.hear(c.from, c.m)
		if got := l.hops(far); !slices.Equal(got, c.want) {
			t.Fatalf("%d, %s: next hops %v, want %v", i, c.why, got, c.want)
		}
	}
}

// relay puts the node between src and far, with two paths to either.
func relay(t *testing.T, change func(*aomdv.Config)) *lab {
	l := newLab(t, change)
	l.hear(neighbor(1), rreq(1, far, 1, edge(1)))
	l.hear(neighbor(2), rreq(1, far, 1, edge(2)))
	if got := l.hops(src); !slices.Equal(got, []string{neighbor(1), neighbor(2)}) {
		t.Fatalf("ways back %v", got)
	}
	return l
}

func TestRREQCopies(t *testing.T) {
	l := relay(t, nil)
	out := l.take()
	if len(out) != 1 {
		t.Fatalf("%d RREQs are forwarded, want the first copy only", len(out))
	}
	if m := out[0].m.(aodv.RREQ); m.HopCount != 2 || m.FirstHop != addr(edge(1)) {
		t.Errorf("forwarded as %+v", m)
	}
	// Two hops are what was reported about the path to src: a longer one is no
	// longer taken with the same number, though it comes over another first
	// hop.
	l.hear(neighbor(3), rreq(1, far, 2, edge(3)))
	if got := l.hops(src); len(got) != 2 {
		t.Errorf("ways back %v", got)
	}
}

func TestAdvertisedHopCount(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.hear(neighbor(1), rrep(10, 2, edge(1)))
	l.hear(neighbor(2), rrep(10, 5, edge(2)))
	l.take()
	ask := rreq(1, far, 0, edge(1))
	ask.FirstHop = netip.Addr{}
	l.hear(src, ask)
	out := l.take()
	if len(out) == 0 || out[0].to != addr(src) || out[0].m.(aodv.RREP).HopCount != 6 || out[0].m.(aodv.RREP).FirstHop !=
		addr(edge(1)) {
		t.Fatalf("answered %+v; want the 6 hops of the longest way", out)
	}
	// What was told binds: the teller's count has to be below it.
	l.hear(neighbor(3), rrep(10, 6, edge(3)))
	if len(l.hops(far)) != 2 {
		t.Error("a way over one whose advertised count is ours")
	}
	l.hear(neighbor(3), rrep(10, 5, edge(3)))
	if len(l.hops(far)) != 3 {
		t.Error("no way over one whose advertised count is below ours")
	}
}

func TestDestinationAnswersCopies(t *testing.T) {
	l := newLab(t, nil)
	for i := byte(1); i <= 5; i++ {
		l.hear(neighbor(i), rreq(1, me, i, edge(i)))
	}
	l.hear(neighbor(2), rreq(1, me, 1, edge(2)))
	var to []string
	for _, s := range l.take() {
		m := s.m.(aodv.RREP)
		to = append(to, s.to.String())
		if m.HopCount != 0 || m.FirstHop.IsValid() || m.DestinationSeq != 0 {
			// the number does not grow from copy to copy

			t.Errorf("answer %+v", m)
		}
	}
	if !slices.Equal(to, []string{neighbor(1), neighbor(2), neighbor(3)}) {
		t.Errorf("answers went to %v, want three neighbours, each once", to)
	}
}

func TestRREPsGoDifferentWays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*aomdv.Config)
		want   []string
	}{
		"link-disjoint": {nil, []string{neighbor(1), neighbor(2)}},
		"node-disjoint": {func(c *aomdv.Config) { c.Multipath.NodeDisjoint = true }, []string{neighbor(1)}},
	} {
		l := relay(t, c.change)
		l.take()
		for i := byte(5); i < 8; i++ {
			m := rrep(10, 1, edge(i))
			m.Originator = addr(src)
			l.hear(neighbor(i), m)
		}
		var to []string
		for _, s := range l.take() {
			to = append(to, s.to.String())
		}
		if !slices.Equal(to, c.want) {
			t.Errorf("%s: RREPs went to %v, want %v", name, to, c.want)
		}
	}
}

func TestABrokenLinkLeavesTheOtherWays(t *testing.T) {
	l := relay(t, nil)
	for i := byte(5); i < 7; i++ {
		m := rrep(10, 3, edge(i))
		m.Originator = addr(src)
		l.hear(neighbor(i), m)
	}
	l.take()
	l.Handle(manet.LinkFailed{Neighbor: addr(neighbor(5)), Destination: addr(far)})
	if got := l.hops(far); !slices.Equal(got, []string{neighbor(6)}) {
		t.Fatalf("next hops %v; want the other way", got)
	}
	for _, s := range l.take() { // of the neighbour itself there may be one
		if m, ok := s.m.(aodv.RERR); !ok || len(m.Destinations) != 1 || m.Destinations[0].Destination !=
			addr(neighbor(5)) {
			t.Errorf("sent %+v, though a way is left", s.m)
		}
	}
	l.hear(neighbor(6), aodv.RERR{Destinations: []aodv.Unreachable{{Destination: addr(far), Seq: 11}}})
	out := l.take()
	if len(l.hops(far)) != 0 || len(out) != 1 {
		t.Fatalf("next hops %v, sent %+v; want none, and an RERR with the last", l.hops(far), out)
	}
	if m, ok := out[0].m.(aodv.RERR); !ok || m.Destinations[0].Destination != addr(far) {
		t.Errorf("sent %+v", out[0].m)
	}
}

func TestWaysEnd(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.hear(neighbor(1), rrep(10, 2, edge(1)))
	l.Wait(2 * time.Second)
	l.hear(neighbor(2), rrep(10, 3, edge(2)))
	l.Wait(5 * time.Second) // the first one's 6 s are over
	if got := l.hops(far); !slices.Equal(got, []string{neighbor(2)}) {
		t.Errorf("next hops %v", got)
	}
	l.Wait(5 * time.Second)
	if len(l.Routes) != 0 {
		t.Errorf("routes %v are never over", l.Routes)
	}
}

// Another answer over the same way keeps it, whether data goes it or not. Over another last hop it is another way, and
// a longer one does not keep it.
func TestAnswersRenewWays(t *testing.T) {
	for name, c := range map[string]struct {
		again aodv.RREP
		want  []string
	}{
		"the same":         {rrep(10, 3, edge(2)), []string{neighbor(1), neighbor(2)}},
		"another last hop": {rrep(10, 3, edge(3)), []string{neighbor(1)}},
		"a longer one":     {rrep(10, 4, edge(2)), []string{neighbor(1)}},
	} {
		l := newLab(t, nil)
		l.Need(far)
		l.hear(neighbor(1), rrep(10, 2, edge(1)))
		l.hear(neighbor(2), rrep(10, 3, edge(2)))
		l.Wait(4 * time.Second)
		l.hear(neighbor(1), rrep(10, 2, edge(1)))
		l.hear(neighbor(2), c.again)
		l.Wait(3 * time.Second)
		if got := l.hops(far); !slices.Equal(got, c.want) {
			t.Errorf("%s: next hops %v after 7 s, want %v", name, got, c.want)
		}
		l.Wait(4 * time.Second)
		if len(l.Routes) != 0 {
			t.Errorf("%s: routes %v are never over", name, l.Routes)
		}
	}
}

// TestASecondWayNeedsNoDiscovery: in a ring of six a cut link costs no new
// RREQ and hardly a packet.
func TestASecondWayNeedsNoDiscovery(t *testing.T) {
	discoveries := map[string]int64{}
	for name, make := range map[string]simulation.Maker{
		"aodv": func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := aodv.LinkLayer(i, seed)
			c.LocalRepair, c.QuietStart = false, 0
			return aodv.New(c)
		},
		"aomdv": func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := aomdv.LinkDisjoint(i, seed)
			c.QuietStart = 0
			return aomdv.New(c)
		},
	} {
		sim := simtest.Simulate(t, simulation.Config{Seed: 4, Nodes: 6,
			Feedback: true, Make: make})
		sim.Chain()
		sim.Connect(5, 0)
		sim.Flow(0, 3, 200, 50*time.Millisecond, 2*time.Second, 6*time.Second)
		sim.At(3*time.Second, func() {
			discoveries[name] = -sim.Stats(0).Messages["RREQ"]
			hop := sim.State(0).Routes
			for _, r := range hop {
				if r.Destination == manet.Host(simulation.Address(3, 0)) && r.NextHop == simulation.Address(1, 0) {
					sim.Cut(0, 1)
				} else if r.Destination == manet.Host(simulation.Address(3, 0)) {
					sim.Cut(0, 5)
				}
			}
		})
		if err := sim.Run(7 * time.Second); err != nil {
			t.Fatal(err)
		}
		discoveries[name] += sim.Stats(0).Messages["RREQ"]
		if sim.Data.Sent-sim.Data.Delivered > 3 {
			t.Errorf("%s: %+v", name, sim.Data)
		}
	}
	if discoveries["aodv"] == 0 || discoveries["aomdv"] != 0 {
		t.Errorf("RREQs after the link was cut: %v; want some of AODV and none of AOMDV", discoveries)
	}
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, aomdv.LinkDisjoint, aomdv.New, map[string]func(*aomdv.Config){
		"no paths":       func(c *aomdv.Config) { c.Multipath.Paths = 0 },
		"too many paths": func(c *aomdv.Config) { c.Multipath.Paths = 100 },
		"not set":        func(c *aomdv.Config) { c.Multipath = nil },
	})
}
