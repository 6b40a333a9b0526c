// Package dsr is the Dynamic Source Routing protocol for IPv4, RFC 4728, as a
// pure state machine that carries data itself (a carrier of package manet).
// Sockets, clocks and the interface stay outside; so does the optional flow
// state extension of the RFC's sections 3.5, 5, 7 and 8.6.
package dsr

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Protocol is DSR's IP protocol number (RFC 4728 section 11).
const Protocol = signalling.ProtocolDSR

// Option types (sections 6.2 to 6.9). The three highest bits say what a node
// does with one that it does not know (8.1.6).
const (
	TypePadN         = 0
	TypeRouteRequest = 1
	TypeRouteReply   = 2
	TypeRouteError   = 3
	TypeAck          = 32
	TypeSourceRoute  = 96
	TypeAckRequest   = 160
	TypePad1         = 224
)

// Error types of a Route Error (section 6.4).
const (
	NodeUnreachable       = 1
	FlowStateNotSupported = 2
	OptionNotSupported    = 3
)

// Sizes in bytes, and the next header that says that nothing follows.
const (
	fixedBytes   = 4
	requestBytes = 6 // of an option's data, before its addresses
	errorBytes   = 10
	noNextHeader = signalling.NoNextHeader
	// maxAddresses is what fits into an option's length of a byte behind the
	// request's fields, and into the six bits of Segments Left.
	maxAddresses = (255 - requestBytes) / 4
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w DSR packet: %s", manet.ErrMalformed, fmt.Sprintf(format, args...))
}

// Option is one of the types below; padding is not kept.
type Option interface {
	append(b []byte) []byte
	kind() string
}

// RouteRequest asks for a route to Target; Route is the nodes it came through
// so far, the initiator apart (section 6.2).
type RouteRequest struct {
	ID     uint16
	Target netip.Addr
	Route  []netip.Addr
}

// RouteReply tells its packet's destination a route from there: all nodes after
// it, the target last (section 6.3).
type RouteReply struct {
	LastExternal bool
	Route        []netip.Addr
}

// RouteError tells Destination that Source could not hand a packet on (section
// 6.4). Unreachable is of type NodeUnreachable, Unsupported of
// OptionNotSupported.
type RouteError struct {
	Type        uint8
	Salvage     uint8 // 0 to 15
	Source      netip.Addr
	Destination netip.Addr
	Unreachable netip.Addr
	Unsupported uint8
}

// AckRequest asks the next hop for an Ack (section 6.5).
type AckRequest struct{ ID uint16 }

// Ack answers an AckRequest (section 6.6).
type Ack struct {
	ID                  uint16
	Source, Destination netip.Addr
}

// SourceRoute is the path of its packet (section 6.7). Route is the nodes
// between the packet's source and its destination or, when Salvage is not 0,
// between the first of them, which salvaged it, and the destination.
// SegmentsLeft counts the nodes of Route that the packet has not reached yet.
type SourceRoute struct {
	FirstExternal, LastExternal bool
	Salvage                     uint8 // 0 to 15
	SegmentsLeft                uint8 // 0 to 63
	Route                       []netip.Addr
}

// Unknown is an option of a type that is not RFC 4728's own, or an extension's.
type Unknown struct {
	Type uint8
	Data []byte
}

// Header is a DSR Options header (section 6.1).
type Header struct {
	Next    uint8 // IP protocol number of what follows
	Options []Option
}

// Marshal writes the header, padded to a multiple of four bytes (6.8).
func (h *Header) Marshal() []byte {
	b := make([]byte, fixedBytes, 64)
	b[0] = h.Next
	for _, o := range h.Options {
		b = o.append(b)
	}
	b = appendPadding(b, -len(b)&3)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-fixedBytes))
	return b
}

func appendPadding(b []byte, n int) []byte {
	switch n {
	case 0:
		return b
	case 1:
		return append(b, TypePad1)
	}
	b = append(b, TypePadN, byte(n-2))
	return append(b, make([]byte, n-2)...)
}

func (o RouteRequest) append(b []byte) []byte {
	b = append(b, TypeRouteRequest, byte(requestBytes+4*len(o.Route)))
	b = binary.BigEndian.AppendUint16(b, o.ID)
	return appendAddrs(appendAddr(b, o.Target), o.Route)
}

func (o RouteReply) append(b []byte) []byte {
	b = append(b, TypeRouteReply, byte(1+4*len(o.Route)), flag(0x80, o.LastExternal))
	return appendAddrs(b, o.Route)
}

func (o RouteError) append(b []byte) []byte {
	at := len(b) + 1
	b = append(b, TypeRouteError, 0, o.Type, o.Salvage&15)
	b = appendAddr(appendAddr(b, o.Source), o.Destination)
	switch o.Type {
	case NodeUnreachable:
		b = appendAddr(b, o.Unreachable)
	case OptionNotSupported:
		b = append(b, o.Unsupported)
	}
	b[at] = byte(len(b) - at - 1)
	return b
}

func (o AckRequest) append(b []byte) []byte {
	return binary.BigEndian.AppendUint16(append(b, TypeAckRequest, 2), o.ID)
}

func (o Ack) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, TypeAck, 10), o.ID)
	return appendAddr(appendAddr(b, o.Source), o.Destination)
}

