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
)

// Flow reads an IPv4 header (RFC 791) and the ports of TCP and UDP (RFC 9293,
// RFC 768). Whatever is not there is not told.
func Flow(ip []byte) (flow string, seq uint32) {
	src, dst := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	seq = uint32(order.Uint16(ip[4:6]))
	name := strconv.Itoa(int(ip[9]))
	switch ip[9] {
	case protocolICMP:
		name = "icmp"
	case protocolTCP:
		name = "tcp"
	case protocolUDP:
		name = "udp"
	}
	laterFragment := order.Uint16(ip[6:8])&0x1fff != 0
	body := ip[min(len(ip), 4*int(ip[0]&15)):]
	ports := ip[9] == protocolTCP || ip[9] == protocolUDP
	if !ports || laterFragment || len(body) < 8 {
		return src.String() + ">" + dst.String() + "/" + name, seq
	}
	if ip[9] == protocolTCP {
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
	protocol, header := ip[9], 4*int(ip[0]&15)
	length := int(order.Uint16(ip[2:4])) - header
	if order.Uint16(ip[6:8])&0x1fff != 0 || len(ip) < header || length < 0 {
		return -1
	}
	body := ip[header:]
	if protocol == signalling.ProtocolDSR && len(body) >= 4 {
		share := signalling.InIP(protocol, body)
		if share.Whole {
			return 0
		}
		protocol, body, length = body[0], body[min(share.Header, len(body)):], length-share.Header
	}
	const udpHeaderBytes, tcpHeaderBytes = 8, 20
	switch {
	case protocol == protocolUDP && length >= udpHeaderBytes:
		return length - udpHeaderBytes
	case protocol == protocolTCP && len(body) >= tcpHeaderBytes:
		return max(length-4*int(body[12]>>4), -1)
	}
	return -1
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
