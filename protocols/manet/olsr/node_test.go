package olsr

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// lab is one node whose neighbours are played by the test.
type lab struct {
	*simtest.Lab[*Node]
	sent []sent
	seqs map[netip.Addr]uint16
}

type sent struct {
	at    manet.Time
	iface int
	Message
}

const me = simtest.Me

func newLab(t *testing.T, change func(*Config)) *lab {
	t.Helper()
	l := &lab{seqs: map[netip.Addr]uint16{}}
	l.Lab = simtest.NewLab(t, simtest.New(t, RFC3626, New, change), l.read)
	return l
}

func (l *lab) read(a manet.Send) {
	p, err := ParsePacket(a.Data, 4)
	if err != nil {
		l.T.Fatalf("the node sent a packet that cannot be read: %v", err)
	}
	for _, m := range p.Messages {
		l.sent = append(l.sent, sent{l.Now, a.Interface, m})
	}
}

// hear delivers messages in one packet from a neighbour's interface.
func (l *lab) hear(from string, messages ...Message) { l.hearOn(0, from, messages...) }

func (l *lab) hearOn(iface int, from string, messages ...Message) {
	l.T.Helper()
	a := addr(from)
	l.seqs[a]++
	for i := range messages {
		if !messages[i].Originator.IsValid() {
			messages[i].Originator = a
		}
		if messages[i].TTL == 0 {
			messages[i].TTL = 1
		}
		if messages[i].VTime == 0 {
			messages[i].VTime = EncodeTime(6 * time.Second)
		}
	}
	data, err := Packet{Seq: l.seqs[a], Messages: messages}.Marshal()
	if err != nil {
		l.T.Fatal(err)
	}
	l.Handle(manet.Packet{Interface: iface, From: a, TTL: 1, Data: data})
}

func neighbors(addresses ...string) []Neighbor {
	var out []Neighbor
	for _, a := range addresses {
		out = append(out, Neighbor{Addr: addr(a)})
	}
	return out
}

// hello is a HELLO that hears us and has symmetric neighbours.
func hello(will uint8, us uint8, others ...string) Message {
	h := Hello{HTime: EncodeTime(2 * time.Second), Willingness: will,
		Links: []Links{{LinkSymmetric, us, neighbors(me)}}}
	if len(others) > 0 {
		h.Links = append(h.Links, Links{LinkSymmetric, NeighborSym, neighbors(others...)})
	}
	return Message{Type: TypeHello, Body: h.Marshal(false)}
}

func tc(origin string, seq, ansn uint16, ttl uint8, to ...string) Message {
	body := TC{ANSN: ansn, Neighbors: neighbors(to...)}.Marshal(false)
	return Message{Type: TypeTC, VTime: EncodeTime(15 * time.Second), Originator: addr(origin), TTL: ttl, Seq: seq,
		Body: body}
}

func (l *lab) route(to string) string {
	r, ok := l.Routes[manet.Host(addr(to))]
	if !ok {
		return ""
	}
	return r.Next[0].Addr.String()
}

func (l *lab) last(kind uint8) *sent {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if l.sent[i].Type == kind {
			return &l.sent[i]
		}
	}
	return nil
}

// declaredAs is how the node's last HELLO declares an address.
func (l *lab) declaredAs(a string) (link, kind uint8, ok bool) {
	l.T.Helper()
	m := l.last(TypeHello)
	if m == nil {
		l.T.Fatal("no HELLO was sent")
	}
	h, err := ParseHello(m.Body, 4, false)
	if err != nil {
		l.T.Fatal(err)
	}
	for _, g := range h.Links {
		if slices.ContainsFunc(g.Addresses, func(n Neighbor) bool { return n.Addr == addr(a) }) {
			return g.Link, g.Neighbor, true
		}
	}
	return 0, 0, false
}

