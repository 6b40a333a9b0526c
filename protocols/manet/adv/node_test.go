package adv

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

const (
	me    = simtest.Me
	left  = "10.0.0.2"
	right = "10.0.0.3"
	far   = "10.0.0.9"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// lab is one node whose neighbours are played by the test.
type lab struct{ *simtest.Vector[*Node] }

func newLab(t *testing.T, change func(*Config)) *lab {
	t.Helper()
	node := simtest.New(t, Default, New, func(c *Config) { c.Jitter = 0 }, change)
	return &lab{simtest.NewVector(t, node, node.Neighbors.Boot)}
}

// flood is what was flooded by a packet, if anything.
func (l *lab) flood(s simtest.Sent) *Flood {
	l.T.Helper()
	_, flood, err := Parse(s.Send.Data)
	if err != nil {
		l.T.Fatalf("the node sent a packet that cannot be read: %v", err)
	}
	return flood
}

// hearFlood delivers a flood, with what the neighbour reports about routes.
func (l *lab) hearFlood(from string, f Flood, entries ...distance.Entry) {
	l.T.Helper()
	f.TTL = 20
	l.HearUpdate(from, l.Hearing(distance.Update{Kind: kindFlood, Remainder: f.Marshal(), Entries: entries}))
}

// floods are the types of those that were sent, to whom they are, and when.
func (l *lab) floods() (out []string, at []time.Duration) {
	for _, s := range l.Take() {
		if f := l.flood(s); f != nil {
			out = append(out, f.Type.String()+" "+f.Receiver.String())
			at = append(at, s.At)
		}
	}
	return out, at
}

func TestAConnectionIsAnnouncedUntilThereIsARoute(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.Need(far)
	l.Wait(12 * time.Second)
	kinds, at := l.floods()
	if !slices.Equal(kinds, []string{"INIT " + far, "INIT " + far, "INIT " + far, "INIT " + far}) {
		t.Fatalf("floods %v", kinds)
	}
	for i, earliest := range []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second} {
		if at[i] < earliest || at[i] > earliest+2*time.Second {
			t.Errorf("INIT %d after %v, want %v and a little", i, at[i], earliest)
		}
	}
	l.Hear(left, simtest.Entry(far, 100, 2))
	if l.Route(far) != left || len(l.Released) != 1 || l.Reported("discovery_us") != 12e6 {
		t.Errorf("route over %q, released %v, reports %v", l.Route(far), l.Released, l.Reports)
	}
	l.Wait(9 * time.Second)
	if kinds, _ := l.floods(); len(kinds) != 0 {
		t.Errorf("floods %v, though there is a route", kinds)
	}
}

func TestPacketsDoNotWaitForEver(t *testing.T) {
	l := newLab(t, nil)
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(right), Previous: addr(right)}) // at a relay too
	l.Wait(29 * time.Second)
	if len(l.Dropped) != 0 {
		t.Fatalf("dropped %+v before the 30 s are over", l.Dropped)
	}
	l.Wait(2 * time.Second)
	if len(l.Dropped) != 1 || l.Dropped[0].Destination != addr(far) || !l.Dropped[0].Unreachable {
		t.Errorf("dropped %+v", l.Dropped)
	}
	if !slices.Equal(l.Reports, []manet.Report{{Kind: "discovery_failed", Addr: addr(far)}}) {
		t.Errorf("reported %v, want one discovery that failed", l.Reports)
	}
	if kinds, _ := l.floods(); len(kinds) != 0 {
		t.Errorf("a relay announces a connection: %v", kinds)
	}
}

// A packet waits for 30 s, whatever others before it did. The search fails after each 30 s, and the next begins there.
func TestEachPacketWaits(t *testing.T) {
	l := newLab(t, nil)
	l.Need(far)
	l.Wait(29500 * time.Millisecond)
	l.Need(far)
	l.Wait(2 * time.Second)
	l.Hear(left, simtest.Entry(far, 100, 2))
	if len(l.Dropped) != 0 || !slices.Equal(l.Released, []netip.Addr{addr(far)}) ||
		!slices.Equal(l.Reports, []manet.Report{{Kind: "discovery_failed", Addr: addr(far)},
			{Kind: "discovery_us", Addr: addr(far), Value: 1.5e6}}) {
		t.Errorf("dropped %+v, released %v, reports %v", l.Dropped, l.Released, l.Reports)
	}
}

