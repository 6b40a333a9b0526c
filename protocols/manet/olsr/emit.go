package olsr

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// headers are the bytes of an IPv6 and a UDP header; IPv4's are fewer.
const headers = 40 + 8

// fishEye is olsrd's sequence of TTLs: those near hear more often.
var fishEye = [...]uint8{2, 8, 2, 16, 2, 8, 2, 255}

// outbox collects messages for an interface until they are sent together.
type outbox struct {
	data  []byte // header included
	parts []manet.Message
	flush manet.Time // 0: no flush is due
}

// room is how many bytes a message of ours may have on any interface.
func (n *Node) room() int { return n.mtu - headers - packetHeader }

// enqueue puts a message into an interface's outbox, sending what is there
// first where both do not fit one packet.
func (n *Node) enqueue(i int, m *Message, part manet.Message) {
	f := &n.ifaces[i]
	length := messageFixed + n.size + len(m.Body)
	if len(f.out.data) > 0 && len(f.out.data)+length > f.MTU-headers {
		n.send(i)
	}
	if len(f.out.data) == 0 {
		f.out.data = make([]byte, packetHeader, packetHeader+max(length, 256))
	}
	f.out.data = AppendMessage(f.out.data, *m)
	part.Bytes = length
	f.out.parts = append(f.out.parts, part)
}

// send empties an interface's outbox onto the air.
func (n *Node) send(i int) {
	f := &n.ifaces[i]
	if len(f.out.data) == 0 || !f.up {
		f.out = outbox{}
		return
	}
	data := f.out.data
	data[0], data[1] = byte(len(data)>>8), byte(len(data))
	data[2], data[3] = byte(f.seq>>8), byte(f.seq)
	f.seq++
	n.Act(manet.Send{Interface: i, TTL: 1, Data: data, Messages: f.out.parts})
	f.out = outbox{}
}

// forward is section 3.4.1, steps 6 to 8. Forwarded messages wait a random
// while for others (section 3.4.1's jitter), or for our next own message.
func (n *Node) forward(m Message) {
	m.TTL--
	m.HopCount++
	if messageFixed+n.size+len(m.Body) > n.room() {
		n.Count("too_big_to_forward")
		return
	}
	n.Count("forwarded")
	for i := range n.ifaces {
		f := &n.ifaces[i]
		if !f.up {
			continue
		}
		n.enqueue(i, &m, manet.Message{Kind: kindName(m.Type), Forwarded: true})
		if f.out.flush == 0 {
			f.out.flush = n.Now + n.jitter.Below(n.config.MaxJitter)
			n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: timerFlush, Addr: f.Address}, At: f.out.flush})
		}
	}
}

func kindName(t uint8) string {
	switch t {
	case TypeHello, TypeLQHello:
		return "HELLO"
	case TypeTC, TypeLQTC:
		return "TC"
	case TypeMID:
		return "MID"
	case TypeHNA:
		return "HNA"
	}
	return "other"
}

// own wraps a body of ours.
func (n *Node) ownMessage(kind uint8, hold time.Duration, ttl uint8, body []byte) *Message {
	n.seq++
	return &Message{Type: kind, VTime: EncodeTime(hold), Originator: n.main, TTL: ttl, Seq: n.seq, Body: body}
}

// toAll sends a message of ours on every interface.
func (n *Node) toAll(m *Message) {
	for i := range n.ifaces {
		if n.ifaces[i].up {
			n.enqueue(i, m, manet.Message{Kind: kindName(m.Type)})
			n.send(i)
		}
	}
}

// sendHello is section 6.2. A list that does not fit goes in several HELLOs.
func (n *Node) sendHello(i int) {
	if n.mprsChanged {
		n.chooseMPRs()
	}
	kind := uint8(TypeHello)
	if n.config.ETX {
		kind = TypeLQHello
	}
	for _, links := range n.split(n.declared(i)) {
		h := Hello{HTime: EncodeTime(n.config.HelloInterval), Willingness: n.config.Willingness, Links: links}
		n.enqueue(i, n.ownMessage(kind, n.config.NeighborHold, 1, h.Marshal(n.config.ETX)),
			manet.Message{Kind: "HELLO"})
		n.send(i)
	}
}

// declared lists the links and neighbours to declare on an interface, grouped
// by link code.
func (n *Node) declared(i int) []Links {
	var groups [16][]Neighbor
	put := func(link, kind uint8, a Neighbor) { groups[kind<<2|link] = append(groups[kind<<2|link], a) }
	listed := map[netip.Addr]bool{}
	for _, l := range n.links {
		if kind, ok := l.linkType(n.Now, n.config.Hysteresis); ok && l.local == i && l.time > n.Now {
			put(kind, n.neighborType(l.main), Neighbor{l.remote, l.etx.used})
			listed[l.main] = true
		}
	}
	if len(n.ifaces) > 1 { // neighbours over other interfaces, by main address
		for main, nb := range n.neighbors {
			if !listed[main] && nb.symmetric {
				put(LinkUnspecified, n.neighborType(main), Neighbor{main, nb.best.etx.used})
			}
		}
	}
	var out []Links
	for code, addresses := range groups {
		if len(addresses) > 0 {
			slices.SortFunc(addresses, func(a, b Neighbor) int { return a.Addr.Compare(b.Addr) })
			out = append(out, Links{Link: uint8(code) & 3, Neighbor: uint8(code) >> 2, Addresses: addresses})
		}
	}
	return out
}