func TestLinkSensing(t *testing.T) {
	l := newLab(t, nil)
	deaf := Hello{HTime: EncodeTime(2 * time.Second), Willingness: 3}
	l.hear("10.0.0.2", Message{Type: TypeHello, Body: deaf.Marshal(false)})
	l.Wait(2 * time.Second)
	if link, kind, ok := l.declaredAs("10.0.0.2"); !ok || link != LinkAsymmetric || kind != NeighborNot ||
		l.route("10.0.0.2") != "" {
		t.Errorf("a neighbour that does not hear us is declared %d %d %v with route %q", link, kind, ok,
			l.route("10.0.0.2"))
	}
	l.hear("10.0.0.2", hello(3, NeighborSym))
	if l.route("10.0.0.2") != "10.0.0.2" {
		t.Error("no route to a symmetric neighbour")
	}
	l.Wait(2 * time.Second)
	if link, kind, _ := l.declaredAs("10.0.0.2"); link != LinkSymmetric || kind != NeighborSym {
		t.Errorf("a symmetric neighbour is declared %d %d", link, kind)
	}
	lost := Hello{Willingness: 3, Links: []Links{{LinkLost, NeighborNot, neighbors(me)}}}
	l.hear("10.0.0.2", Message{Type: TypeHello, Body: lost.Marshal(false)})
	if l.route("10.0.0.2") != "" {
		t.Error("a route stays over a link that the neighbour says is lost")
	}
	l.hear("10.0.0.2", hello(3, NeighborSym))
	l.Wait(6*time.Second + time.Millisecond)
	if l.route("10.0.0.2") != "" {
		t.Error("a route stays over a link that timed out")
	}
	l.Wait(2 * time.Second)
	if link, _, ok := l.declaredAs("10.0.0.2"); ok && link == LinkSymmetric {
		t.Error("a link that timed out is still declared symmetric")
	}
	l.Wait(13 * time.Second)
	if len(l.Node.links) != 0 || len(l.Node.neighbors) != 0 {
		t.Error("a silent neighbour is never forgotten")
	}
}

// mprs plays neighbours with their own neighbours and returns who is chosen.
func mprs(t *testing.T, coverage int, around map[string][]string, will map[string]uint8) []string {
	l := newLab(t, func(c *Config) { c.MPRCoverage = coverage })
	for a, others := range around {
		w, ok := will[a]
		if !ok {
			w = WillDefault
		}
		l.hear(a, hello(w, NeighborSym, others...))
		l.hear(a, hello(w, NeighborSym, others...)) // the first made the neighbour symmetric
	}
	l.Wait(2 * time.Second)
	var out []string
	for _, a := range l.Node.mprList() {
		out = append(out, a.String())
		if _, kind, _ := l.declaredAs(a.String()); kind != NeighborMPR {
			t.Errorf("MPR %v is declared as %d", a, kind)
		}
	}
	return out
}

func TestMPRSelection(t *testing.T) {
	const a, b, c, x, y, z = "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.1.1", "10.0.1.2", "10.0.1.3"
	for name, test := range map[string]struct {
		coverage int
		around   map[string][]string
		will     map[string]uint8
		want     []string
	}{
		"nothing to reach":        {1, map[string][]string{a: {b}, b: {a}}, nil, nil},
		"the only one":            {1, map[string][]string{a: {x}, b: {}}, nil, []string{a}},
		"who reaches more":        {1, map[string][]string{a: {x}, b: {x, y}, c: {y}}, nil, []string{b}},
		"alone for one, then all": {1, map[string][]string{a: {x, y}, b: {y, z}, c: {y}}, nil, []string{a, b}},
		"willingness first": {1, map[string][]string{a: {x, y}, b: {x, y}}, map[string]uint8{b: WillHigh},
			[]string{b}},
		"always": {1, map[string][]string{a: {}, b: {x}}, map[string]uint8{a: WillAlways},
			[]string{a, b}},
		"never": {1, map[string][]string{a: {x}, b: {x}}, map[string]uint8{a: WillNever},
			[]string{b}},
		"never, even alone":       {1, map[string][]string{a: {x}}, map[string]uint8{a: WillNever}, nil},
		"covered twice":           {2, map[string][]string{a: {x}, b: {x}, c: {x}}, nil, []string{a, b}},
		"a neighbour is no 2-hop": {1, map[string][]string{a: {b, x}, b: {a, x}, c: {a, b}}, nil, []string{a}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mprs(t, test.coverage, test.around, test.will); !slices.Equal(got, test.want) {
				t.Errorf("chosen %v, want %v", got, test.want)
			}
		})
	}
}

