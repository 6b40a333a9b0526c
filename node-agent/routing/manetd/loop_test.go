package manetd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

var (
	self = netip.MustParseAddr("10.77.0.1")
	next = netip.MustParseAddr("10.77.0.2")
	far  = netip.MustParseAddr("10.77.0.9")
)

// script is a protocol that answers each event with prepared actions, and
// keeps what it was told.
type script struct {
	answer func(manet.Event) []manet.Action
	events []manet.Event
}

func (s *script) Handle(_ manet.Time, e manet.Event) []manet.Action {
	s.events = append(s.events, e)
	if s.answer == nil {
		return nil
	}
	return s.answer(e)
}

func (s *script) State(manet.Time) manet.State { return manet.State{} }

// effects keeps what the loop does to sockets and kernel, in words.
type effects struct{ did []string }

func (w *effects) do(format string, args ...any) error {
	w.did = append(w.did, fmt.Sprintf(format, args...))
	return nil
}

func (w *effects) Send(s manet.Send) error         { return w.do("send to %s", address(s.To)) }
func (w *effects) Transmit(t manet.Transmit) error { return w.do("transmit to %s", address(t.To)) }
func (w *effects) SetRoute(r manet.SetRoute) error {
	return w.do("set %s via %s", r.Destination, r.Next[0].Addr)
}
func (w *effects) DeleteRoute(p netip.Prefix) error { return w.do("delete %s", p) }
func (w *effects) Inject([]byte) error              { return w.do("inject") }
func (w *effects) Deliver([]byte) error             { return w.do("deliver") }
func (w *effects) Refuse([]byte) error              { return w.do("refuse") }

func testLoop(s *script, carrier bool) (*loop, *effects) {
	w := &effects{}
	var p Protocol
	if carrier {
		p.IPProtocol = 48
	}
	return newLoop(s, []netip.Addr{self}, p, w, w, w, func(manet.Time, Notice) {}), w
}

// ip makes an IPv4 packet with a header and eight more bytes.
func ip(source, destination netip.Addr, protocol byte, payload ...byte) []byte {
	p := make([]byte, 20, 40)
	p[0], p[8], p[9] = 0x45, 64, protocol
	copy(p[12:], source.AsSlice())
	copy(p[16:], destination.AsSlice())
	return append(p, payload...)
}

// route answers a NeedRoute with a route and a release.
func route(e manet.Event) []manet.Action {
	need, ok := e.(manet.NeedRoute)
	if !ok {
		return nil
	}
	return []manet.Action{
		manet.SetRoute{Destination: netip.PrefixFrom(need.Destination, 32), Next: []manet.Hop{{Addr: next}}, Hops: 2},
		manet.Release{Destination: need.Destination},
	}
}

func TestAPacketWaitsForItsRoute(t *testing.T) {
	s := &script{answer: route}
	l, w := testLoop(s, false)
	l.caught(0, ip(self, far, 17, make([]byte, 8)...))
	if want := []string{"set 10.77.0.9/32 via 10.77.0.2", "inject"}; !slices.Equal(w.did, want) {
		t.Errorf("did %q, want %q", w.did, want)
	}
	need := s.events[0].(manet.NeedRoute)
	if !need.Local || need.Source != self || need.Destination != far || l.held.Len() != 0 {
		t.Errorf("asked %+v, %d held", need, l.held.Len())
	}
	l.caught(0, ip(next, far, 17, 1))
	if need := s.events[1].(manet.NeedRoute); need.Local || need.Source != next {
		t.Errorf("a packet of another node asked %+v", need)
	}
}

// A packet that comes back although it was let go must not go round for ever.
func TestAPacketThatComesBackIsDroppedInTheEnd(t *testing.T) {
	l, w := testLoop(&script{answer: route}, false)
	packet := ip(self, far, 17, 1, 2, 3, 4, 5, 6, 7, 8)
	for range 10 {
		back := slices.Clone(packet)
		back[8]-- // its TTL may have changed on the way
		l.caught(time.Second, back)
	}
	if n := strings.Count(strings.Join(w.did, " "), "inject"); n != guardTimes ||
		l.counts.Dropped["came back too often"] != 10-guardTimes {
		t.Errorf("injected %d times, dropped %v", n, l.counts.Dropped)
	}
	l.caught(time.Second+2*guardFor, packet)
	if n := strings.Count(strings.Join(w.did, " "), "inject"); n != guardTimes+1 {
		t.Error("the same packet later, a sender's repetition, is not let go")
	}
}

