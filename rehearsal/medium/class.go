package medium

import (
	"encoding/binary"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ipv4"
)

// Class is what a frame is for.
type Class uint8

// The classes. ACKs, RTSs and CTSs are of the class of the frame that they
// are there for.
const (
	Traffic Class = iota
	Routing
	ARP
	// Management is what the nodes' own stacks of 802.11 say to each other: beacons,
	// probes, authentication. It counts in OnAir only.
	Management

	classCount
)

// String is the class's name in records.
func (c Class) String() string {
	return [classCount]string{"traffic", "routing", "arp", "management"}[min(c, classCount-1)]
}

// ClassCounts counts by class.
type ClassCounts [classCount]uint64

const (
	etherTypeARP    = 0x0806
	etherTypeIPv6   = 0x86dd
	ipv6HeaderBytes = 40
)

// classOf reads a frame's headers. What carries data is traffic, whatever
// header a routing protocol put before it.
func classOf(ethernet []byte) Class {
	if len(ethernet) < dot11.EthernetHeaderBytes {
		return Traffic
	}
	body := ethernet[dot11.EthernetHeaderBytes:]
	switch binary.BigEndian.Uint16(ethernet[12:14]) {
	case etherTypeARP:
		return ARP
	case signalling.EtherBatman:
		return classOfShare(signalling.InBatman(body))
	case ipv4.EtherType:
		if ipv4.Is(body) {
			return classOfShare(signalling.InIP(body[9], body[min(len(body), 4*int(body[0]&15)):]))
		}
	case etherTypeIPv6:
		if len(body) >= ipv6HeaderBytes {
			return classOfShare(signalling.InIP(body[6], body[ipv6HeaderBytes:]))
		}
	}
	return Traffic
}

func classOfShare(s signalling.Share) Class {
	if s.Whole {
		return Routing
	}
	return Traffic
}