func TestForwarding(t *testing.T) {
	l := newLab(t, nil)
	l.hear("10.0.0.2", hello(3, NeighborMPR)) // we are its MPR
	l.hear("10.0.0.3", hello(3, NeighborSym)) // not its
	forwarded := func(origin string) (n int) {
		l.Wait(time.Second)
		for _, m := range l.sent {
			if m.Type == TypeTC && m.Originator == addr(origin) {
				n++
			}
		}
		return n
	}
	l.hear("10.0.0.3", tc("10.0.2.1", 1, 1, 10, "10.0.2.9"))
	if forwarded("10.0.2.1") != 0 {
		t.Error("forwarded for a neighbour that did not choose us")
	}
	l.hear("10.0.0.2", tc("10.0.2.1", 1, 1, 10, "10.0.2.9"))
	if forwarded("10.0.2.1") != 0 {
		t.Error("forwarded although it had come over the same interface before (section 3.4.1, step 2)")
	}
	l.hear("10.0.0.2", tc("10.0.2.2", 1, 1, 10, "10.0.2.9"))
	l.hear("10.0.0.2", tc("10.0.2.2", 1, 1, 10, "10.0.2.9"))
	if forwarded("10.0.2.2") != 1 {
		t.Error("a message and its double are not forwarded once")
	}
	if m := l.last(TypeTC); m.TTL != 9 || m.HopCount != 1 {
		t.Errorf("forwarded with TTL %d, %d hops", m.TTL, m.HopCount)
	}
	l.hear("10.0.0.2", tc("10.0.2.3", 1, 1, 1, "10.0.2.9"))
	if forwarded("10.0.2.3") != 0 {
		t.Error("forwarded with TTL 1")
	}
	l.hear("10.0.0.9", tc("10.0.2.4", 1, 1, 10, "10.0.2.9"))
	if forwarded("10.0.2.4") != 0 || l.Node.topology[addr("10.0.2.4")] != nil {
		t.Error("took in a TC from a stranger")
	}
	l.hear("10.0.0.2", Message{Type: 77, Originator: addr("10.0.2.5"), TTL: 3, Seq: 4, Body: []byte("abcd")})
	l.Wait(time.Second)
	if m := l.last(77); m == nil || string(m.Body) != "abcd" {
		t.Error("a message of an unknown type is not forwarded as it came")
	}
	l.hear("10.0.0.2", tc(me, 1, 1, 10, "10.0.2.9"))
	if l.Node.topology[addr(me)] != nil {
		t.Error("took in a TC that says to be our own")
	}
}

func TestTopology(t *testing.T) {
	l := newLab(t, nil)
	around := func() { l.hear("10.0.0.2", hello(3, NeighborSym, "10.0.0.3")) }
	around()
	around()
	l.hear("10.0.0.2", tc("10.0.0.3", 1, 0xffff, 10, "10.0.0.4", "10.0.0.5"))
	l.Wait(time.Second)
	for _, a := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
		if l.route(a) != "10.0.0.2" {
			t.Errorf("route to %s over %q", a, l.route(a))
		}
	}
	if r := l.Routes[manet.Host(addr("10.0.0.4"))]; r.Hops != 3 {
		t.Errorf("%d hops, want 3", r.Hops)
	}
	// The ANSN wraps: 2 is newer than 0xffff, and what it leaves out is gone.
	l.hear("10.0.0.2", tc("10.0.0.3", 2, 2, 10, "10.0.0.5"))
	l.Wait(time.Second)
	if l.route("10.0.0.4") != "" || l.route("10.0.0.5") == "" {
		t.Error("a newer TC does not replace the older one")
	}
	// A late TC changes nothing, three in a row are a restart.
	for i := range uint16(3) {
		if l.route("10.0.0.4") != "" {
			t.Errorf("a late TC was believed, after %d", i)
		}
		l.hear("10.0.0.2", tc("10.0.0.3", 100+i, 0xfff0+i, 10, "10.0.0.4"))
		l.Wait(200 * time.Millisecond)
	}
	if l.route("10.0.0.4") == "" {
		t.Error("a node that lost its state is not heard again")
	}
	for range 9 {
		l.Wait(2 * time.Second)
		around()
	}
	if l.route("10.0.0.4") != "" || l.route("10.0.0.3") == "" {
		t.Error("the topology does not time out by itself")
	}
}

