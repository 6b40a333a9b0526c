package packets

import (
	"encoding/binary"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// header is what a frame's headers say, as far as anything here needs it.
type header struct {
	above        bool // it was seen on the device above the interface
	ethertype    uint16
	protocol     uint8 // of IP; 0 when it is not IP
	src, dst     netip.Addr
	ipID         uint16 // 0 for IPv6
	bytes        int    // the packet behind the link's header
	share        signalling.Share
	sport, dport uint16
	seq, ack     uint32
	flags        uint8
	payload      int    // bytes on the wire behind TCP's or UDP's header
	data         []byte // of those, what was captured
}

// TCP's flags (RFC 9293, 3.1).
const (
	flagFIN = 1
	flagSYN = 2
	flagACK = 16
)

// Numbers of IEEE 802 and IANA.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherIPv6 = 0x86dd
	protoTCP  = 6

	etherBytes = 14
)

var order = binary.BigEndian

// decode reads an Ethernet frame's headers into h; false when it is cut before
// they end, or is not Ethernet's.
func (h *header) decode(b []byte, wireBytes int) bool {
	*h = header{}
	if len(b) < etherBytes {
		return false
	}
	h.ethertype, h.bytes = order.Uint16(b[12:]), wireBytes-etherBytes
	switch b = b[etherBytes:]; h.ethertype {
	case etherIPv4:
		return h.ipv4(b)
	case etherIPv6:
		return h.ipv6(b)
	case signalling.EtherBatman:
		h.share = signalling.InBatman(b)
		return len(b) > 0
	}
	return true
}

// decodeIP is decode of a bare IP packet.
func (h *header) decodeIP(b []byte) bool {
	*h = header{}
	if len(b) > 0 && b[0]>>4 == 6 {
		h.ethertype = etherIPv6
		return h.ipv6(b)
	}
	h.ethertype = etherIPv4
	return h.ipv4(b)
}

func (h *header) ipv4(b []byte) bool {
	if len(b) < 20 || b[0]>>4 != 4 {
		return false
	}
	n := int(b[0]&15) * 4
	h.bytes, h.ipID, h.protocol = int(order.Uint16(b[2:])), order.Uint16(b[4:]), b[9]
	h.src, h.dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if order.Uint16(b[6:])&0x1fff != 0 { // a later fragment
		return true
	}
	if n < 20 || len(b) < n || h.bytes < n {
		return false
	}
	h.share = signalling.InIP(h.protocol, b[n:])
	return h.transport(b[n:], h.bytes-n)
}

func (h *header) ipv6(b []byte) bool {
	if len(b) < 40 || b[0]>>4 != 6 {
		return false
	}
	h.protocol = b[6]
	h.src, h.dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	bytes := int(order.Uint16(b[4:]))
	h.bytes, h.share = 40+bytes, signalling.InIP(h.protocol, b[40:])
	return h.transport(b[40:], bytes)
}

// transport reads TCP's or UDP's header out of an IP packet's bytes.
func (h *header) transport(b []byte, bytes int) bool {
	switch h.protocol {
	case protoTCP:
		if len(b) < 20 {
			return false
		}
		n := int(b[12]>>4) * 4
		if n < 20 || n > bytes {
			return false
		}
		h.sport, h.dport = order.Uint16(b), order.Uint16(b[2:])
		h.seq, h.ack, h.flags = order.Uint32(b[4:]), order.Uint32(b[8:]), b[13]
		h.payload, h.data = bytes-n, b[min(n, len(b)):]
	case signalling.ProtocolUDP:
		if len(b) < 8 || bytes < 8 {
			return false
		}
		h.sport, h.dport = order.Uint16(b), order.Uint16(b[2:])
		h.payload, h.data = bytes-8, b[8:]
	case signalling.ProtocolDSR:
		return h.carried(b, bytes)
	}
	return true
}

// carried reads what DSR carries: its options, then the packet's own transport
// header (RFC 4728, 6.1). Packets with data are the traffic's.
func (h *header) carried(b []byte, bytes int) bool {
	if len(b) < 4 {
		return false
	}
	if h.share.Whole {
		return true
	}
	n := h.share.Header
	if b[0] == signalling.ProtocolDSR || n > bytes || n > len(b) {
		return false
	}
	h.protocol = b[0]
	return h.transport(b[n:], bytes-n)
}

// routing is how many bytes of the packet are a routing protocol's.
func (h *header) routing() int {
	if h.share.Whole {
		return h.bytes
	}
	return h.share.Header
}