// What the radio gave up goes back to a protocol that salvages it, and only that
// protocol's own packets do.
func TestFramesThatAreTakenBack(t *testing.T) {
	p3, err := find("dsr-ns2")
	if err != nil {
		t.Fatal(err)
	}
	rfc, err := find("dsr")
	if err != nil {
		t.Fatal(err)
	}
	frame := func(etherType byte, packet []byte) []byte {
		return append([]byte{12: etherType, 13: 0}, packet...)
	}
	source, dsrPacket := ip(self, far, 48, 59, 0, 0, 0), ip(self, far, 17, make([]byte, 8)...)
	source, dsrPacket = dsrPacket, source
	for name, c := range map[string]struct {
		protocol Protocol
		frame    []byte
		want     bool
	}{
		"a packet of DSR":               {p3, frame(8, dsrPacket), true},
		"no frame is said":              {p3, nil, false},
		"other data":                    {p3, frame(8, source), false},
		"not IPv4":                      {p3, frame(0x86, dsrPacket), false},
		"cut short":                     {p3, frame(8, dsrPacket[:10]), false},
		"a protocol that takes nothing": {rfc, frame(8, dsrPacket), false},
	} {
		got := c.protocol.carriedIn(c.frame)
		if (got != nil) != c.want || got != nil && !slices.Equal(got, dsrPacket) {
			t.Errorf("%s: %v, want one: %v", name, got, c.want)
		}
	}
}

// Data goes one way at a time: what a protocol has besides, it falls back on
// itself, and the kernel would spread flows over all of them.
func TestOneNextHopIsInstalled(t *testing.T) {
	l, w := testLoop(&script{}, false)
	other := netip.MustParseAddr("10.77.0.4")
	set := func(hops ...netip.Addr) {
		r := manet.SetRoute{Destination: netip.PrefixFrom(far, 32), Hops: 2}
		for _, a := range hops {
			r.Next = append(r.Next, manet.Hop{Addr: a})
		}
		l.setRoute(0, r)
	}
	set(next)
	set(next, other) // a second way changes nothing
	set(other)
	if want := []string{"set " + far.String() + "/32 via " + next.String(), "set " + far.String() + "/32 via " +
		other.String()}; !slices.Equal(w.did, want) {
		t.Errorf("did %q, want %q", w.did, want)
	}
	if r := l.routes[netip.PrefixFrom(far, 32)]; l.counts.RouteChanges != 2 || len(r.Next) != 1 {
		t.Errorf("%d changes of routes, next hops %v", l.counts.RouteChanges, r.Next)
	}
}

func TestOnlyThoseWhoMustKnowHearThatThereIsNoWay(t *testing.T) {
	syn, data := make([]byte, 20), make([]byte, 20)
	syn[13], data[13] = flagSYN, 0x10
	for name, c := range map[string]struct {
		packet []byte
		silent bool
		want   string
	}{
		"datagram":                   {ip(self, far, 17, make([]byte, 8)...), false, "refuse"},
		"connect":                    {ip(self, far, 6, syn...), false, "refuse"},
		"connection's data":          {ip(self, far, 6, data...), false, ""}, // it would change TCP's timer
		"another node's data":        {ip(next, far, 17, make([]byte, 8)...), false, ""},
		"connect, as in a simulator": {ip(self, far, 6, syn...), true, ""},
	} {
		l, w := testLoop(&script{answer: func(e manet.Event) []manet.Action {
			return []manet.Action{manet.Drop{Destination: e.(manet.NeedRoute).Destination, Reason: "no route",
				Unreachable: true}}
		}}, false)
		l.silent = c.silent
		l.caught(0, c.packet)
		if got := strings.Join(w.did, " "); got != c.want || l.held.Len() != 0 || l.counts.Dropped["no route"] != 1 {
			t.Errorf("%s: did %q, want %q; counts %+v", name, got, c.want, l.counts)
		}
	}
}