func TestTCIsSentForSelectorsOnly(t *testing.T) {
	l := newLab(t, nil)
	for range 5 {
		l.hear("10.0.0.2", hello(3, NeighborSym))
		l.Wait(2 * time.Second)
	}
	if l.last(TypeTC) != nil {
		t.Fatal("sent a TC without a selector")
	}
	for range 4 {
		l.hear("10.0.0.2", hello(3, NeighborMPR))
		l.Wait(2 * time.Second)
	}
	first, err := ParseTC(l.last(TypeTC).Body, 4, false)
	if err != nil || len(first.Neighbors) != 1 || first.Neighbors[0].Addr != addr("10.0.0.2") {
		t.Fatalf("TC %+v, %v", first, err)
	}
	l.Wait(12 * time.Second) // the selector is silent and lost
	empty, err := ParseTC(l.last(TypeTC).Body, 4, false)
	if err != nil || len(empty.Neighbors) != 0 || empty.ANSN != first.ANSN+1 {
		t.Fatalf("after the selector was lost: %+v, %v; want an empty TC with the next ANSN", empty, err)
	}
	l.Wait(20 * time.Second)
	l.sent = nil
	l.Wait(20 * time.Second)
	if l.last(TypeTC) != nil {
		t.Error("empty TCs never end")
	}
}

func TestHysteresis(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Hysteresis = true })
	steps := []struct {
		up    bool
		after int
	}{{false, 1}, {false, 2}, {true, 3}} // 0.5, 0.75, 0.875 > 0.8
	for _, s := range steps {
		l.hear("10.0.0.2", hello(3, NeighborSym))
		if up := l.route("10.0.0.2") != ""; up != s.up {
			t.Errorf("after %d packets: link up %v", s.after, up)
		}
		l.Wait(2 * time.Second)
	}
	// Two packets lost in a row leave 0.21875, below 0.3.
	l.seqs[addr("10.0.0.2")] += 2
	l.hear("10.0.0.2", hello(3, NeighborSym))
	if l.route("10.0.0.2") != "" {
		t.Error("a lossy link stays up")
	}
	l.Wait(2 * time.Second)
	if link, _, ok := l.declaredAs("10.0.0.2"); !ok || link != LinkLost {
		t.Errorf("a lossy link is declared %d, %v; want lost", link, ok)
	}
	// Silence counts as loss too, before the validity time has passed.
	m := newLab(t, func(c *Config) { c.Hysteresis = true })
	for range 3 {
		m.hear("10.0.0.2", hello(3, NeighborSym))
	}
	m.Wait(5500 * time.Millisecond)
	if m.route("10.0.0.2") != "" {
		t.Error("silence does not bring a link down")
	}
}

func TestLinkFailure(t *testing.T) {
	l := newLab(t, func(c *Config) { c.LinkFailures = true })
	l.hear("10.0.0.2", hello(3, NeighborSym))
	l.Handle(manet.LinkFailed{Interface: 0, Neighbor: addr("10.0.0.2")})
	if l.route("10.0.0.2") != "" {
		t.Error("a route stays over a link that failed")
	}
	l.hear("10.0.0.2", hello(3, NeighborSym))
	if l.route("10.0.0.2") != "" {
		t.Error("one HELLO brings a failed link back at once")
	}
	for range 4 {
		l.Wait(2 * time.Second)
		l.hear("10.0.0.2", hello(3, NeighborSym))
	}
	if l.route("10.0.0.2") == "" {
		t.Error("a link that failed once never comes back")
	}
}