// However many packets come, a search that finds nothing has failed once in 30 s.
func TestASearchFailsOnceIn30s(t *testing.T) {
	for gap, want := range map[time.Duration]int{time.Second: 10, 10 * time.Second: 10, 40 * time.Second: 8} {
		l := newLab(t, nil)
		for begin := l.Now; l.Now < begin+manet.Time(300*time.Second); {
			l.Need(far)
			l.Wait(gap)
		}
		l.Wait(2 * time.Second)
		failed := 0
		for _, r := range l.Reports {
			if r.Kind == "discovery_failed" {
				failed++
			}
		}
		if failed != want {
			t.Errorf("a packet in %v: %d failed in 300 s, want %d", gap, failed, want)
		}
	}
}

// A frame that is lost to a neighbour that is lost already tells nothing.
func TestANeighbourIsLostOnce(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left)
	for range 3 {
		l.Handle(manet.LinkFailed{Neighbor: addr(left)})
	}
	if !slices.Equal(l.Reports, []manet.Report{{Kind: "neighbor_lost", Addr: addr(left)}}) {
		t.Errorf("reports %v, want one neighbour lost", l.Reports)
	}
}

// A NON-ALERT ends a receiver whose ALERT was missed, wherever its numbers began.
func TestANonAlertWithoutItsAlert(t *testing.T) {
	for _, id := range []uint32{7, 0x90000000} {
		l := newLab(t, nil)
		l.hearFlood(left, Flood{Type: Init, Originator: addr(right), ID: 1, Receiver: addr(far)})
		l.hearFlood(left, Flood{Type: NonAlert, Originator: addr(far), ID: id, Receiver: addr(far)})
		if r := l.Node.receivers[addr(far)]; r == nil || !r.ended {
			t.Errorf("after the NON-ALERT %#x it is %+v, want one that has ended", id, r)
		}
	}
}

func TestAnActiveReceiver(t *testing.T) {
	l := newLab(t, nil)
	l.Wait(20 * time.Second)
	if n := len(l.Take()); n != 0 {
		t.Fatalf("%d packets of a node that nobody has data for", n)
	}
	init := Flood{Type: Init, Originator: addr(far), ID: 1, Receiver: addr(me), KnownSeq: true, Seq: 500}
	l.hearFlood(left, init)
	l.Wait(10 * time.Millisecond)
	out := l.Take()
	i := slices.IndexFunc(out, func(s simtest.Sent) bool { return l.flood(s) != nil })
	if i < 0 || l.flood(out[i]).Type != Alert || len(out[i].Entries) != 1 || out[i].Entries[0].Seq < 504 ||
		out[i].Entries[0].Hops != 0 {
		t.Fatalf("answered %+v, want an ALERT with a number beyond that of the INIT", out)
	}
	// It reports itself at least every five seconds, each time with a newer number.
	l.Wait(20 * time.Second)
	last, updates := out[i].Entries[0].Seq, 0
	for _, s := range l.Take() {
		if s.Full {
			updates++
			if s.Entries[0].To != addr(me) || s.Entries[0].Seq <= last {
				t.Errorf("an update with %+v after number %d", s.Entries[0], last)
			}
			last = s.Entries[0].Seq
		}
	}
	if updates < 4 {
		t.Errorf("%d full updates in 20 s", updates)
	}
	l.hearFlood(left, Flood{Type: End, Originator: addr(far), ID: 2, Receiver: addr(me)})
	l.Wait(10 * time.Millisecond)
	if kinds, _ := l.floods(); !slices.Equal(kinds, []string{"NON-ALERT " + me}) {
		t.Errorf("floods %v when the last connection has ended", kinds)
	}
	// Data that goes on arriving from one whose INIT was lost makes it active
	// again.
	l.Wait(time.Second)
	l.Handle(manet.RouteUsed{Destination: addr(me), Source: addr(right)})
	l.Wait(10 * time.Millisecond)
	if kinds, _ := l.floods(); !slices.Equal(kinds, []string{"ALERT " + me}) {
		t.Errorf("floods %v when data arrives", kinds)
	}
}

func TestConnectionsEnd(t *testing.T) {
	l := newLab(t, nil)
	l.Hear(left)
	l.Need(far)
	l.Hear(left, simtest.Entry(far, 100, 2))
	for range 5 {
		l.Wait(9 * time.Second)
		l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(me), Local: true})
		l.Hear(left, simtest.Entry(far, 100+2*uint32(l.Now/time.Second), 2))
	}
	l.floods()
	l.Wait(29 * time.Second)
	if kinds, _ := l.floods(); len(kinds) != 0 {
		t.Fatalf("floods %v before the connection is idle for 30 s", kinds)
	}
	l.Wait(2 * time.Second)
	if kinds, _ := l.floods(); !slices.Equal(kinds, []string{"END " + far}) {
		t.Errorf("floods %v", kinds)
	}
}

