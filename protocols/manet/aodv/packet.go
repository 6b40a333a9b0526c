// Package aodv is Ad hoc On-Demand Distance Vector routing, RFC 3561, as a pure
// state machine. Sockets, clocks, kernel routes and the buffer of packets that
// wait for a route stay outside.
package aodv

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Port is AODV's UDP port (RFC 3561 section 3).
const Port = signalling.PortAODV

// Message types: sections 5.1 to 5.4.
const (
	TypeRREQ    = 1
	TypeRREP    = 2
	TypeRERR    = 3
	TypeRREPAck = 4
)

// Lengths in bytes.
const (
	rreqBytes    = 24
	rrepBytes    = 20
	rerrHeader   = 4
	rerrEach     = 8
	rrepAckBytes = 2
	maxRERR      = 255 // destinations: the count is one byte
	extHeader    = 2   // type and length of an extension (section 9)
)

// Extensions (section 9). Of those that are not known the types below 128 are
// skipped and the others make the message malformed, as there. FirstHop is
// AOMDV's; no number is assigned, ours is one that other nodes skip.
const (
	ExtFirstHop  = 64
	extMandatory = 128
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w AODV packet: %s", manet.ErrMalformed, fmt.Sprintf(format, args...))
}

// RREQ asks for a route (section 5.1).
type RREQ struct {
	Join, Repair    bool // for multicast; carried, not acted upon
	Gratuitous      bool
	DestinationOnly bool
	UnknownSeq      bool
	HopCount        uint8
	ID              uint32
	Destination     netip.Addr
	DestinationSeq  uint32
	Originator      netip.Addr
	OriginatorSeq   uint32
	FirstHop        netip.Addr // of AOMDV: the originator's neighbour that it came over; not valid: not told
}

// RREP tells a route (section 5.2). A HELLO is one that reports its sender.
type RREP struct {
	Repair         bool // for multicast; carried, not acted upon
	AckWanted      bool
	PrefixBits     uint8 // 0: a host
	HopCount       uint8
	Destination    netip.Addr
	DestinationSeq uint32
	Originator     netip.Addr
	Lifetime       time.Duration // in whole milliseconds on the air
	FirstHop       netip.Addr    // of AOMDV: the destination's neighbour on the way; not valid: not told
}

// Unreachable is a destination that can no longer be reached.
type Unreachable struct {
	Destination netip.Addr
	Seq         uint32
}

// RERR reports destinations that can no longer be reached (section 5.3).
type RERR struct {
	NoDelete     bool
	Destinations []Unreachable
}

// RREPAck answers an RREP that asked for it (section 5.4).
type RREPAck struct{}

// Message is one of RREQ, RREP, RERR and RREPAck.
type Message interface{ Marshal() []byte }

func flag(b byte, on bool) byte {
	if on {
		return b
	}
	return 0
}

// Marshal writes the message.
func (m RREQ) Marshal() []byte {
	flags := flag(0x80, m.Join) | flag(0x40, m.Repair) | flag(0x20, m.Gratuitous) | flag(0x10,
		m.DestinationOnly) | flag(0x08, m.UnknownSeq)
	b := make([]byte, 0, rreqBytes)
	b = append(b, TypeRREQ, flags, 0, m.HopCount)
	b = binary.BigEndian.AppendUint32(b, m.ID)
	b = appendAddr(b, m.Destination)
	b = binary.BigEndian.AppendUint32(b, m.DestinationSeq)
	b = appendAddr(b, m.Originator)
	return appendFirstHop(binary.BigEndian.AppendUint32(b, m.OriginatorSeq), m.FirstHop)
}

// Marshal writes the message.
func (m RREP) Marshal() []byte {
	b := make([]byte, 0, rrepBytes)
	b = append(b, TypeRREP, flag(0x80, m.Repair)|flag(0x40, m.AckWanted), m.PrefixBits&0x1f, m.HopCount)
	b = appendAddr(b, m.Destination)
	b = binary.BigEndian.AppendUint32(b, m.DestinationSeq)
	b = appendAddr(b, m.Originator)
	return appendFirstHop(binary.BigEndian.AppendUint32(b, uint32(max(0, min(m.Lifetime.Milliseconds(), 1<<32-1)))),
		m.FirstHop)
}

func appendFirstHop(b []byte, hop netip.Addr) []byte {
	if !hop.IsValid() {
		return b
	}
	return appendAddr(append(b, ExtFirstHop, 4), hop)
}