// With DSDV the five newest packets for a destination wait for its route, for ever.
func TestDSDVHoldsFiveForEver(t *testing.T) {
	p, err := find("dsdv")
	if err != nil {
		t.Fatal(err)
	}
	w := &effects{}
	l := newLoop(&script{}, []netip.Addr{self}, p, w, w, w, func(manet.Time, Notice) {})
	for i := range byte(7) {
		l.caught(0, ip(self, far, 17, i))
	}
	l.caught(0, ip(self, next, 17, 9))
	l.fire(time.Hour)
	var kept []byte
	for _, packet := range l.held.Take(far) {
		kept = append(kept, packet[20])
	}
	if !slices.Equal(kept, []byte{2, 3, 4, 5, 6}) || l.held.Len() != 1 || len(w.did) != 0 ||
		l.counts.Dropped["no room"] != 2 {
		t.Errorf("kept %v and %d of another, did %q, counts %+v", kept, l.held.Len(), w.did, l.counts)
	}
}

// Who sent a packet that waited too long is told, too: with ADV the search may go on.
func TestThatAPacketWaitedTooLongIsSaid(t *testing.T) {
	type by func(l *loop, now time.Duration)
	for name, notices := range map[string]by{
		"a timer":        func(l *loop, now time.Duration) { l.fire(now) },
		"another packet": func(l *loop, now time.Duration) { l.caught(now, ip(next, self, 17, 3)) },
	} {
		for _, silent := range []bool{false, true} {
			l, w := testLoop(&script{}, false)
			l.silent = silent
			l.caught(0, ip(self, far, 17, 1))
			l.caught(0, ip(next, far, 17, 1)) // another's
			l.caught(time.Second, ip(self, far, 17, 2))
			l.fire(heldFor)
			if len(w.did) != 0 {
				t.Errorf("did %q before 30 s are over", w.did)
			}
			notices(l, heldFor+1)
			want := []string{"refuse"}
			if silent {
				want = nil
			}
			if !slices.Equal(w.did, want) || len(l.held.Take(far)) != 1 || l.counts.Dropped["waited too long"] != 2 {
				t.Errorf("by %s, silent %v: did %q, counts %+v", name, silent, w.did, l.counts)
			}
		}
	}
}

func TestWhetherNoWayIsSaidIsTheProtocolsOwnOrTheTrials(t *testing.T) {
	for _, p := range Protocols() {
		simulators := slices.Contains([]string{"aodv-ns2", "aodv-p3", "adv", "dsr-ns2"}, p.Name)
		for _, c := range []struct {
			said *bool
			want bool
		}{{nil, simulators}, {new(false), true}, {new(true), false}} {
			d := daemon{cfg: control.Config{HostUnreachable: c.said}, protocol: p}
			if d.silent() != c.want {
				t.Errorf("%s, host_unreachable %v: silent %v, want %v", p.Name, c.said, !c.want, c.want)
			}
		}
	}
}

func TestACarrierGetsItsOwnNodesPacketsAlone(t *testing.T) {
	s := &script{answer: func(manet.Event) []manet.Action {
		return []manet.Action{manet.Transmit{To: next, Packet: make([]byte, 100),
			Messages: []manet.Message{{Kind: "SOURCE_ROUTE", Bytes: 12}}}}
	}}
	l, w := testLoop(s, true)
	l.caught(0, ip(next, far, 17))
	l.caught(0, ip(self, far, 17))
	if len(s.events) != 1 || !slices.Equal(w.did, []string{"transmit to 10.77.0.2"}) ||
		l.counts.Dropped["forwarded by the kernel"] != 1 {
		t.Errorf("events %v, did %q, dropped %v", s.events, w.did, l.counts.Dropped)
	}
	if l.counts.BytesSent != 12 || l.counts.PacketsSent != 0 || l.counts.DataPacketsSent != 1 ||
		l.counts.Messages["SOURCE_ROUTE"] != 1 {
		t.Errorf("overhead counted as %+v", l.counts)
	}
}