func TestRoutesAreKeptToReceiversOnly(t *testing.T) {
	l := newLab(t, nil)
	alert := Flood{Type: Alert, Originator: addr(far), ID: 5, Receiver: addr(far)}
	l.hearFlood(left, alert, simtest.Entry(far, 100, 2))
	l.hearFlood(right, alert, simtest.Entry(far, 100, 1))
	l.Wait(10 * time.Millisecond)
	if l.Route(far) != right {
		t.Fatalf("the route goes over %q", l.Route(far))
	}
	var relayed []simtest.Sent
	for _, s := range l.Sent {
		if l.flood(s) != nil {
			relayed = append(relayed, s)
		}
	}
	if len(relayed) != 1 || l.flood(relayed[0]).TTL != 19 || relayed[0].Entries[0] != simtest.Entry(far, 100, 2) {
		t.Errorf("relayed %+v, want once, with our own route", relayed)
	}
	l.hearFlood(left, Flood{Type: NonAlert, Originator: addr(far), ID: 4, Receiver: addr(far)})
	if l.Route(far) == "" {
		t.Error("an old NON-ALERT counts")
	}
	l.hearFlood(left, Flood{Type: NonAlert, Originator: addr(far), ID: 6, Receiver: addr(far)})
	if l.Route(far) != "" {
		t.Error("a route to one that is not a receiver any more")
	}
	l.Hear(right, simtest.Entry(far, 104, 1)) // who did not hear of it yet
	if l.Route(far) != "" {
		t.Error("a route to one that is not a receiver any more, by an update")
	}
	l.hearFlood(left, Flood{Type: Alert, Originator: addr(far), ID: 7, Receiver: addr(far)}, simtest.Entry(far, 106, 2))
	if l.Route(far) != left {
		t.Error("no route to one that is a receiver again")
	}
}

// quiet is a lab whose neighbours are known and whose regular updates are far
// off.
func quiet(t *testing.T, change func(*Config)) *lab {
	l := newLab(t, func(c *Config) {
		c.UpdateInterval = 10 * time.Minute
		if change != nil {
			change(c)
		}
	})
	alert := Flood{Type: Alert, Originator: addr(far), ID: 5, Receiver: addr(far)}
	l.hearFlood(left, alert, simtest.Entry(far, 100, 2))
	l.Hear(right)
	l.Wait(5 * time.Minute)
	l.Take()
	return l
}

func TestTheUrgeHasToPassTheThreshold(t *testing.T) {
	l := quiet(t, nil)
	l.Hear(left, simtest.Entry(far, 102, 2)) // only a newer number: 2 of 20
	l.Wait(time.Second)
	if n := len(l.Take()); n != 0 {
		t.Fatalf("%d updates for a newer number alone", n)
	}
	l.Hear(left, simtest.Entry(far, 104, 4)) // and a longer path: 12
	l.Wait(time.Second)
	if n := len(l.Take()); n != 0 {
		t.Fatalf("%d updates below the threshold", n)
	}
	l.Hear(left, simtest.Entry(far, 105, distance.Infinite)) // and broken: 32
	l.Wait(time.Second)
	if e, _ := l.Told(far); e != simtest.Entry(far, 105, distance.Infinite) || len(l.Take()) != 1 {
		t.Errorf("told %+v", e)
	}
	// Data that goes there doubles what an event weighs; the threshold is 30 now, and comes down to 20 in time.
	l.Wait(10 * time.Second)
	l.Hear(left, simtest.Entry(far, 106, 2))
	l.Handle(manet.RouteUsed{Destination: addr(far), Source: addr(right)})
	l.Hear(left, simtest.Entry(far, 108, 3))
	l.Wait(time.Second)
	l.WantTold(simtest.Entry(far, 108, 4))
}

func TestThresholdAdapts(t *testing.T) {
	l := quiet(t, nil)
	base := l.Node.threshold
	for i := range uint32(4) {
		l.Hear(left, simtest.Entry(far, 200+4*i, 2))
		l.Hear(left, simtest.Entry(far, 201+4*i, distance.Infinite))
		l.Wait(250 * time.Millisecond)
	}
	if l.Node.threshold <= 2*base {
		t.Errorf("a threshold of %g after %d updates in a second, %g before", l.Node.threshold, len(l.Take()), base)
	}
	l.Wait(5 * time.Minute)
	if l.Node.threshold != base {
		t.Errorf("a threshold of %g long after, want %g", l.Node.threshold, base)
	}
}

