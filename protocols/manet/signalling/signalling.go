// Package signalling is what routing protocols' packets are known by: ports,
// protocol numbers and the headers that carriers put before data. It is the one
// list of them, for protocols, captures and the emulated radio alike; what the
// protocols say in their packets stays out.
package signalling

import (
	"encoding/binary"
	"slices"
)

// UDP ports.
const (
	PortMANET = 269   // RFC 5498
	PortAODV  = 654   // RFC 3561; AOMDV's too
	PortOLSR  = 698   // RFC 3626
	PortBabel = 6696  // RFC 8966
	PortDSDV  = 49654 // none is assigned: in the range for private use (RFC 6335, 6)
	PortADV   = 49655 // as DSDV's
)

// Numbers of IP protocols.
const (
	ProtocolUDP   = 17
	ProtocolDSR   = 48  // RFC 4728
	ProtocolMANET = 138 // RFC 5498
)

// EtherBatman is batman-adv's ethertype (linux/if_ether.h).
const EtherBatman = 0x4305

// NoNextHeader says in DSR's header that no data follows (RFC 4728, 6.1).
const NoNextHeader = 59

// Ports lists the UDP ports of routing protocols, in ascending order.
func Ports() []uint16 {
	return []uint16{PortMANET, PortAODV, PortOLSR, PortBabel, PortDSDV, PortADV}
}

// Protocols lists the IP protocols that are routing's, at least in part.
func Protocols() []uint8 { return []uint8{ProtocolDSR, ProtocolMANET} }

// Mark is how the packets of a protocol that a campaign can name are known;
// exactly one of its numbers is not 0.
type Mark struct {
	Port      uint16
	Protocol  uint8
	EtherType uint16
}

// marks are those of the protocols that a plan can name (wire.RoutingProtocols)
// and that send anything for routing.
func marks() map[string]Mark {
	out := map[string]Mark{}
	for mark, names := range map[Mark][]string{
		{Port: PortBabel}:        {"babeld"},
		{Port: PortOLSR}:         {"olsrd", "olsr", "olsr-etx", "olsr-full"},
		{Port: PortAODV}:         {"aodv", "aodv-ns2", "aodv-p3", "aomdv"},
		{Port: PortDSDV}:         {"dsdv"},
		{Port: PortADV}:          {"adv"},
		{Protocol: ProtocolDSR}:  {"dsr", "dsr-ns2"},
		{EtherType: EtherBatman}: {"batman-adv"},
	} {
		for _, name := range names {
			out[name] = mark
		}
	}
	return out
}

// Of gives the mark of a protocol by its name in a plan; ok is false where
// nothing is sent for routing.
func Of(name string) (m Mark, ok bool) {
	m, ok = marks()[name]
	return m, ok
}

// AtPort names the protocols whose packets are known by a UDP port, as a plan
// does, in alphabetical order; none where data may go.
func AtPort(port uint16) []string {
	var out []string
	for name, m := range marks() {
		if m.Port == port && port != 0 {
			out = append(out, name)
		}
	}
	if len(out) == 0 && slices.Contains(Ports(), port) {
		return []string{"manet"} // RFC 5498: no plan can name who uses it
	}
	slices.Sort(out)
	return out
}

// Share is how much of a packet is routing's.
type Share struct {
	Header int  // bytes of it that lie before data which it carries
	Whole  bool // it carries no data: all of it is routing's
}

// InIP says what is routing's in an IP packet of a protocol, of which body are
// the bytes behind the IP header, as far as there are any.
func InIP(protocol uint8, body []byte) Share {
	switch {
	case protocol == ProtocolMANET:
		return Share{Whole: true}
	case protocol == ProtocolUDP && len(body) >= 4:
		ports := Ports()
		return Share{Whole: slices.Contains(ports, binary.BigEndian.Uint16(body)) ||
			slices.Contains(ports, binary.BigEndian.Uint16(body[2:]))}
	case protocol == ProtocolDSR && len(body) >= 1 && body[0] == NoNextHeader:
		return Share{Whole: true}
	case protocol == ProtocolDSR && len(body) >= 4: // RFC 4728, 6.1: the length is that of the options
		return Share{Header: 4 + int(binary.BigEndian.Uint16(body[2:]))}
	}
	return Share{}
}

// batmanHeaders are what batman-adv's packets have before the IP packet that
// they carry, by type (linux/batadv_packet.h): its own header and the inner
// Ethernet header, or its own alone where what follows is not whole.
var batmanHeaders = map[byte]int{
	0x01: 14 + 14, // broadcast
	0x02: 46,      // network-coded
	0x40: 10 + 14, // unicast
	0x41: 20,      // fragment
	0x42: 18 + 14, // unicast with four addresses
}

// InBatman says what is routing's in a packet of batman-adv, from behind the
// Ethernet header.
func InBatman(body []byte) Share {
	if len(body) == 0 {
		return Share{}
	}
	header, carries := batmanHeaders[body[0]]
	return Share{Header: header, Whole: !carries}
}
