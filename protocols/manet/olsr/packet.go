// Package olsr is the Optimized Link State Routing protocol of RFC 3626 as a
// pure state machine, with the link quality extension of olsrd's default
// (ETX) as an option. Sockets, clocks and kernel routes stay outside.
package olsr

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Port is OLSR's UDP port (RFC 3626 section 3.1).
const Port = signalling.PortOLSR

// Message types: RFC 3626 section 18.4, and olsrd's for its link qualities.
const (
	TypeHello   = 1
	TypeTC      = 2
	TypeMID     = 3
	TypeHNA     = 4
	TypeLQHello = 201
	TypeLQTC    = 202
)

// Link types and neighbour types of a HELLO's link code: sections 18.5, 18.6.
const (
	LinkUnspecified = 0
	LinkAsymmetric  = 1
	LinkSymmetric   = 2
	LinkLost        = 3

	NeighborNot = 0
	NeighborSym = 1
	NeighborMPR = 2
)

// Sizes in bytes: sections 3.3 and 6.1. A message's header is 8 bytes and one address.
const (
	packetHeader    = 4
	messageFixed    = 8
	helloHeader     = 4
	linkHeader      = 4
	tcHeader        = 4
	qualityBytes    = 4
	maxPacketLength = 0xffff
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w OLSR packet: %s", manet.ErrMalformed, fmt.Sprintf(format, args...))
}

// Packet is what one UDP datagram carries.
type Packet struct {
	Seq      uint16
	Messages []Message
}

// Message is one message with its header. The body is left as it came:
// messages of an unknown type are forwarded too (section 3.4).
type Message struct {
	Type       uint8
	VTime      uint8 // encoded validity time, see DecodeTime
	Originator netip.Addr
	TTL        uint8
	HopCount   uint8
	Seq        uint16
	Body       []byte
}

// Quality is a link's quality as olsrd sends it: the share of packets received
// over the link (LQ) and the neighbour's own view (NLQ), in 255ths.
type Quality struct{ LQ, NLQ uint8 }

// Neighbor is an address with its link quality, zero in plain messages.
type Neighbor struct {
	Addr    netip.Addr
	Quality Quality
}

// Links are the neighbour interfaces of one link code in a HELLO.
type Links struct {
	Link      uint8 // LinkUnspecified … LinkLost
	Neighbor  uint8 // NeighborNot … NeighborMPR
	Addresses []Neighbor
}

// Hello is the body of a HELLO (section 6.1).
type Hello struct {
	HTime       uint8 // encoded emission interval
	Willingness uint8
	Links       []Links
}

// TC is the body of a TC (section 9.1). Border is olsrd's note on which part of
// the neighbours a message of several covers; it is the reserved field in
// plain messages.
type TC struct {
	ANSN      uint16
	Border    uint16
	Neighbors []Neighbor
}

// ParsePacket reads a datagram of a network whose addresses have size bytes, 4
// or 16. Bodies refer to data. A packet whose length field disagrees with the
// datagram, or one of whose messages runs beyond it, is malformed as a whole.
func ParsePacket(data []byte, size int) (Packet, error) {
	var p Packet
	err := eachMessage(data, size, func(m Message) { p.Messages = append(p.Messages, m) })
	if err != nil {
		return Packet{}, err
	}
	p.Seq = binary.BigEndian.Uint16(data[2:])
	return p, nil
}

// eachMessage checks the whole packet before it calls visit for the messages,
// in order.
func eachMessage(data []byte, size int, visit func(Message)) error {
	if len(data) < packetHeader {
		return malformed("%d bytes are no header", len(data))
	}
	if stated := int(binary.BigEndian.Uint16(data)); stated != len(data) {
		return malformed("says %d bytes, has %d", stated, len(data))
	}
	for at := packetHeader; at < len(data); {
		rest := data[at:]
		if len(rest) < messageFixed+size {
			return malformed("%d bytes left are not messages", len(rest))
		}
		stated := int(binary.BigEndian.Uint16(rest[2:]))
		if stated < messageFixed+size || stated > len(rest) {
			return malformed("a message says %d bytes of %d", stated, len(rest))
		}
		at += stated
	}
	for at := packetHeader; at < len(data); {
		rest := data[at:]
		stated := int(binary.BigEndian.Uint16(rest[2:]))
		visit(readMessage(rest[:stated], size))
		at += stated
	}
	return nil
}