func TestAFailedFrameIsLaidToWhatWentThatWay(t *testing.T) {
	s := &script{answer: route}
	l, _ := testLoop(s, false)
	l.caught(0, ip(self, far, 17, 1))
	read := 0
	look := func(manet.Time) { read++ }
	l.linkFailed(recentFor, next, lost{}, look)
	l.linkFailed(recentFor+1, next, lost{}, look)
	first, second := s.events[1].(manet.LinkFailed), s.events[2].(manet.LinkFailed)
	if first.Destination != far || second.Destination.IsValid() || first.Neighbor != next {
		t.Errorf("told %+v, then %+v", first, second)
	}
	if read != 1 {
		t.Errorf("read %d times what is in use, want once, where no data was known of", read)
	}
	// Data that began since what is in use was last read is found then.
	l.linkFailed(9*recentFor, next, lost{}, func(now manet.Time) {
		l.used(now, []use{{source: self, destination: far}})
	})
	if third := s.events[len(s.events)-1].(manet.LinkFailed); third.Destination != far {
		t.Errorf("told %+v of a flow that just began", third)
	}
}

// Over one next hop data goes to several destinations. Where the radio says what was in the frame, the failure is laid
// to that data, whatever went that way last; and what is no data, to none.
func TestAFrameThatIsKnownIsLaidToItsOwnDestination(t *testing.T) {
	other := netip.MustParseAddr("10.77.0.8")
	p, err := find("aodv")
	if err != nil {
		t.Fatal(err)
	}
	ports := func(from, to uint16) []byte {
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	}
	message := func(data ...byte) []byte {
		return append(append(ports(p.Port, p.Port), 0, byte(8+len(data)), 0, 0), data...)
	}
	for name, c := range map[string]struct {
		etherType uint16
		packet    []byte
		want      netip.Addr
		message   byte
	}{
		"data":                   {0x0800, ip(self, other, 6, make([]byte, 20)...), other, 0},
		"another node's data":    {0x0800, ip(next, other, 17, ports(40000, 5000)...), other, 0},
		"a message of routing":   {0x0800, ip(self, next, 17, message(2)...), netip.Addr{}, 2},
		"an empty message":       {0x0800, ip(self, next, 17, message()...), netip.Addr{}, 0},
		"a message cut short":    {0x0800, ip(self, next, 17, ports(p.Port, p.Port)...), netip.Addr{}, 0},
		"an answer of ARP":       {0x0806, make([]byte, 28), netip.Addr{}, 0},
		"a packet cut short":     {0x0800, ip(self, other, 6)[:10], netip.Addr{}, 0},
		"no frame":               {0, nil, far, 0},
		"a frame without a type": {0, make([]byte, 5), netip.Addr{}, 0},
	} {
		s := &script{answer: route}
		l, _ := testLoop(s, false)
		l.caught(0, ip(self, other, 17, 1))
		l.caught(0, ip(self, far, 17, 1))
		var frame []byte
		if c.etherType > 0 {
			frame = append(binary.BigEndian.AppendUint16(make([]byte, 12), c.etherType), c.packet...)
		} else if c.packet != nil {
			frame = c.packet
		}
		l.linkFailed(0, next, p.lostIn(frame), func(manet.Time) { t.Errorf("%s: what is in use is read", name) })
		got := s.events[len(s.events)-1].(manet.LinkFailed)
		if got.Destination != c.want || got.Neighbor != next || got.Known != (frame != nil) || got.Type != c.message {
			t.Errorf("%s: told %+v, want destination %v and type %d", name, got, c.want, c.message)
		}
	}
}

func TestUnchangedRoutesStayAlone(t *testing.T) {
	set := manet.SetRoute{Destination: netip.PrefixFrom(far, 32), Next: []manet.Hop{{Addr: next}}, Hops: 2}
	l, w := testLoop(&script{}, false)
	l.act(0, set)
	l.act(0, set)
	set.Hops = 3
	l.act(0, set)
	l.act(0, manet.DeleteRoute{Destination: netip.PrefixFrom(self, 32)})
	l.act(0, manet.DeleteRoute{Destination: set.Destination})
	if want := []string{"set 10.77.0.9/32 via 10.77.0.2", "delete 10.77.0.9/32"}; !slices.Equal(w.did, want) ||
		l.counts.RouteChanges != 3 {
		t.Errorf("did %q, %d changes", w.did, l.counts.RouteChanges)
	}
}