func (o SourceRoute) append(b []byte) []byte {
	b = append(b, TypeSourceRoute, byte(2+4*len(o.Route)))
	b = binary.BigEndian.AppendUint16(b, uint16(flag(0x80, o.FirstExternal)|flag(0x40, o.LastExternal))<<8|
		uint16(o.Salvage&15)<<6|uint16(o.SegmentsLeft&63))
	return appendAddrs(b, o.Route)
}

func (o Unknown) append(b []byte) []byte {
	return append(append(b, o.Type, byte(len(o.Data))), o.Data...)
}

func (RouteRequest) kind() string { return "RREQ" }
func (RouteReply) kind() string   { return "RREP" }
func (RouteError) kind() string   { return "RERR" }
func (AckRequest) kind() string   { return "ACKREQ" }
func (Ack) kind() string          { return "ACK" }
func (SourceRoute) kind() string  { return "SR" }
func (Unknown) kind() string      { return "unknown" }

func flag(b byte, on bool) byte {
	if on {
		return b
	}
	return 0
}

func appendAddr(b []byte, a netip.Addr) []byte {
	four := a.As4()
	return append(b, four[:]...)
}

func appendAddrs(b []byte, list []netip.Addr) []byte {
	for _, a := range list {
		b = appendAddr(b, a)
	}
	return b
}

func readAddr(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[:4])) }

func readAddrs(b []byte) []netip.Addr {
	list := make([]netip.Addr, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		list = append(list, readAddr(b))
	}
	return list
}

// Parse reads the header at the start of what follows an IP header, and says
// how many bytes it takes.
func Parse(b []byte) (Header, int, error) {
	if len(b) < fixedBytes {
		return Header{}, 0, malformed("%d bytes", len(b))
	}
	if b[1]&0x80 != 0 {
		return Header{}, 0, malformed("a flow state header")
	}
	size := fixedBytes + int(binary.BigEndian.Uint16(b[2:]))
	if size > len(b) {
		return Header{}, 0, malformed("options of %d bytes in a packet of %d", size, len(b))
	}
	h := Header{Next: b[0]}
	for rest := b[fixedBytes:size]; len(rest) > 0; {
		if rest[0] == TypePad1 {
			rest = rest[1:]
			continue
		}
		if len(rest) < 2 || len(rest) < 2+int(rest[1]) {
			return Header{}, 0, malformed("an option of type %d is cut short", rest[0])
		}
		data := rest[2 : 2+int(rest[1])]
		o, err := parseOption(rest[0], data)
		if err != nil {
			return Header{}, 0, err
		}
		if o != nil {
			h.Options = append(h.Options, o)
		}
		rest = rest[2+len(data):]
	}
	return h, size, nil
}

func parseOption(kind uint8, data []byte) (Option, error) {
	switch kind {
	case TypePadN:
		return nil, nil
	case TypeRouteRequest:
		if len(data) < requestBytes || len(data)%4 != requestBytes%4 {
			break
		}
		return RouteRequest{ID: binary.BigEndian.Uint16(data), Target: readAddr(data[2:]), Route: readAddrs(data[6:])},
			nil
	case TypeRouteReply:
		if len(data) < 5 || len(data)%4 != 1 {
			break
		}
		return RouteReply{LastExternal: data[0]&0x80 != 0, Route: readAddrs(data[1:])}, nil
	case TypeRouteError:
		return parseError(data)
	case TypeAckRequest:
		if len(data) < 2 { // the flow state extension may add an address (7.3)
			break
		}
		return AckRequest{ID: binary.BigEndian.Uint16(data)}, nil
	case TypeAck:
		if len(data) != 10 {
			break
		}
		return Ack{ID: binary.BigEndian.Uint16(data), Source: readAddr(data[2:]), Destination: readAddr(data[6:])}, nil
	case TypeSourceRoute:
		return parseSourceRoute(data)
	default:
		return Unknown{Type: kind, Data: append([]byte(nil), data...)}, nil
	}
	return nil, malformed("%d bytes in an option of type %d", len(data), kind)
}

func parseError(data []byte) (Option, error) {
	if len(data) < errorBytes {
		return nil, malformed("a Route Error of %d bytes", len(data))
	}
	o := RouteError{Type: data[0], Salvage: data[1] & 15, Source: readAddr(data[2:]), Destination: readAddr(data[6:])}
	rest := data[errorBytes:] // beyond the type's own there may be extensions
	switch {
	case o.Type == NodeUnreachable && len(rest) >= 4:
		o.Unreachable = readAddr(rest)
	case o.Type == OptionNotSupported && len(rest) >= 1:
		o.Unsupported = rest[0]
	case o.Type == NodeUnreachable || o.Type == OptionNotSupported:
		return nil, malformed("a Route Error of type %d and %d bytes", o.Type, len(data))
	}
	return o, nil
}

func parseSourceRoute(data []byte) (Option, error) {
	if len(data) < 2 || len(data)%4 != 2 {
		return nil, malformed("a source route of %d bytes", len(data))
	}
	fields := binary.BigEndian.Uint16(data)
	return SourceRoute{FirstExternal: fields&0x8000 != 0, LastExternal: fields&0x4000 != 0,
		Salvage: uint8(fields >> 6 & 15), SegmentsLeft: uint8(fields & 63), Route: readAddrs(data[2:])}, nil
}

// find gives the first option of a type.
func find[T Option](h *Header) (T, bool) {
	for _, o := range h.Options {
		if found, ok := o.(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}
