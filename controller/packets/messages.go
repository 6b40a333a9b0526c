package packets

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// MessageCount is how many messages of a type there were, and their bytes with
// their own headers.
type MessageCount struct{ N, Bytes uint64 }

// olsrTypes are the message types of RFC 3626, 18.4, and olsrd's for its link
// qualities.
var olsrTypes = map[byte]string{1: "HELLO", 2: "TC", 3: "MID", 4: "HNA", 201: "HELLO", 202: "TC"}

// babelTypes are the TLVs of RFC 8966, 4.6.
var babelTypes = []string{"Pad1", "PadN", "Acknowledgment Request", "Acknowledgment", "Hello", "IHU", "Router-Id",
	"Next Hop", "Update",
	"Route Request", "Seqno Request"}

// aodvTypes are those of RFC 3561, 5.
var aodvTypes = map[byte]string{1: "RREQ", 2: "RREP", 3: "RERR", 4: "RREP-ACK"}

// messages tells the types of the messages in a routing packet and their
// lengths. Whole is false when the packet, or the capture of it, ends within a
// message; those before it were told.
func (h *header) messages(told func(kind string, bytes int)) (whole bool) {
	on := func(port uint16) bool {
		return h.protocol == signalling.ProtocolUDP && slices.Contains([]uint16{h.sport, h.dport}, port)
	}
	body := h.data[:min(len(h.data), h.payload)]
	switch {
	case on(signalling.PortOLSR):
		return olsrMessages(body, h.payload, told)
	case on(signalling.PortBabel):
		return babelMessages(body, h.payload, told)
	case on(signalling.PortAODV):
		return aodvMessage(body, h.payload, told)
	}
	return true // of a protocol whose messages are not told apart
}

// olsrMessages: length and sequence number of the packet, then messages, each
// with its type, a validity time and its length (RFC 3626, 3.3).
func olsrMessages(b []byte, bytes int, told func(string, int)) bool {
	at := 4
	for at+4 <= len(b) {
		size := int(order.Uint16(b[at+2:]))
		if size < 4 || at+size > bytes {
			return false
		}
		told(nameOf(olsrTypes[b[at]]), size)
		at += size
	}
	return at == bytes
}

// babelMessages: a magic number, the version, the length of the body, then
// TLVs; what follows the body is not counted (RFC 8966, 4.2).
func babelMessages(b []byte, bytes int, told func(string, int)) bool {
	if len(b) < 4 || b[0] != 42 || b[1] != 2 {
		return false
	}
	end := 4 + int(order.Uint16(b[2:]))
	for at := 4; at < end; {
		if at >= len(b) {
			return false
		}
		kind, size := b[at], 1
		if kind != 0 { // Pad1 is one byte
			if at+2 > len(b) {
				return false
			}
			size = 2 + int(b[at+1])
		}
		if at+size > min(end, bytes) { // a body may claim more than the packet has
			return false
		}
		name := ""
		if int(kind) < len(babelTypes) {
			name = babelTypes[kind]
		}
		told(nameOf(name), size)
		at += size
	}
	return true
}

// aodvMessage: a packet is one message.
func aodvMessage(b []byte, bytes int, told func(string, int)) bool {
	if len(b) == 0 {
		return false
	}
	told(nameOf(aodvTypes[b[0]]), bytes)
	return true
}

func nameOf(known string) string {
	if known == "" {
		return "other"
	}
	return known
}