func TestARequestIsAnswered(t *testing.T) {
	l := quiet(t, nil)
	l.Hear(right, distance.Entry{To: addr(far), Seq: 101, Hops: distance.Infinite, Flags: flagRequest, Value: 3})
	l.Wait(time.Second)
	if n := len(l.Take()); n != 0 {
		t.Errorf("%d updates, though what is asked for is newer than what is known", n)
	}
	l.Hear(left, simtest.Entry(far, 102, 2))
	l.Hear(right, distance.Entry{To: addr(far), Seq: 101, Hops: distance.Infinite, Flags: flagRequest, Value: 3})
	l.Wait(time.Second)
	l.WantTold(simtest.Entry(far, 102, 3))
	// A break under data asks for another way.
	l.Take()
	l.Handle(manet.LinkFailed{Neighbor: addr(left), Destination: addr(far)})
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(right), Previous: addr(right)})
	l.Handle(manet.NeedRoute{Destination: addr(far), Source: addr(right), Previous: addr(right)})
	l.Wait(time.Second)
	l.WantTold(distance.Entry{To: addr(far), Seq: 103, Hops: distance.Infinite, Flags: flagRequest, Value: 2})
}

func TestFloodsByteForByte(t *testing.T) {
	f := Flood{Type: Alert, TTL: 35, KnownSeq: true, Originator: addr(me), ID: 0x01020304, Receiver: addr(far),
		Seq: 0xfffffffe}
	const want = "03" + "23" + "01" + "00" + "0a000001" + "01020304" + "0a000009" + "fffffffe"
	got := f.Marshal()
	if hex.EncodeToString(got) != want {
		t.Errorf("written\n%x, want\n%s", got, want)
	}
	back, err := ParseFlood(got)
	if err != nil || back != f {
		t.Errorf("read back as %+v, %v", back, err)
	}
	for end := range got {
		if _, err := ParseFlood(got[:end]); !errors.Is(err, manet.ErrMalformed) {
			t.Errorf("cut to %d bytes: %v", end, err)
		}
	}
}

// FuzzPacket: whatever arrives, the parser does not panic, and what it reads is
// the same after having been written.
func FuzzPacket(f *testing.F) {
	flood := Flood{Type: Init, TTL: 35, Originator: addr(me), ID: 1, Receiver: addr(far)}
	for _, u := range []distance.Update{
		{Full: true, Complete: true, Boot: 1, Heard: []distance.Heard{{Addr: addr(left), Boot: 2}},
			Entries: []distance.Entry{simtest.Entry(far, 100, 2)}},
		{Kind: kindFlood, Boot: 1, Remainder: flood.Marshal()},
		{Kind: kindFlood, Boot: 1}, {Kind: 9}, {Remainder: []byte{1}},
	} {
		f.Add(u.Marshal())
	}
	fuzz.Run(f, func(t *testing.T, data []byte) {
		u, flood, err := Parse(data)
		if simtest.Malformed(t, err) {
			return
		}
		if !bytes.Equal(u.Marshal(), data) {
			t.Fatalf("read %x, written %x", data, u.Marshal())
		}
		if flood != nil {
			if again, err := ParseFlood(flood.Marshal()); err != nil || !reflect.DeepEqual(again, *flood) {
				t.Fatalf("flood %+v, %v", again, err)
			}
		}
	})
}

// TestFirstPacketSurvives: over a chain of six, from a cold start, data finds
// its way and comes back.
func TestFirstPacketSurvives(t *testing.T) {
	sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 6, Feedback: true,
		Make: func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) { return New(Default(i, seed)) }})
	sim.Chain()
	sim.Flow(0, 5, 512, 100*time.Millisecond, 2*time.Second, 10*time.Second)
	sim.Flow(5, 0, 512, 100*time.Millisecond, 2*time.Second, 10*time.Second)
	if err := sim.Run(12 * time.Second); err != nil {
		t.Fatal(err)
	}
	if sim.Data.Delivered != sim.Data.Sent {
		t.Errorf("%+v", sim.Data)
	}
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, Default, New, map[string]func(*Config){
		"no interface": func(c *Config) { c.Interfaces = nil },
		"no address":   func(c *Config) { c.Interfaces[0].Address = netip.Addr{} },
		"interval":     func(c *Config) { c.UpdateInterval = 0 },
		"spacing":      func(c *Config) { c.Spacing = time.Hour },
		"threshold":    func(c *Config) { c.Threshold = 0 },
		"rise":         func(c *Config) { c.ThresholdRise = 0.5 },
		"diameter":     func(c *Config) { c.Diameter = 0 },
		"odd number":   func(c *Config) { c.FirstSeq = 3 },
		"tables":       func(c *Config) { c.MaxEntries = 1 },
	})
}
