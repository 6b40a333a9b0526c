package dsr

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// The source-routed data plane: functions of whole IPv4 packets, without state.

const (
	ipBytes         = 20
	ackRequestBytes = 4
)

// ipLength checks an IPv4 header and gives its length and the packet's.
func ipLength(p []byte) (header, total int, err error) {
	if len(p) < ipBytes || p[0]>>4 != 4 {
		return 0, 0, malformed("no IPv4 packet")
	}
	header, total = int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
	if header < ipBytes || total < header || total > len(p) {
		return 0, 0, malformed("an IPv4 header of %d bytes in a packet of %d, said to be %d", header, len(p), total)
	}
	return header, total, nil
}

// seal writes the IP header's length and checksum.
func seal(p []byte) {
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	p[10], p[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < int(p[0]&15)*4; i += 2 {
		sum += uint32(p[i])<<8 | uint32(p[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum))
}

func source(p []byte) netip.Addr      { return readAddr(p[12:]) }
func destination(p []byte) netip.Addr { return readAddr(p[16:]) }

// carried is where things are in a packet with a DSR Options header. Offsets
// are from the packet's start; 0 is none.
type carried struct {
	ip     int // length of the IP header
	end    int // of the DSR Options header
	option int // DSR Source Route option
	n      int // its addresses
	ack    int // Acknowledgement Request
	slot   int // a PadN as long as one
	others bool
}

// look finds them. It allocates nothing, as every data packet passes it.
func look(p []byte) (carried, error) {
	var c carried
	header, total, err := ipLength(p)
	if err != nil {
		return c, err
	}
	if p[9] != Protocol || total < header+fixedBytes || p[header+1]&0x80 != 0 {
		return c, malformed("no DSR Options header")
	}
	c.ip = header
	c.end = header + fixedBytes + int(binary.BigEndian.Uint16(p[header+2:]))
	if c.end > total {
		return c, malformed("options beyond the packet")
	}
	for at := header + fixedBytes; at < c.end; {
		if p[at] == TypePad1 {
			at++
			continue
		}
		if at+2 > c.end || at+2+int(p[at+1]) > c.end {
			return c, malformed("an option of type %d is cut short", p[at])
		}
		if err := c.note(p, at, int(p[at+1])); err != nil {
			return c, err
		}
		at += 2 + int(p[at+1])
	}
	return c, nil
}

func (c *carried) note(p []byte, at, size int) error {
	switch p[at] {
	case TypeSourceRoute:
		if c.option != 0 || size%4 != 2 {
			return malformed("a source route of %d bytes, or a second one", size)
		}
		c.option, c.n = at, (size-2)/4
		if c.left(p) > c.n {
			return malformed("%d segments left of %d", c.left(p), c.n)
		}
	case TypeAckRequest:
		if size < 2 {
			return malformed("a request for an acknowledgement of %d bytes", size)
		}
		c.ack = at
	case TypePadN:
		if size == ackRequestBytes-2 {
			c.slot = at
		}
	default:
		c.others = true
	}
	return nil
}

func (c *carried) left(p []byte) int { return int(p[c.option+3] & 63) }
func (c *carried) salvage(p []byte) int {
	return int(binary.BigEndian.Uint16(p[c.option+2:]) >> 6 & 15)
}

// hop is the i-th node of the route: Address[i] of 1..n, the packet's source
// before them, its destination behind.
func (c *carried) hop(p []byte, i int) netip.Addr {
	switch {
	case i <= 0:
		return source(p)
	case i > c.n:
		return destination(p)
	}
	return readAddr(p[c.option+4*i:])
}

// next is the index of the node that a packet on the air is meant for. The RFC's
// "n minus Segments Left" of 8.1.5 is one too few where Segments Left begins at
// n (8.1.3), and would name the node that forwards.
func (c *carried) next(p []byte) int { return c.n - c.left(p) + 1 }

// path is all nodes of the route in order. Of a salvaged packet the source is
// not the first one's neighbour and is left out (8.1.4).
func (c *carried) path(p []byte) []netip.Addr {
	list := make([]netip.Addr, 0, c.n+2)
	first := 0
	if c.salvage(p) != 0 {
		first = 1
	}
	for i := first; i <= c.n+1; i++ {
		list = append(list, c.hop(p, i))
	}
	return list
}

// back is the nodes between the one that forwarded a packet and who put its source
// route on, in that order; not nil.
func (c *carried) back(p []byte) []netip.Addr {
	first := 0
	if c.salvage(p) != 0 {
		first = 1
	}
	list := []netip.Addr{}
	for i := c.next(p) - 2; i > first; i-- {
		list = append(list, c.hop(p, i))
	}
	return list
}

// sound reports whether a source route can be meant: nodes with addresses that
// a node can have, none twice. A packet that is salvaged may come by its
// source.
func (c *carried) sound(p []byte) bool {
	first := 0
	if c.salvage(p) != 0 {
		first = 1
	}
	for i := first; i <= c.n+1; i++ {
		a := c.hop(p, i)
		if !usable(a) {
			return false
		}
		for k := first; k < i; k++ {
			if c.hop(p, k) == a {
				return false
			}
		}
	}
	return usable(source(p))
}

// sentBy reports whether the neighbour that sent a packet is the one on its
// source route, where it is known.
func (c *carried) sentBy(p []byte, neighbor netip.Addr) bool {
	return !neighbor.IsValid() || neighbor == c.hop(p, c.next(p)-1)
}

// usable reports whether a node can have an address.
func usable(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.As4()[0] < 240
}

// Encapsulate puts a DSR Options header with a source route behind a packet's
// IP header (8.1.2 and 8.1.3). route is the nodes between here and the packet's
// destination. It uses the packet's memory where there is room behind it.
func Encapsulate(packet []byte, route []netip.Addr) ([]byte, error) {
	header, total, err := ipLength(packet)
	if err != nil {
		return nil, err
	}
	size := (fixedBytes + 4 + 4*len(route) + 3) &^ 3
	if len(route) > maxAddresses || total+size > 0xffff {
		return nil, malformed("a route over %d nodes for a packet of %d bytes", len(route), total)
	}
	packet = insert(packet[:total], header, size)
	b := packet[header:]
	b[0], b[1] = packet[9], 0
	binary.BigEndian.PutUint16(b[2:], uint16(size-fixedBytes))
	SourceRoute{SegmentsLeft: uint8(len(route)), Route: route}.append(b[:fixedBytes])
	packet[9] = Protocol
	seal(packet)
	return packet, nil
}

// WayOfSource returns the nodes between a packet's source and its destination, 4 bytes each, in the
// packet's memory; ok is false unless the packet carries data and is as its source sends it.
func WayOfSource(packet []byte) (way []byte, ok bool) {
	c, err := look(packet)
	if err != nil || packet[c.ip] == noNextHeader || c.option == 0 || c.left(packet) != c.n ||
		c.salvage(packet) != 0 {
		return nil, false
	}
	return packet[c.option+4 : c.option+4+4*c.n], true
}

// insert makes room in a packet.
func insert(packet []byte, at, size int) []byte {
	n := len(packet)
	if cap(packet)-n < size {
		grown := make([]byte, n, n+size+64)
		copy(grown, packet)
		packet = grown
	}
	packet = packet[:n+size]
	copy(packet[at+size:], packet[at:n])
	return packet
}

// Forward moves a packet on by a node: the one after self on its source route
// is returned, and TTL and Segments Left are one less (8.1.5). A request for an
// acknowledgement was for self and becomes padding.
func Forward(packet []byte, self netip.Addr) (netip.Addr, error) {
	c, err := look(packet)
	if err != nil {
		return netip.Addr{}, err
	}
	if c.option == 0 {
		return netip.Addr{}, malformed("no source route")
	}
	at := c.next(packet)
	if at > c.n || c.hop(packet, at) != self {
		return netip.Addr{}, fmt.Errorf("forward packet: %v is not next on its source route", self)
	}
	if packet[8] <= 1 {
		return netip.Addr{}, fmt.Errorf("forward packet: its TTL is %d", packet[8])
	}
	packet[8]--
	packet[c.option+3]--
	c.silence(packet)
	seal(packet[:binary.BigEndian.Uint16(packet[2:])])
	return c.hop(packet, at+1), nil
}

// silence makes padding of a request for an acknowledgement.
func (c *carried) silence(p []byte) {
	if c.ack == 0 {
		return
	}
	p[c.ack] = TypePadN
	clear(p[c.ack+2 : c.ack+2+int(p[c.ack+1])])
	if p[c.ack+1] == ackRequestBytes-2 {
		c.slot = c.ack
	}
	c.ack = 0
}

// requestAck has a packet ask its next hop for an acknowledgement, in place of
// padding or of an earlier request.
func requestAck(p []byte, id uint16) ([]byte, error) {
	c, err := look(p)
	if err != nil {
		return nil, err
	}
	c.silence(p)
	if c.slot == 0 {
		p = insert(p, c.end, ackRequestBytes)
		binary.BigEndian.PutUint16(p[c.ip+2:], uint16(c.end-c.ip-fixedBytes+ackRequestBytes))
		c.slot = c.end
		p[c.slot+1] = ackRequestBytes - 2
	}
	p[c.slot] = TypeAckRequest
	binary.BigEndian.PutUint16(p[c.slot+2:], id)
	seal(p)
	return p, nil
}

// Decapsulate takes the DSR Options header out of a packet that came to its
// end, in place.
func Decapsulate(packet []byte) ([]byte, error) {
	c, err := look(packet)
	if err != nil {
		return nil, err
	}
	return c.strip(packet), nil
}

func (c *carried) strip(packet []byte) []byte {
	next := packet[c.ip]
	total := int(binary.BigEndian.Uint16(packet[2:]))
	// The IP header moves, as it is shorter than what follows.
	shift := c.end - c.ip
	copy(packet[shift:c.end], packet[:c.ip])
	packet = packet[shift:total]
	packet[9] = next
	seal(packet)
	return packet
}
