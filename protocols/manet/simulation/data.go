package simulation

import (
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Packet is a data packet on its way.
type Packet struct {
	Source, Destination netip.Addr
	Bytes               int // of IP
	TTL                 int
	Hops                int
	Sent                manet.Time
	previous            netip.Addr
}

// DataStats count data packets by their fate. Sent is the sum of the others
// and of those on their way or held.
type DataStats struct {
	Sent, Delivered      int64
	NoRoute, HeldTooLong int64 // dropped by a protocol's word; by the buffer's bounds
	LinkLost, QueueFull  int64
	TTLExceeded          int64 // of a packet in a loop
	Hops                 int64 // of those delivered, summed
	Delay, DelayMax      time.Duration

	Repeated, Foreign int64 // of a carrier: delivered again; not as it was sent
	HopsMax           int64
}

// dataTTL is the kernel's default.
const dataTTL = 64

// SendData sends one packet from a node to another's first address.
func (s *Sim) SendData(from, to, bytes int) {
	n := s.nodes[from]
	if n.down {
		return
	}
	s.Data.Sent++
	p := &Packet{Source: Address(from, 0), Destination: Address(to, 0), Bytes: bytes, TTL: dataTTL, Sent: s.now}
	if s.config.Carrier {
		s.originate(n, p)
		return
	}
	s.forward(n, p, false)
}

// Flow sends packets at a fixed interval from a start until an end.
func (s *Sim) Flow(from, to, bytes int, interval time.Duration, start, end manet.Time) {
	var next func()
	next = func() {
		s.SendData(from, to, bytes)
		if s.now+interval < end {
			s.At(s.now+interval, next)
		}
	}
	s.At(start, next)
}

// forward is what a kernel does with a packet at a node.
func (s *Sim) forward(n *node, p *Packet, released bool) {
	if s.isOwn(n, p.Destination) {
		s.Data.Delivered++
		s.Data.Hops += int64(p.Hops)
		s.Data.Delay += s.now - p.Sent
		s.Data.DelayMax = max(s.Data.DelayMax, s.now-p.Sent)
		s.handle(n, manet.RouteUsed{Destination: p.Destination, Source: p.Source, Previous: p.previous})
		return
	}
	if p.TTL <= 1 {
		s.Data.TTLExceeded++
		return
	}
	local := !p.previous.IsValid()
	r, ok := n.lookup(p.Destination)
	if !ok {
		if released {
			s.Data.NoRoute++
			return
		}
		s.Data.HeldTooLong += int64(len(n.held.Put(s.now, p.Destination, p)))
		n.Stats.HeldMax = max(n.Stats.HeldMax, n.held.Len())
		s.handle(n, manet.NeedRoute{Destination: p.Destination, Source: p.Source, Local: local, Previous: p.previous})
		return
	}
	hop := r.Next[0]
	s.handle(n, manet.RouteUsed{Destination: p.Destination, Source: p.Source, Local: local, Previous: p.previous})
	f := frame{to: len(s.ports), target: hop.Addr, data: p, boots: n.boots} // no such port: nobody has the address
	if to, ok := s.byAddr[hop.Addr]; ok {
		f.to = to
	}
	s.enqueue(s.ports[n.ports[hop.Interface]], f)
}

func (s *Sim) isOwn(n *node, a netip.Addr) bool {
	p, ok := s.byAddr[a]
	return ok && s.ports[p].node == n.index
}

// lookup finds the longest prefix.
func (n *node) lookup(a netip.Addr) (manet.SetRoute, bool) {
	best, ok := n.routes[netip.PrefixFrom(a, a.BitLen())]
	if ok {
		return best, true
	}
	for p := range n.networks {
		if p.Contains(a) && (!ok || p.Bits() > best.Destination.Bits()) {
			best, ok = n.routes[p], true
		}
	}
	return best, ok
}