func TestTimersFireInOrderAndMayBeReplaced(t *testing.T) {
	s := &script{}
	l, _ := testLoop(s, false)
	key := func(k uint8) manet.TimerKey { return manet.TimerKey{Kind: k} }
	l.act(0, manet.SetTimer{Key: key(1), At: 30})
	l.act(0, manet.SetTimer{Key: key(2), At: 10})
	l.act(0, manet.SetTimer{Key: key(3), At: 20})
	l.act(0, manet.SetTimer{Key: key(1), At: 10})
	l.act(0, manet.StopTimer{Key: key(3)})
	l.act(0, manet.StopTimer{Key: key(9)})
	l.fire(25)
	var got []uint8
	for _, e := range s.events {
		got = append(got, e.(manet.Timer).Key.Kind)
	}
	if more := l.timers.next() != never; more || !slices.Equal(got, []uint8{2, 1}) {
		t.Errorf("fired %v, more: %v", got, more)
	}
}

func TestUnreachableIsWhatRFC792Says(t *testing.T) {
	about := ip(self, far, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	m := unreachable(about, next)
	source, destination, ok := endpoints(m)
	if !ok || source != next || destination != self || m[9] != 1 || m[20] != 3 || m[21] != 1 ||
		!slices.Equal(m[28:], about[:28]) {
		t.Errorf("message % x", m)
	}
	if checksum(m[:20]) != 0 || checksum(m[20:]) != 0 {
		t.Error("a checksum is wrong")
	}
	if unreachable([]byte{0x60, 1}, next) != nil {
		t.Error("an answer to what is no IPv4")
	}
}

func TestHalvesCoverTheNetwork(t *testing.T) {
	for network, want := range map[string]string{
		"10.77.0.0/24": "10.77.0.0/25 10.77.0.128/25", "10.77.0.0/16": "10.77.0.0/17 10.77.128.0/17",
		"10.77.0.4/31": "10.77.0.4/32 10.77.0.5/32",
	} {
		h := halves(netip.MustParsePrefix(network))
		if got := h[0].String() + " " + h[1].String(); got != want {
			t.Errorf("halves of %s are %s, want %s", network, got, want)
		}
	}
}

func TestEveryProtocolCanBeMade(t *testing.T) {
	for _, p := range Protocols() {
		for _, s := range []Setup{{Feedback: true}, {Feedback: true, Fresh: true}} {
			s.Interfaces = []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}}
			if _, err := p.Make(s); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	for _, name := range []string{"aodv", "aomdv", "aodv-ns2", "dsr"} {
		p, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}}, Feedback: true,
			Hello: new(time.Second)}
		if _, err := p.Make(s); err == nil || !strings.Contains(err.Error(), "HELLOs") {
			t.Errorf("%s takes an interval of HELLOs that it never sends: %v", name, err)
		}
		s.Feedback = false
		if _, err := p.Make(s); (err == nil) != (name == "aodv" || name == "aomdv") {
			t.Errorf("%s where the radio reports nothing: %v", name, err)
		}
	}
	for _, p := range Protocols() { // whatever interval a plan may have
		for _, hello := range []float64{0.1, 0.15, 1, 60} {
			hellos := wire.RoutingKeys()[0]
			if hellos.Key != "hello_s" || !slices.Contains(hellos.Protocols, p.Name) {
				continue
			}
			_, err := p.Make(Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}},
				Fresh: true, Hello: new(time.Duration(hello * float64(time.Second)))})
			if err != nil {
				t.Errorf("%s with HELLOs every %g s: %v", p.Name, hello, err)
			}
		}
	}
	if _, err := find("ripv2"); err == nil || !strings.Contains(err.Error(), "olsr") {
		t.Errorf("an unknown protocol: %v", err)
	}
}

