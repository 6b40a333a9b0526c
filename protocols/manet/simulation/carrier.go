package simulation

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// The side of protocols that carry data themselves (Config.Carrier): data
// packets are whole IPv4 packets, whose payload begins with a number by which
// they are known again.

const (
	ipHeaderBytes  = 20
	leastDataBytes = ipHeaderBytes + 8
	protocolTest   = 253 // for experimentation: RFC 3692
)

// originate gives a packet to the protocol of its source.
func (s *Sim) originate(n *node, p *Packet) {
	s.dataNumber++
	s.carried[s.dataNumber] = p
	b := make([]byte, max(p.Bytes, leastDataBytes), max(p.Bytes, leastDataBytes)+128)
	b[0], b[8], b[9] = 0x45, byte(p.TTL), protocolTest
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], uint16(s.dataNumber))
	from, to := p.Source.As4(), p.Destination.As4()
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint64(b[ipHeaderBytes:], s.dataNumber)
	s.handle(n, manet.Outgoing{Packet: b})
}

// arrived takes what a carrier delivers. A packet that comes again, as one that
// was repeated, counts apart; so does one that the radio damaged.
func (s *Sim) arrived(n *node, b []byte) {
	if len(b) < leastDataBytes {
		s.Data.Foreign++
		return
	}
	number := binary.BigEndian.Uint64(b[ipHeaderBytes:])
	p := s.carried[number]
	switch {
	case p == nil && number > 0 && number <= s.dataNumber:
		s.Data.Repeated++
		return
	case p == nil || !s.isOwn(n, p.Destination) || p.Bytes > leastDataBytes && p.Bytes != len(b):
		s.Data.Foreign++
		return
	}
	delete(s.carried, number)
	hops := int64(p.TTL) - int64(b[8]) + 1
	s.Data.Delivered++
	s.Data.Hops += hops
	s.Data.HopsMax = max(s.Data.HopsMax, hops)
	s.Data.Delay += s.now - p.Sent
	s.Data.DelayMax = max(s.Data.DelayMax, s.now-p.Sent)
	if s.OnDelivered != nil {
		s.OnDelivered(p)
	}
}

// sendWhole queues a carrier's packet. It counts as one of control where all of
// it is overhead.
func (s *Sim) sendWhole(n *node, a manet.Transmit) {
	if a.Interface < 0 || a.Interface >= len(n.ports) {
		return
	}
	overhead := 0
	for _, m := range a.Messages {
		overhead += m.Bytes
		n.Stats.message(m)
	}
	n.Stats.Bytes += int64(overhead)
	if overhead >= len(a.Packet) {
		n.Stats.Packets++
	}
	if s.OnTransmit != nil {
		s.OnTransmit(n.index, a)
	}
	f := frame{to: -1, target: a.To, whole: a.Packet, boots: n.boots}
	if a.To.IsValid() {
		f.to = len(s.ports) // no such port: nobody has the address
		if to, ok := s.byAddr[a.To]; ok {
			f.to = to
		}
	}
	s.enqueue(s.ports[n.ports[a.Interface]], f)
}

// InjectWhole lets a node of a carrier receive a packet that nobody sent.
func (s *Sim) InjectWhole(node int, p manet.Received) {
	if n := s.nodes[node]; !n.down {
		s.handle(n, p)
	}
}

// receiveWhole hands a carrier's packet to a node, with the faults of the radio.
func (s *Sim) receiveWhole(from netip.Addr, to *port, f frame, overheard bool) {
	n := s.nodes[to.node]
	packet := manet.Received{Interface: to.iface, From: from, Overheard: overheard,
		Packet: slices.Clone(s.damaged(f.whole))}
	s.soonOrLate(n, packet)
	if r := &s.config.Radio; r.Duplicate > 0 && s.random.Float64() < r.Duplicate {
		packet.Packet = slices.Clone(f.whole)
		s.soonOrLate(n, packet)
	}
}

// overhear lets all but the receiver of a unicast frame hear it.
func (s *Sim) overhear(p *port, f frame) {
	if f.whole == nil || !s.config.Promiscuous || f.to < 0 {
		return
	}
	for i := 0; i < len(p.links); i++ { // receiving may change the links
		if l := p.links[i]; l.to != f.to && s.arrives(l) {
			s.receiveWhole(p.addr, s.ports[l.to], f, true)
		}
	}
}
