package manetd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/adv"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/aomdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/olsr"
)

// Setup is what a protocol is made from.
type Setup struct {
	Interfaces []manet.Interface
	Seed       uint64
	// FirstSeq is the wall clock in sixteenths of a second: a sequence number
	// to start from that is newer than any of the node's life before.
	FirstSeq uint32
	Feedback bool           // the link layer reports what it could not deliver
	Fresh    bool           // nobody can remember an earlier life of this node
	Hello    *time.Duration // interval of HELLOs or what stands for them; nil: the protocol's own
}

// Protocol is one routing protocol that the daemon can run.
type Protocol struct {
	Name string
	Port uint16 // UDP; 0 for a carrier
	// IPProtocol is a carrier's own protocol number (see manet.Outgoing); 0 for
	// a protocol that sets kernel routes.
	IPProtocol int
	// OverheadBytes is what a carrier adds to a data packet at most: the kernel
	// is told about an MTU that is so much smaller.
	OverheadBytes int
	// TakesBack says that the protocol is given the packets that the radio gave up,
	// where the radio says which they were.
	TakesBack bool
	// OnDemand protocols are told which routes data uses.
	OnDemand bool
	// Silent protocols come from a simulator, where a sender for whose packet no
	// route is found hears nothing, and TCP tries on: Linux would end connect().
	Silent bool
	// Held is how many packets for a destination wait for a route, each until it comes; 0: 64 for all, for 30 s.
	Held int
	Make func(Setup) (manet.Node, error)
}

func (p Protocol) carrier() bool { return p.IPProtocol != 0 }

// carriedIn is the carrier's packet in an Ethernet frame that the protocol takes
// back; nil where there is none.
func (p Protocol) carriedIn(frame []byte) []byte {
	packet := packetIn(frame)
	if !p.TakesBack || packet == nil || int(packet[9]) != p.IPProtocol {
		return nil
	}
	return packet
}

// lost is what was in a frame that the radio gave up.
type lost struct {
	known   bool // the radio says what it was
	data    use  // not valid for what is no data: ARP, and the protocol's own packets
	message byte // first octet of the protocol's own packet; 0: none of its own
}

// lostIn reads an Ethernet frame, nil where the radio does not say what it was.
func (p Protocol) lostIn(frame []byte) lost {
	const udpHeader = 8
	out := lost{known: len(frame) > 0}
	packet := packetIn(frame)
	if packet == nil {
		return out
	}
	if body := packet[headerLength(packet):]; p.Port != 0 && packet[9] == unix.IPPROTO_UDP && len(body) >= 4 &&
		binary.BigEndian.Uint16(body[2:]) == p.Port {
		if len(body) > udpHeader {
			out.message = body[udpHeader]
		}
		return out
	}
	out.data.source, out.data.destination, _ = endpoints(packet)
	return out
}

// packetIn is the IPv4 packet in an Ethernet frame; nil where there is none.
func packetIn(frame []byte) []byte {
	const header = 14
	if len(frame) < header || binary.BigEndian.Uint16(frame[header-2:]) != unix.ETH_P_IP {
		return nil
	}
	if _, _, whole := endpoints(frame[header:]); !whole {
		return nil
	}
	return frame[header:]
}

// Protocols lists what the daemon can run, in the order in which help names
// them. A protocol joins by a line here.
func Protocols() []Protocol {
	return []Protocol{
		{Name: "olsr", Port: olsr.Port, Make: makeOLSR(olsr.RFC3626)},
		{Name: "olsr-etx", Port: olsr.Port, Make: makeOLSR(olsr.Olsrd)},
		{Name: "olsr-full", Port: olsr.Port, Make: makeOLSR(olsr.FullTC)},
		{Name: "aodv", Port: aodv.Port, OnDemand: true, Make: makeAODV(nil)},
		{Name: "aodv-ns2", Port: aodv.Port, OnDemand: true, Silent: true, Make: makeAODV(aodv.NS2)},
		{Name: "aodv-p3", Port: aodv.Port, OnDemand: true, Silent: true, Make: makeAODV(aodv.P3)},
		{Name: "aomdv", Port: aomdv.Port, OnDemand: true, Make: makeAOMDV},
		{Name: "dsdv", Port: dsdv.Port, Held: dsdv.Held, Make: makeDSDV},
		{Name: "adv", Port: adv.Port, OnDemand: true, Silent: true, Make: makeADV},
		{Name: "dsr", IPProtocol: dsr.Protocol, OverheadBytes: dsr.Room(dsr.MaxHops), Make: makeDSR},
		{Name: "dsr-ns2", IPProtocol: dsr.Protocol, OverheadBytes: dsr.Room(dsr.MaxHops), TakesBack: true,
			Silent: true, Make: makeDSRNS2},
	}
}

// Names are those of Protocols.
func Names() []string {
	var out []string
	for _, p := range Protocols() {
		out = append(out, p.Name)
	}
	return out
}

