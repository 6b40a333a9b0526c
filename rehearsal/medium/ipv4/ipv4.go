// Package ipv4 tells what the IPv4 packet in a frame is of: its flow, its number
// and how much data it carries. Of a packet its beginning is enough.
package ipv4

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

var order = binary.BigEndian

// EtherType is that of IPv4 (IEEE 802 numbers, IANA).
const EtherType = 0x0800

const (
	etherBytes  = 14
	headerBytes = 20

	protocolICMP = 1
	protocolTCP  = 6
	protocolUDP  = 17

	udpHeaderBytes, tcpHeaderBytes = 8, 20
)

// Flow reads an IPv4 header (RFC 791) and the ports of TCP and UDP (RFC 9293, RFC 768), also where
// DSR carries them. Whatever is not there is not told.
func Flow(ip []byte) (flow string, seq uint32) {
	src, dst := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	seq = uint32(order.Uint16(ip[4:6]))
	protocol, body, _ := carried(ip)
	name := strconv.Itoa(int(protocol))
	switch protocol {
	case protocolICMP:
		name = "icmp"
	case protocolTCP:
		name = "tcp"
	case protocolUDP:
		name = "udp"
	}
	ports := protocol == protocolTCP || protocol == protocolUDP
	if !ports || len(body) < 8 {
		return src.String() + ">" + dst.String() + "/" + name, seq
	}
	if protocol == protocolTCP {
		seq = order.Uint32(body[4:8])
	}
	from := netip.AddrPortFrom(src, order.Uint16(body[0:2]))
	to := netip.AddrPortFrom(dst, order.Uint16(body[2:4]))
	return from.String() + ">" + to.String() + "/" + name, seq
}

// Payload is how many bytes an IPv4 packet has behind the header of TCP or UDP:
// 0 for DSR's own, which carry nothing, and -1 for all others and where the
// headers are not there to tell.
func Payload(ip []byte) int {
	protocol, body, length := carried(ip)
	switch {
	case protocol == signalling.ProtocolDSR && length == 0:
		return 0
	case protocol == protocolUDP && length >= udpHeaderBytes:
		return length - udpHeaderBytes
	case protocol == protocolTCP && len(body) >= tcpHeaderBytes:
		return max(length-4*int(body[12]>>4), -1)
	}
	return -1
}

// IsBareACK reports whether an IPv4 packet, or the one in a packet of DSR, is TCP's that
// acknowledges and carries no data.
func IsBareACK(ip []byte) bool {
	const ack = 0x10 // RFC 9293, 3.1
	protocol, body, _ := carried(ip)
	return protocol == protocolTCP && len(body) >= tcpHeaderBytes && body[13]&ack != 0 && Payload(ip) == 0
}

// IsDSR reports whether an IPv4 packet is one of DSR, with data or without.
func IsDSR(ip []byte) bool { return ip[9] == signalling.ProtocolDSR }

// carried is the protocol of what an IPv4 packet carries, behind the header of DSR if it has one, as
// much of it as there is, and how many bytes it is long: less than 0 where the headers do not tell.
func carried(ip []byte) (protocol byte, body []byte, length int) {
	header := 4 * int(ip[0]&15)
	length = int(order.Uint16(ip[2:4])) - header
	if order.Uint16(ip[6:8])&0x1fff != 0 || len(ip) < header || length < 0 {
		return ip[9], nil, -1
	}
	protocol, body = ip[9], ip[header:]
	if protocol == signalling.ProtocolDSR && len(body) >= 4 {
		share := signalling.InIP(protocol, body)
		if share.Whole {
			return protocol, nil, 0
		}
		return body[0], body[min(share.Header, len(body)):], length - share.Header
	}
	return protocol, body, length
}

// In returns the IPv4 packet in an Ethernet frame, if there is one.
func In(ethernet []byte) ([]byte, bool) {
	if len(ethernet) < etherBytes || order.Uint16(ethernet[12:14]) != EtherType {
		return nil, false
	}
	ip := ethernet[etherBytes:]
	return ip, Is(ip)
}

// Source returns the source address of the IPv4 packet in an Ethernet frame, if
// there is one.
func Source(ethernet []byte) (addr [4]byte, ok bool) {
	ip, ok := In(ethernet)
	if ok {
		addr = [4]byte(ip[12:16])
	}
	return addr, ok
}

// Is reports whether a packet begins with a header of IPv4.
func Is(ip []byte) bool {
	return len(ip) >= headerBytes && ip[0]>>4 == 4 && ip[0]&15 >= headerBytes/4
}