func readMessage(b []byte, size int) Message {
	after := b[4+size:]
	return Message{
		Type: b[0], VTime: b[1], Originator: readAddr(b[4:], size),
		TTL: after[0], HopCount: after[1], Seq: binary.BigEndian.Uint16(after[2:]), Body: after[4:],
	}
}

func readAddr(b []byte, size int) netip.Addr {
	if size == 4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16([16]byte(b[:16]))
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		four := a.As4()
		return append(b, four[:]...)
	}
	sixteen := a.As16()
	return append(b, sixteen[:]...)
}

// AppendMessage writes a message behind b.
func AppendMessage(b []byte, m Message) []byte {
	at := len(b)
	b = append(b, m.Type, m.VTime, 0, 0)
	b = appendAddr(b, m.Originator)
	b = append(b, m.TTL, m.HopCount)
	b = binary.BigEndian.AppendUint16(b, m.Seq)
	b = append(b, m.Body...)
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// Marshal writes a packet.
func (p Packet) Marshal() ([]byte, error) {
	b := make([]byte, packetHeader)
	binary.BigEndian.PutUint16(b[2:], p.Seq)
	for _, m := range p.Messages {
		b = AppendMessage(b, m)
	}
	if len(b) > maxPacketLength {
		return nil, fmt.Errorf("write OLSR packet: %d bytes do not fit the length field", len(b))
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)))
	return b, nil
}

// ParseHello reads the body of a HELLO or, with quality, of olsrd's LQ_HELLO.
func ParseHello(body []byte, size int, quality bool) (Hello, error) {
	if len(body) < helloHeader {
		return Hello{}, malformed("a HELLO of %d bytes", len(body))
	}
	h := Hello{HTime: body[2], Willingness: body[3]}
	for rest := body[helloHeader:]; len(rest) > 0; {
		if len(rest) < linkHeader {
			return Hello{}, malformed("%d bytes left are no link message", len(rest))
		}
		stated := int(binary.BigEndian.Uint16(rest[2:]))
		if stated < linkHeader || stated > len(rest) {
			return Hello{}, malformed("a link message says %d bytes of %d", stated, len(rest))
		}
		addresses, err := parseNeighbors(rest[linkHeader:stated], size, quality)
		if err != nil {
			return Hello{}, err
		}
		// Section 6.1.1: the link code's upper four bits are reserved.
		h.Links = append(h.Links, Links{Link: rest[0] & 3, Neighbor: rest[0] >> 2 & 3, Addresses: addresses})
		rest = rest[stated:]
	}
	return h, nil
}

func parseNeighbors(b []byte, size int, quality bool) ([]Neighbor, error) {
	each := size
	if quality {
		each += qualityBytes
	}
	if len(b)%each != 0 {
		return nil, malformed("%d bytes are no list of neighbours", len(b))
	}
	out := make([]Neighbor, 0, len(b)/each)
	for ; len(b) > 0; b = b[each:] {
		n := Neighbor{Addr: readAddr(b, size)}
		if quality {
			n.Quality = Quality{LQ: b[size], NLQ: b[size+1]}
		}
		out = append(out, n)
	}
	return out, nil
}

func appendNeighbors(b []byte, neighbors []Neighbor, quality bool) []byte {
	for _, n := range neighbors {
		b = appendAddr(b, n.Addr)
		if quality {
			b = append(b, n.Quality.LQ, n.Quality.NLQ, 0, 0)
		}
	}
	return b
}