func find(name string) (Protocol, error) {
	all := Protocols()
	at := slices.IndexFunc(all, func(p Protocol) bool { return p.Name == name })
	if at < 0 {
		return Protocol{}, fmt.Errorf("no routing protocol %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return all[at], nil
}

func makeOLSR(config func([]manet.Interface, uint64) olsr.Config) func(Setup) (manet.Node, error) {
	return func(s Setup) (manet.Node, error) {
		c := config(s.Interfaces, s.Seed)
		c.LinkFailures = true // the daemon reports none where they are to break nothing
		if s.Hello != nil {
			// Section 18.2 has the validity times as multiples of the intervals.
			c.NeighborHold = time.Duration(float64(c.NeighborHold) * float64(*s.Hello) / float64(c.HelloInterval))
			c.HelloInterval = *s.Hello
			c.MaxJitter = min(c.MaxJitter, *s.Hello/4)
		}
		return olsr.New(c)
	}
}

// errNoReports is of the presets of simulations, which ns-2's link layer is part of.
var errNoReports = errors.New("this preset relies on the link layer's reports, and no socket of radio feedback is " +
	"given: take the protocol without -p3 or -ns2")

// makeAODV makes AODV of a preset. Without one it is RFC 3561's, which is with
// HELLOs only where the link layer reports nothing.
func makeAODV(config func([]manet.Interface, uint64) aodv.Config) func(Setup) (manet.Node, error) {
	return func(s Setup) (manet.Node, error) {
		preset := config
		switch {
		case preset != nil && !s.Feedback:
			return nil, errNoReports
		case preset == nil && s.Feedback:
			preset = aodv.LinkLayer
		case preset == nil:
			preset = aodv.RFC3561
		}
		c := preset(s.Interfaces, s.Seed)
		if err := settleAODV(&c, s); err != nil {
			return nil, err
		}
		return aodv.New(c)
	}
}

// makeAOMDV makes AOMDV, with HELLOs only where the link layer reports nothing.
func makeAOMDV(s Setup) (manet.Node, error) {
	preset := aomdv.Hello
	if s.Feedback {
		preset = aomdv.LinkDisjoint
	}
	c := preset(s.Interfaces, s.Seed)
	if err := settleAODV(&c.Config, s); err != nil {
		return nil, err
	}
	return aomdv.New(c)
}

var errReports = errors.New("the radio's reports of lost frames stand for HELLOs, so that their interval cannot be " +
	"set: leave it out, or have lost frames break no routes")

// settleAODV puts what belongs to this node into a preset.
func settleAODV(c *aodv.Config, s Setup) error {
	c.FirstSeq = s.FirstSeq
	if s.Hello != nil && s.Feedback {
		return errReports
	}
	if s.Hello != nil {
		c.HelloInterval = *s.Hello
	}
	if c.QuietStart > 0 { // the simulators' have none
		c.QuietStart = c.DeletePeriod()
	}
	if s.Fresh {
		c.QuietStart = 0
	}
	return nil
}

// makeDSDV makes DSDV. Its full dumps stand for HELLOs.
func makeDSDV(s Setup) (manet.Node, error) {
	c := dsdv.Broch(s.Interfaces, s.Seed)
	if s.Hello != nil {
		c = c.Every(*s.Hello)
	}
	c.FirstSeq = s.FirstSeq &^ 1 // own numbers are even
	return dsdv.New(c)
}

// makeADV makes ADV. Its full updates stand for HELLOs.
func makeADV(s Setup) (manet.Node, error) {
	c := adv.Default(s.Interfaces, s.Seed)
	if s.Hello != nil {
		c.UpdateInterval = *s.Hello
		c.Spacing = min(c.Spacing, c.UpdateInterval)
	}
	c.FirstSeq = s.FirstSeq &^ 1
	return adv.New(c)
}

var errNoHellos = errors.New("DSR has no HELLOs, so that their interval cannot be set")

// makeDSR makes DSR. Where the link layer reports nothing, it asks the next hops
// for acknowledgements.
func makeDSR(s Setup) (manet.Node, error) {
	if s.Hello != nil {
		return nil, errNoHellos
	}
	c := dsr.RFC4728(s.Interfaces[0], s.Seed)
	c.FirstID = uint16(s.FirstSeq)
	if !s.Feedback {
		c.Maintenance = dsr.NetworkAcks
	}
	return dsr.New(c)
}

// makeDSRNS2 makes CMU's DSR for ns-2.
func makeDSRNS2(s Setup) (manet.Node, error) {
	switch {
	case s.Hello != nil:
		return nil, errNoHellos
	case !s.Feedback:
		return nil, errNoReports
	}
	c := dsr.NS2(s.Interfaces[0], s.Seed)
	c.FirstID = uint16(s.FirstSeq)
	return dsr.New(c)
}

// halves are the two parts of a prefix. Routes to them are preferred to one of
// the whole, such as the one that comes with an interface's address.
func halves(p netip.Prefix) []netip.Prefix {
	p = p.Masked()
	if p.IsSingleIP() {
		return []netip.Prefix{p}
	}
	first := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	raw := p.Addr().AsSlice()
	raw[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	second, _ := netip.AddrFromSlice(raw)
	return []netip.Prefix{first, netip.PrefixFrom(second, p.Bits()+1)}
}

// Forwards reports whether the kernel forwards data for a protocol: it does for
// all but those that carry data themselves.
func Forwards(name string) (bool, error) {
	p, err := find(name)
	return !p.carrier(), err
}
