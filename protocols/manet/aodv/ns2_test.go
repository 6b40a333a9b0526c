package aodv

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

func newNS2Lab(t *testing.T) *lab {
	t.Helper()
	l := &lab{}
	l.Lab = simtest.NewLab(t, simtest.New(t, NS2, New, func(c *Config) { c.Jitter = 0 }), l.read)
	return l
}

// ttls are those of the RREQs that were sent since they were last taken.
func (l *lab) ttls() (out []int) {
	for _, s := range l.take() {
		if _, is := s.m.(RREQ); is {
			out = append(out, s.ttl)
		}
	}
	return out
}

// found has the destination answer over the right neighbour, so many hops away,
// some time after the RREQ.
func (l *lab) found(after time.Duration, seq uint32, hops uint8) {
	l.T.Helper()
	l.Wait(after)
	l.hear(right, RREP{HopCount: hops - 1, Destination: addr(far), DestinationSeq: seq, Originator: addr(me),
		Lifetime: 10 * time.Second}, 30, true)
	if l.Route(far) != right {
		l.T.Fatalf("the route goes over %q", l.Route(far))
	}
	l.take()
}

// broken has the radio give up a frame with data for the destination.
func (l *lab) broken() {
	l.Handle(manet.LinkFailed{Neighbor: addr(right), Destination: addr(far)})
}

func equal(t *testing.T, what string, got, want []int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: TTLs %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: TTLs %v, want %v", what, got, want)
		}
	}
}

// The first search asks the whole network (rt_last_hop_count begins at 255); a
// later one two hops beyond the last route, then everybody. How long an answer
// may take follows from the last ones: here 4 hops in 20 ms, so that the ring has
// 2 * 6 * 5 ms and the network 300 ms.
func TestNS2SearchesByWhatAnswersTook(t *testing.T) {
	l := newNS2Lab(t)
	l.Wait(100 * time.Millisecond)
	l.Need(far)
	equal(t, "first", l.ttls(), []int{30})
	l.found(20*time.Millisecond, 2, 4)
	l.broken()
	l.take()
	l.Wait(380 * time.Millisecond) // 500 ms
	l.Need(far)
	equal(t, "second", l.ttls(), []int{6})
	l.Wait(59 * time.Millisecond)
	l.Need(far)
	equal(t, "before the ring's time is over", l.ttls(), nil)
	l.Wait(time.Millisecond)
	l.Need(far)
	equal(t, "then", l.ttls(), []int{8})
	l.Wait(80 * time.Millisecond) // 2 * 8 * 5 ms
	l.Need(far)
	equal(t, "at last", l.ttls(), []int{30})
}

// Nor does the first search of a node ask the whole network where the destination's own RREQ has made the route:
// it begins two hops beyond it (rt_down leaves the hops in rt_last_hop_count).
func TestNS2SearchesFirstWhereARequestCameFrom(t *testing.T) {
	l := newNS2Lab(t)
	l.Wait(time.Second)
	l.hear(right, RREQ{ID: 1, HopCount: 3, Destination: addr(me), UnknownSeq: true, Originator: addr(far),
		OriginatorSeq: 2}, 27, false)
	if l.Route(far) != right {
		t.Fatalf("the route goes over %q", l.Route(far))
	}
	l.broken()
	l.take()
	l.Need(far)
	equal(t, "first", l.ttls(), []int{6})
	l.Wait(360*time.Millisecond - 1) // 2 * 6 * 30 ms
	l.Need(far)
	equal(t, "before the ring's time is over", l.ttls(), nil)
	l.Wait(1)
	l.Need(far)
	equal(t, "then", l.ttls(), []int{8})
}

// Without new packets what waits is looked after twice a second, for 30 s.
func TestNS2AsksAsLongAsPacketsWait(t *testing.T) {
	l := newNS2Lab(t)
	l.Need(far)
	l.Wait(19400 * time.Millisecond)
	equal(t, "four in 18 s", l.ttls(), []int{30, 30, 30, 30})
	l.Wait(time.Minute)
	equal(t, "nothing waits any more", l.ttls(), nil)
}

