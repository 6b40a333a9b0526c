package medium

import (
	"encoding/binary"
	"slices"
)

// Class is what a frame is for.
type Class uint8

// The classes. ACKs, RTSs and CTSs are of the class of the frame that they
// are there for.
const (
	Traffic Class = iota
	Routing
	ARP

	classCount
)

// String is the class's name in records.
func (c Class) String() string {
	return [classCount]string{"traffic", "routing", "arp"}[min(c, classCount-1)]
}

// ClassCounts counts by class.
type ClassCounts [classCount]uint64

const (
	etherTypeARP    = 0x0806
	etherTypeIPv6   = 0x86dd
	etherTypeBatman = 0x4305 // batman-adv
	protoDSR        = 48     // RFC 4728
	protoMANET      = 138    // RFC 5498
	ipv6HeaderBytes = 40
	noNextHeader    = 59 // RFC 8200, 4.7
)

// routingPorts are the UDP ports of routing protocols: MANET (RFC 5498), AODV
// (RFC 3561), OLSR (RFC 3626), Babel (RFC 8966).
var routingPorts = []uint16{269, 654, 698, 6696}

// classOf reads a frame's headers.
func classOf(ethernet []byte) Class {
	if len(ethernet) < ethernetHeaderBytes {
		return Traffic
	}
	body := ethernet[ethernetHeaderBytes:]
	switch binary.BigEndian.Uint16(ethernet[12:14]) {
	case etherTypeARP:
		return ARP
	case etherTypeBatman:
		// Its packets of type 0x01 and from 0x40 on carry others'; the rest,
		// originator messages and link probes, are its own.
		if len(body) > 0 && body[0] != 0x01 && body[0] < 0x40 {
			return Routing
		}
	case etherTypeIPv4:
		if isIPv4(body) {
			return classOfPacket(body[9], body[min(len(body), 4*int(body[0]&15)):])
		}
	case etherTypeIPv6:
		if len(body) >= ipv6HeaderBytes {
			return classOfPacket(body[6], body[ipv6HeaderBytes:])
		}
	}
	return Traffic
}

func classOfPacket(protocol byte, body []byte) Class {
	switch {
	case protocol == protoMANET:
		return Routing
	case protocol == protoDSR && len(body) > 0 && body[0] == noNextHeader: // options alone, without data
		return Routing
	case protocol == protoUDP && len(body) >= 4 &&
		(slices.Contains(routingPorts, binary.BigEndian.Uint16(body)) || slices.Contains(routingPorts, binary.BigEndian.Uint16(body[2:]))):
		return Routing
	}
	return Traffic
}