func TestSeveralInterfaces(t *testing.T) {
	const second = "10.1.0.1"
	l := newLab(t, func(c *Config) {
		c.Interfaces = append(c.Interfaces, manet.Interface{Name: "wlan1", Address: addr(second)})
	})
	// A neighbour whose main address is 10.0.0.2 is heard as 10.1.0.2.
	h := Hello{HTime: EncodeTime(2 * time.Second), Willingness: 3, Links: []Links{
		{LinkSymmetric, NeighborSym, neighbors(second)}, {LinkUnspecified, NeighborSym, neighbors("10.0.0.3")}}}
	m := Message{Type: TypeHello, Originator: addr("10.0.0.2"), Body: h.Marshal(false)}
	l.hearOn(1, "10.1.0.2", m)
	l.hearOn(1, "10.1.0.2", m)
	l.Wait(time.Second)
	for _, a := range []string{"10.0.0.2", "10.1.0.2", "10.0.0.3"} {
		if r := l.Routes[manet.Host(addr(a))]; l.route(a) != "10.1.0.2" || r.Next[0].Interface != 1 {
			t.Errorf("route to %s over %q", a, l.route(a))
		}
	}
	l.hearOn(1, "10.1.0.2", Message{Type: TypeMID, VTime: EncodeTime(15 * time.Second), Originator: addr("10.0.0.3"),
		TTL: 5, Seq: 9, Body: MarshalMID([]netip.Addr{addr("10.1.0.3")})})
	l.Wait(time.Second)
	if l.route("10.1.0.3") != "10.1.0.2" {
		t.Error("no route to an address that a MID told")
	}
	l.Wait(5 * time.Second)
	mid := l.last(TypeMID)
	if mid == nil || mid.Originator != addr(me) {
		t.Fatal("no MID was sent")
	}
	if got, err := ParseMID(mid.Body, 4); err != nil || !slices.Equal(got, []netip.Addr{addr(second)}) {
		t.Errorf("MID tells %v, %v", got, err)
	}
	l.hearOn(1, "10.1.0.2", m)
	l.Handle(manet.InterfaceDown{Interface: 1})
	if len(l.Routes) != 0 {
		t.Errorf("routes over an interface that is down: %v", l.Routes)
	}
	l.sent = nil
	l.Wait(5 * time.Second)
	if slices.ContainsFunc(l.sent, func(s sent) bool { return s.iface == 1 }) {
		t.Error("sent on an interface that is down")
	}
	l.Handle(manet.InterfaceUp{Interface: 1})
	l.Wait(5 * time.Second)
	if !slices.ContainsFunc(l.sent, func(s sent) bool { return s.iface == 1 }) {
		t.Error("silent on an interface that came up again")
	}
}

func TestNetworks(t *testing.T) {
	own := netip.MustParsePrefix("192.168.7.0/24")
	l := newLab(t, func(c *Config) { c.Networks = []netip.Prefix{own} })
	l.hear("10.0.0.2", hello(3, NeighborSym, "10.0.0.3"))
	l.hear("10.0.0.2", hello(3, NeighborSym, "10.0.0.3"))
	far := netip.MustParsePrefix("172.16.0.0/12")
	hna := func(from string, seq uint16) Message {
		return Message{Type: TypeHNA, VTime: EncodeTime(15 * time.Second), Originator: addr(from), TTL: 5, Seq: seq,
			Body: MarshalHNA([]netip.Prefix{far, own})}
	}
	l.hear("10.0.0.2", hna("10.0.0.3", 1))
	l.Wait(time.Second)
	if r, ok := l.Routes[far]; !ok || r.Hops != 2 {
		t.Errorf("route to a network: %+v, %v", r, ok)
	}
	l.hear("10.0.0.2", hna("10.0.0.2", 1))
	l.Wait(time.Second)
	if r := l.Routes[far]; r.Hops != 1 {
		t.Errorf("the nearer gateway is not taken: %+v", r)
	}
	if _, ok := l.Routes[own]; ok {
		t.Error("a route to our own network was taken from others")
	}
	l.Wait(5 * time.Second)
	if m := l.last(TypeHNA); m == nil || m.Originator != addr(me) {
		t.Error("no HNA was sent")
	}
}