func (n *Node) neighborType(main netip.Addr) uint8 {
	switch nb := n.neighbors[main]; {
	case nb == nil || !nb.symmetric:
		return NeighborNot
	case nb.mpr:
		return NeighborMPR
	}
	return NeighborSym
}

func (n *Node) each() int {
	if n.config.ETX {
		return n.size + qualityBytes
	}
	return n.size
}

// split divides a HELLO's links into messages that fit; there is one at least.
func (n *Node) split(groups []Links) [][]Links {
	limit := n.room() - messageFixed - n.size - helloHeader
	var out [][]Links
	var current []Links
	used := 0
	for _, g := range groups {
		for len(g.Addresses) > 0 {
			fit := (limit - used - linkHeader) / n.each()
			if fit < 1 {
				out, current, used = append(out, current), nil, 0
				continue
			}
			fit = min(fit, len(g.Addresses))
			current = append(current, Links{g.Link, g.Neighbor, g.Addresses[:fit]})
			used += linkHeader + fit*n.each()
			g.Addresses = g.Addresses[fit:]
		}
	}
	return append(out, current)
}

// advertisedSet are the neighbours to report in TCs (sections 9.3, 15.2).
func (n *Node) advertisedSet() []Neighbor {
	if n.mprsChanged && n.config.TCRedundancy == 1 {
		n.chooseMPRs()
	}
	var out []Neighbor
	for main, nb := range n.neighbors {
		expires, ok := n.selectors[main]
		selector := ok && expires > n.Now
		wanted := selector || n.config.TCRedundancy == 2 || n.config.TCRedundancy == 1 && nb.mpr
		if nb.symmetric && wanted && n.linkCost(nb.best) < costBroken {
			out = append(out, Neighbor{main, nb.best.etx.used})
		}
	}
	slices.SortFunc(out, func(a, b Neighbor) int { return a.Addr.Compare(b.Addr) })
	return out
}

// sendTC is section 9.3. A set that became empty is told for as long as the
// full one could be believed.
func (n *Node) sendTC() {
	set := n.advertisedSet()
	n.advertisedChanged = false
	same := slices.EqualFunc(set, n.lastSet, func(a, b Neighbor) bool { return a.Addr == b.Addr })
	if !same {
		n.ansn++
	}
	if len(set) > 0 {
		n.emptyUntil = n.Now + n.config.TopologyHold
	}
	n.lastSet, n.lastTC = set, n.Now
	if len(set) == 0 && n.emptyUntil <= n.Now {
		return
	}
	kind, ttl := uint8(TypeTC), uint8(255)
	if n.config.ETX {
		kind = TypeLQTC
	}
	if n.config.FishEye {
		ttl = fishEye[n.eye%len(fishEye)]
		n.eye++
	}
	for _, tc := range n.splitTC(set) {
		n.toAll(n.ownMessage(kind, n.config.TopologyHold, ttl, tc.Marshal(n.config.ETX)))
	}
}

// splitTC divides the set into TCs that fit. olsrd's borders are "everything"
// for a single message; pieces carry none, and then olsrd forgets nothing
// before its time.
func (n *Node) splitTC(set []Neighbor) []TC {
	limit := (n.room() - messageFixed - n.size - tcHeader) / n.each()
	if len(set) <= limit {
		tc := TC{ANSN: n.ansn, Neighbors: set}
		if n.config.ETX {
			tc.Border = 0xffff
		}
		return []TC{tc}
	}
	var out []TC
	for part := range slices.Chunk(set, limit) {
		out = append(out, TC{ANSN: n.ansn, Neighbors: part})
	}
	return out
}

func (n *Node) sendMID() {
	var further []netip.Addr
	for _, f := range n.ifaces[1:] {
		if f.up {
			further = append(further, f.Address)
		}
	}
	if len(further) > 0 {
		n.toAll(n.ownMessage(TypeMID, n.config.MIDHold, 255, MarshalMID(further)))
	}
}

func (n *Node) sendHNA() {
	limit := (n.room() - messageFixed - n.size) / (2 * n.size)
	for part := range slices.Chunk(n.config.Networks, limit) {
		n.toAll(n.ownMessage(TypeHNA, n.config.HNAHold, 255, MarshalHNA(part)))
	}
}