// Marshal writes the body of a HELLO or LQ_HELLO.
func (h Hello) Marshal(quality bool) []byte {
	b := []byte{0, 0, h.HTime, h.Willingness}
	for _, l := range h.Links {
		at := len(b)
		b = append(b, l.Neighbor<<2|l.Link, 0, 0, 0)
		b = appendNeighbors(b, l.Addresses, quality)
		binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	}
	return b
}

// ParseTC reads the body of a TC or LQ_TC.
func ParseTC(body []byte, size int, quality bool) (TC, error) {
	if len(body) < tcHeader {
		return TC{}, malformed("a TC of %d bytes", len(body))
	}
	neighbors, err := parseNeighbors(body[tcHeader:], size, quality)
	if err != nil {
		return TC{}, err
	}
	return TC{ANSN: binary.BigEndian.Uint16(body), Border: binary.BigEndian.Uint16(body[2:]), Neighbors: neighbors}, nil
}

// Marshal writes the body of a TC or LQ_TC.
func (t TC) Marshal(quality bool) []byte {
	b := binary.BigEndian.AppendUint16(nil, t.ANSN)
	b = binary.BigEndian.AppendUint16(b, t.Border)
	return appendNeighbors(b, t.Neighbors, quality)
}

// ParseMID reads the body of a MID: the originator's further addresses
// (section 5.1).
func ParseMID(body []byte, size int) ([]netip.Addr, error) {
	if len(body)%size != 0 {
		return nil, malformed("a MID of %d bytes", len(body))
	}
	var out []netip.Addr
	for ; len(body) > 0; body = body[size:] {
		out = append(out, readAddr(body, size))
	}
	return out, nil
}

// MarshalMID writes the body of a MID.
func MarshalMID(addresses []netip.Addr) []byte {
	var b []byte
	for _, a := range addresses {
		b = appendAddr(b, a)
	}
	return b
}

// ParseHNA reads the body of an HNA: networks behind the originator (section
// 12.1). A netmask with a hole makes the message malformed.
func ParseHNA(body []byte, size int) ([]netip.Prefix, error) {
	if len(body)%(2*size) != 0 {
		return nil, malformed("an HNA of %d bytes", len(body))
	}
	var out []netip.Prefix
	for ; len(body) > 0; body = body[2*size:] {
		bits, ok := maskBits(body[size : 2*size])
		if !ok {
			return nil, malformed("an HNA with netmask %x", body[size:2*size])
		}
		out = append(out, netip.PrefixFrom(readAddr(body, size), bits).Masked())
	}
	return out, nil
}

func maskBits(mask []byte) (int, bool) {
	bits, ended := 0, false
	for _, b := range mask {
		for i := 7; i >= 0; i-- {
			one := b>>i&1 == 1
			if one && ended {
				return 0, false
			}
			if one {
				bits++
			} else {
				ended = true
			}
		}
	}
	return bits, true
}

// MarshalHNA writes the body of an HNA.
func MarshalHNA(networks []netip.Prefix) []byte {
	var b []byte
	for _, n := range networks {
		b = appendAddr(b, n.Addr())
		mask := make([]byte, n.Addr().BitLen()/8)
		for i := range n.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		b = append(b, mask...)
	}
	return b
}

// timeUnit is the scaling factor C of section 18.3, 1/16 s, over the mantissa's
// 16: an encoded time is (16 + a) · 2^b of it.
const timeUnit = time.Second / 256

// DecodeTime is the duration of an encoded time (section 3.3.2).
func DecodeTime(code uint8) time.Duration {
	return (16 + time.Duration(code>>4)) << (code & 15) * timeUnit
}

// EncodeTime is the shortest encodable time not below d, at most the longest
// there is, 3968 s.
func EncodeTime(d time.Duration) uint8 {
	for exponent := range uint8(16) {
		unit := timeUnit << exponent
		mantissa := max((d+unit-1)/unit, 16) - 16
		if mantissa < 16 {
			return uint8(mantissa)<<4 | exponent
		}
	}
	return 0xff
}