func TestLongListsAreSplit(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Interfaces[0].MTU = 300; c.TCRedundancy = 2 })
	for i := range 120 {
		l.hear(netip.AddrFrom4([4]byte{10, 0, 3, byte(i + 1)}).String(), hello(3, NeighborSym))
	}
	l.sent = nil
	l.Wait(5500 * time.Millisecond)
	declared, told := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, m := range l.sent {
		if len(m.Body) > 300-headers-packetHeader-12 {
			t.Fatalf("a message of %d bytes at an MTU of 300", len(m.Body))
		}
		switch m.Type {
		case TypeHello:
			h, _ := ParseHello(m.Body, 4, false)
			for _, g := range h.Links {
				for _, a := range g.Addresses {
					declared[a.Addr] = true
				}
			}
		case TypeTC:
			m, _ := ParseTC(m.Body, 4, false)
			for _, a := range m.Neighbors {
				told[a.Addr] = true
			}
		}
	}
	if len(declared) != 120 || len(told) != 120 {
		t.Errorf("of 120 neighbours %d were declared, %d told", len(declared), len(told))
	}
}

func TestETXChoosesTheBetterPath(t *testing.T) {
	c := Quality{LQ: 255, NLQ: 255}
	if cost(c) != costOne || cost(Quality{127, 255}) < 2*costOne || cost(Quality{24, 255}) != costBroken {
		t.Errorf("costs %d, %d, %d", cost(c), cost(Quality{127, 255}), cost(Quality{24, 255}))
	}
	l := newLab(t, func(c *Config) {
		i := c.Interfaces
		*c = Olsrd(i, 1)
	})
	lq := func(us uint8, other uint8) Message {
		h := Hello{HTime: EncodeTime(2 * time.Second), Willingness: 3, Links: []Links{{LinkSymmetric, NeighborSym,
			[]Neighbor{{addr(me), Quality{us, 255}}, {addr("10.0.0.9"), Quality{other, 255}}}}}}
		return Message{Type: TypeLQHello, VTime: EncodeTime(20 * time.Second), Body: h.Marshal(true)}
	}
	for range 60 { // two neighbours reach 10.0.0.9, one hears us badly
		l.hear("10.0.0.2", lq(100, 255))
		l.hear("10.0.0.3", lq(255, 200))
		l.Wait(time.Second)
	}
	if l.route("10.0.0.9") != "10.0.0.3" {
		t.Errorf("route over %q, want the better one", l.route("10.0.0.9"))
	}
	if got := l.Node.mprList(); len(got) != 2 {
		t.Errorf("MPRs %v, want both at a coverage of seven", got)
	}
	// Every other packet of 10.0.0.3 is lost now, and it hears us badly.
	for range 60 {
		l.hear("10.0.0.2", lq(255, 255))
		l.seqs[addr("10.0.0.3")]++
		l.hear("10.0.0.3", lq(80, 200))
		l.Wait(time.Second)
	}
	if l.route("10.0.0.9") != "10.0.0.2" {
		t.Errorf("route over %q, want the one that is better now", l.route("10.0.0.9"))
	}
	var ttls []uint8
	for _, m := range l.sent {
		if m.Type == TypeLQTC && m.Originator == addr(me) && len(ttls) < 8 {
			ttls = append(ttls, m.TTL)
		}
	}
	if !slices.Equal(ttls, []uint8{2, 8, 2, 16, 2, 8, 2, 255}) {
		t.Errorf("TTLs of TCs %v, want olsrd's fisheye", ttls)
	}
}

func TestConfigIsChecked(t *testing.T) {
	simtest.Refused(t, RFC3626, New, map[string]func(*Config){
		"no interface":   func(c *Config) { c.Interfaces = nil },
		"no address":     func(c *Config) { c.Interfaces[0].Address = netip.Addr{} },
		"mixed families": func(c *Config) { c.Networks = []netip.Prefix{netip.MustParsePrefix("fd00::/8")} },
		"willingness":    func(c *Config) { c.Willingness = 8 },
		"coverage":       func(c *Config) { c.MPRCoverage = 0 },
		"interval":       func(c *Config) { c.TCInterval = 0 },
		"jitter":         func(c *Config) { c.MaxJitter = time.Hour },
		"both":           func(c *Config) { c.ETX, c.Hysteresis = true, true },
		"tables":         func(c *Config) { c.MaxEntries = 0 },
	})
}