// firstHop reads the extensions that follow a message of a length.
func firstHop(message []byte, length int, name string) (hop netip.Addr, err error) {
	if len(message) < length {
		return hop, malformed("%s of %d bytes", name, len(message))
	}
	b := message[length:]
	for len(b) > 0 {
		if len(b) < extHeader || len(b) < extHeader+int(b[1]) {
			return hop, malformed("an extension of %d bytes", len(b))
		}
		data := b[extHeader : extHeader+int(b[1])]
		switch {
		case b[0] == ExtFirstHop && len(data) == 4:
			hop = readAddr(data)
		case b[0] == ExtFirstHop || b[0] >= extMandatory:
			return hop, malformed("an extension of type %d with %d bytes", b[0], len(data))
		}
		b = b[extHeader+len(data):]
	}
	return hop, nil
}

// Marshal writes the message; at most 255 destinations fit, the rest is left
// to another message.
func (m RERR) Marshal() []byte {
	list := m.Destinations[:min(len(m.Destinations), maxRERR)]
	b := []byte{TypeRERR, flag(0x80, m.NoDelete), 0, byte(len(list))}
	for _, u := range list {
		b = appendAddr(b, u.Destination)
		b = binary.BigEndian.AppendUint32(b, u.Seq)
	}
	return b
}

// Marshal writes the message.
func (RREPAck) Marshal() []byte { return []byte{TypeRREPAck, 0} }

func appendAddr(b []byte, a netip.Addr) []byte {
	four := a.As4()
	return append(b, four[:]...)
}

func readAddr(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[:4])) }

// Parse reads a message, which fills its datagram with its extensions.
func Parse(b []byte) (Message, error) {
	if len(b) < rrepAckBytes {
		return nil, malformed("%d bytes", len(b))
	}
	switch b[0] {
	case TypeRREQ:
		return parseRREQ(b)
	case TypeRREP:
		return parseRREP(b)
	case TypeRERR:
		return parseRERR(b)
	case TypeRREPAck:
		if len(b) != rrepAckBytes {
			return nil, malformed("an RREP-ACK of %d bytes", len(b))
		}
		return RREPAck{}, nil
	}
	return nil, malformed("type %d", b[0])
}

func parseRREQ(b []byte) (Message, error) {
	hop, err := firstHop(b, rreqBytes, "an RREQ")
	if err != nil {
		return nil, err
	}
	return RREQ{
		Join: b[1]&0x80 != 0, Repair: b[1]&0x40 != 0, Gratuitous: b[1]&0x20 != 0, DestinationOnly: b[1]&0x10 != 0,
		UnknownSeq: b[1]&0x08 != 0,
		HopCount:   b[3], ID: binary.BigEndian.Uint32(b[4:]),
		Destination: readAddr(b[8:]), DestinationSeq: binary.BigEndian.Uint32(b[12:]),
		Originator: readAddr(b[16:]), OriginatorSeq: binary.BigEndian.Uint32(b[20:]), FirstHop: hop,
	}, nil
}

func parseRREP(b []byte) (Message, error) {
	hop, err := firstHop(b, rrepBytes, "an RREP")
	if err != nil {
		return nil, err
	}
	return RREP{
		Repair: b[1]&0x80 != 0, AckWanted: b[1]&0x40 != 0, PrefixBits: b[2] & 0x1f, HopCount: b[3],
		Destination: readAddr(b[4:]), DestinationSeq: binary.BigEndian.Uint32(b[8:]), Originator: readAddr(b[12:]),
		Lifetime: time.Duration(binary.BigEndian.Uint32(b[16:])) * time.Millisecond, FirstHop: hop,
	}, nil
}

func parseRERR(b []byte) (Message, error) {
	if len(b) < rerrHeader || b[3] == 0 || len(b) != rerrHeader+int(b[3])*rerrEach {
		return nil, malformed("an RERR of %d bytes", len(b))
	}
	m := RERR{NoDelete: b[1]&0x80 != 0}
	for rest := b[rerrHeader:]; len(rest) > 0; rest = rest[rerrEach:] {
		m.Destinations = append(m.Destinations, Unreachable{readAddr(rest), binary.BigEndian.Uint32(rest[4:])})
	}
	return m, nil
}

func kind(m Message) string {
	switch m := m.(type) {
	case RREQ:
		return "RREQ"
	case RREP:
		if m.Destination == m.Originator {
			return "HELLO"
		}
		return "RREP"
	case RERR:
		return "RERR"
	}
	return "RREP-ACK"
}