// Where answers take long, packets have waited too long before the RREQs are through. That search has failed, too.
func TestNS2ASearchEndsWithItsPackets(t *testing.T) {
	l := newNS2Lab(t)
	l.Node.searches[addr(far)] = &search{ttl: maxHops, perHop: [ns2History]time.Duration{time.Second}, answers: 1}
	l.Need(far)
	l.Wait(30 * time.Second)
	if len(l.Reports) != 0 {
		t.Errorf("reports %v while a packet waits", l.Reports)
	}
	l.Wait(time.Second)
	if !slices.Equal(l.Reports, []manet.Report{{Kind: "discovery_failed", Addr: addr(far)}}) {
		t.Errorf("reports %v, want one discovery that failed", l.Reports)
	}
}

// A relay mends a route only where the lost packet had come further than it had
// to go, and does not tell that it could not.
func TestNS2RepairsInTheSecondHalf(t *testing.T) {
	for _, c := range []struct {
		name            string
		back, on        uint8
		repaired, tells bool
	}{{"first half", 1, 3, false, true}, {"second half", 3, 1, true, false}, {"the middle", 2, 2, false, true}} {
		t.Run(c.name, func(t *testing.T) {
			l := newNS2Lab(t)
			l.Wait(time.Second)
			ask := rreq(1, 10)
			ask.HopCount = c.back - 1
			l.hear(left, ask, 20, false)
			l.hear(right, rrep(20, c.on-1, src), 30, true)
			l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(src), Previous: addr(left)})
			l.take()
			l.broken()
			asks, tells := false, false
			for _, s := range l.take() {
				switch s.m.(type) {
				case RREQ:
					asks = true
				case RERR:
					tells = true
				}
			}
			if asks != c.repaired || tells != c.tells {
				t.Errorf("asks %v, tells %v; want %v and %v", asks, tells, c.repaired, c.tells)
			}
			l.Wait(time.Minute)
			for _, s := range l.take() {
				if _, is := s.m.(RERR); is {
					t.Error("a repair that failed is told")
				}
			}
		})
	}
}

// A link that breaks is told to all, with every route that went over it, the way back to who asked among them, which no
// precursor list has (handle_link_failure). A neighbour that was only heard has no route in ns-2.
func TestNS2TellsAllOfABrokenLink(t *testing.T) {
	told := func(l *lab, want ...Unreachable) {
		t.Helper()
		s := l.take()
		if len(s) != 1 || s[0].to.IsValid() || !slices.Equal(s[0].m.(RERR).Destinations, want) {
			t.Fatalf("sent %+v, want an RERR with %v to all", s, want)
		}
	}
	relay := func() *lab {
		l := newNS2Lab(t)
		l.hear(left, rreq(1, 10), 5, false)
		l.hear(right, rrep(20, 1, src), 30, true)
		l.take()
		return l
	}
	l := relay()
	l.Handle(manet.LinkFailed{Neighbor: addr(left), Destination: addr(src)})
	told(l, Unreachable{addr(src), 11})
	l.Handle(manet.NeedRoute{Destination: addr(src), Source: addr(far), Previous: addr(right)})
	told(l, Unreachable{addr(src), 11})
	// Another's RERR goes on to all, too, but only where there are precursors (recvError).
	l = relay()
	l.hear(right, RERR{Destinations: []Unreachable{{addr(far), 21}}}, 1, false)
	told(l, Unreachable{addr(far), 21})
	l = relay()
	l.hear(left, RERR{Destinations: []Unreachable{{addr(src), 11}}}, 1, false)
	if s := l.take(); l.Route(src) != "" || len(s) != 0 {
		t.Errorf("route over %q, sent %+v; want no route, told to nobody", l.Route(src), s)
	}
}