// What each protocol sends is known as routing's by the one list that captures
// and the emulated radio go by.
func TestWhatEveryProtocolSendsIsKnownAsRouting(t *testing.T) {
	for _, p := range Protocols() {
		if m, ok := signalling.Of(p.Name); !ok || m.Port != p.Port || int(m.Protocol) != p.IPProtocol {
			t.Errorf("%s is known by %+v, and speaks by UDP port %d or IP protocol %d", p.Name, m, p.Port, p.IPProtocol)
		}
		node, err := p.Make(Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}},
			Feedback: true, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		actions := slices.Clone(node.Handle(0, manet.Start{}))
		if p.carrier() {
			data := ip(self, far, 17)
			data[3] = byte(len(data)) // its length
			actions = append(actions, node.Handle(0, manet.Outgoing{Packet: data})...)
		} else {
			actions = append(actions, node.Handle(0, manet.NeedRoute{Destination: far, Source: self, Local: true})...)
		}
		sent := 0
		for round := 0; sent == 0 && round < 100 && len(actions) > 0; round++ {
			var next []manet.Action
			for _, a := range actions {
				switch a := a.(type) {
				case manet.Send:
					sent++
					udp := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, p.Port), p.Port)
					if !signalling.InIP(17, udp).Whole {
						t.Errorf("%s: a packet to port %d is not known as routing's", p.Name, p.Port)
					}
				case manet.Transmit:
					sent++
					if !signalling.InIP(a.Packet[9], a.Packet[20:]).Whole {
						t.Errorf("%s: % x is not known as routing's", p.Name, a.Packet)
					}
				case manet.SetTimer:
					next = append(next, slices.Clone(node.Handle(a.At, manet.Timer{Key: a.Key}))...)
				}
			}
			actions = next
		}
		if sent == 0 {
			t.Errorf("%s sent nothing", p.Name)
		}
	}
}

// Arming must not wait for neighbours of a protocol that says nothing before there
// is data.
func TestSilentProtocolsAreNotWaitedFor(t *testing.T) {
	for _, p := range Protocols() {
		node, err := p.Make(Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}},
			Feedback: true, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		l, w := testLoop(&script{}, p.carrier())
		l.node = node
		l.handle(0, manet.Start{})
		for now := manet.Time(0); now < 90*time.Second; now += time.Second {
			l.fire(now)
		}
		sent := len(w.did) > 0
		if waits := (wire.Routing{Protocol: p.Name}).Readiness() != wire.ReadyDaemon; waits != sent {
			t.Errorf("%s: sent something without data: %v, arming waits for more than the daemon: %v", p.Name, sent,
				waits)
		}
	}
}

// A node that others may remember is quiet after its start, but not where the preset is a simulator's.
func TestWhoIsQuietAfterItsStart(t *testing.T) {
	asks := aodv.RREQ{ID: 1, Destination: self, Originator: next, OriginatorSeq: 1, UnknownSeq: true}
	for name, quiet := range map[string]bool{"aodv": true, "aomdv": true, "aodv-ns2": false, "aodv-p3": false} {
		for _, fresh := range []bool{true, false} {
			p, err := find(name)
			if err != nil {
				t.Fatal(err)
			}
			l, w := testLoop(&script{}, false)
			l.node, err = p.Make(Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}},
				Feedback: true, Fresh: fresh})
			if err != nil {
				t.Fatal(err)
			}
			l.handle(0, manet.Start{})
			l.handle(time.Second, manet.Packet{From: next, TTL: 5, Data: asks.Marshal()})
			answered := slices.ContainsFunc(w.did, func(s string) bool { return strings.HasPrefix(s, "send") })
			if answered != (fresh || !quiet) {
				t.Errorf("%s, fresh %v: did %q", name, fresh, w.did)
			}
		}
	}
}

// What waits for a route is told, whether the runner or the protocol holds it.
func TestPacketsThatWait(t *testing.T) {
	for _, p := range Protocols() {
		node, err := p.Make(Setup{Interfaces: []manet.Interface{{Name: "wlan0", Address: self, MTU: 1500}},
			Feedback: true, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		l, _ := testLoop(&script{}, p.carrier())
		l.node = node
		l.handle(0, manet.Start{})
		packet := ip(self, far, 17, make([]byte, 8)...)
		packet[3] = byte(len(packet))
		l.caught(1, packet)
		l.caught(2, slices.Clone(packet))
		want := 2
		if !p.OnDemand && !p.carrier() && p.Held == 0 { // it has no route, and finds none
			want = 0
		}
		if got := l.waiting(node.State(3)); got != want {
			t.Errorf("%s: %d packets wait, want %d", p.Name, got, want)
		}
	}
}

func FuzzEndpoints(f *testing.F) {
	f.Add(ip(self, far, 6, make([]byte, 20)...))
	f.Add([]byte{0x4f, 0})
	fuzz.Run(f, func(t *testing.T, packet []byte) {
		l, _ := testLoop(&script{answer: route}, false)
		l.caught(0, slices.Clone(packet))
		establishedTCP(packet)
		if m := unreachable(packet, next); m != nil {
			if _, _, ok := endpoints(m); !ok {
				t.Errorf("% x", m)
			}
		}
	})
}
