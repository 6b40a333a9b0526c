package simulation

import (
	"net/netip"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// SetLink lets interface iface of b hear that of a, and a that of b, each with
// a probability of losing a frame. A loss of 1 or more cuts the direction.
func (s *Sim) SetLink(a, b, iface int, loss, lossBack float64) {
	s.setOneWay(a, b, iface, loss)
	s.setOneWay(b, a, iface, lossBack)
}

// Connect makes a link without losses of its own between the first interfaces.
func (s *Sim) Connect(a, b int) { s.SetLink(a, b, 0, 0, 0) }

// Cut ends the link between the first interfaces.
func (s *Sim) Cut(a, b int) { s.SetLink(a, b, 0, 1, 1) }

func (s *Sim) setOneWay(a, b, iface int, loss float64) {
	p, to := s.ports[s.nodes[a].ports[iface]], s.nodes[b].ports[iface]
	i := slices.IndexFunc(p.links, func(l link) bool { return l.to == to })
	switch {
	case loss >= 1 && i >= 0:
		p.links = slices.Delete(p.links, i, i+1)
	case loss >= 1:
	case i >= 0:
		p.links[i].loss = loss
	default:
		p.links = append(p.links, link{to, loss})
	}
}

func (n *NodeStats) message(m manet.Message) {
	n.Messages[m.Kind]++
	n.MessageBytes[m.Kind] += int64(m.Bytes)
	if m.Forwarded {
		n.Forwarded++
	}
}

func (s *Sim) sendControl(n *node, a manet.Send) {
	if a.Interface < 0 || a.Interface >= len(n.ports) {
		return
	}
	n.Stats.Packets++
	n.Stats.Bytes += int64(len(a.Data) + headerBytes)
	for _, m := range a.Messages {
		n.Stats.message(m)
	}
	if s.OnPacket != nil {
		s.OnPacket(n.index, a)
	}
	f := frame{to: -1, target: a.To, send: &a, boots: n.boots}
	if a.To.IsValid() {
		to, ok := s.byAddr[a.To]
		if !ok {
			return // nobody has the address: ARP finds no one
		}
		f.to = to
	}
	s.enqueue(s.ports[n.ports[a.Interface]], f)
}

func (s *Sim) enqueue(p *port, f frame) {
	if len(p.queue) >= s.config.Radio.QueueFrames {
		s.nodes[p.node].Stats.QueueDrops++
		if f.data != nil {
			s.Data.QueueFull++
		}
		return
	}
	p.queue = append(p.queue, f)
	if !p.sending {
		p.sending = true
		s.contend(p)
	}
}

// contend lets a port try for the medium once it is free and a random number
// of slots has passed.
func (s *Sim) contend(p *port) {
	backoff := time.Duration(s.random.IntN(max(s.config.Radio.BackoffSlots, 1))) * s.config.Radio.Slot
	s.push(event{at: max(s.now, p.busyUntil) + backoff, port: p})
}

// transmit sends the first frame of a port's queue, if the medium is free.
func (s *Sim) transmit(p *port) {
	if len(p.queue) == 0 {
		p.sending = false
		return
	}
	if p.busyUntil > s.now {
		s.contend(p)
		return
	}
	f := p.queue[0]
	bps := s.config.Radio.BroadcastBps
	if f.to >= 0 {
		bps = s.config.Radio.UnicastBps
	}
	end := s.now + s.config.Radio.Overhead + time.Duration(float64(f.bytes()*8)/bps*1e9)
	p.busyUntil = end
	for _, l := range p.links {
		q := s.ports[l.to]
		q.busyUntil = max(q.busyUntil, end)
	}
	s.At(end, func() { s.finish(p, f) })
}

// finish is the end of a frame: it arrives, is sent again, or is given up.
func (s *Sim) finish(p *port, f frame) {
	sender := s.nodes[p.node]
	if len(p.queue) == 0 || sender.boots != f.boots || sender.down { // the node went down meanwhile
		s.next(p, false)
		return
	}
	if f.to < 0 {
		s.next(p, true)
		for i := 0; i < len(p.links); i++ { // receiving may change the links
			l := p.links[i]
			if s.arrives(l) {
				s.receive(p, s.ports[l.to], f)
			}
		}
		return
	}
	s.overhear(p, f)
	i := slices.IndexFunc(p.links, func(l link) bool { return l.to == f.to })
	// Without a route back no acknowledgement comes, and the sender gives up.
	if i >= 0 && s.linked(p.links[i].to, p) && s.arrives(p.links[i]) {
		to := s.ports[p.links[i].to]
		s.next(p, true)
		s.receive(p, to, f)
		return
	}
	if f.attempts < s.config.Radio.Retries {
		p.queue[0].attempts++
		s.next(p, false)
		return
	}
	s.next(p, true)
	s.givenUp(sender, p, f)
}

// linked reports whether a port is heard by another at all.
func (s *Sim) linked(from int, to *port) bool {
	return slices.ContainsFunc(s.ports[from].links, func(l link) bool { return s.ports[l.to] == to })
}

func (s *Sim) givenUp(sender *node, p *port, f frame) {
	failed := manet.LinkFailed{Interface: p.iface, Neighbor: f.target, Known: true}
	if f.send != nil && len(f.send.Data) > 0 {
		failed.Type = f.send.Data[0]
	}
	if f.data != nil {
		s.Data.LinkLost++
		failed.Destination = f.data.Destination
	}
	if !s.config.Feedback {
		return
	}
	if f.whole != nil {
		s.handle(sender, manet.Undelivered{Interface: p.iface, Neighbor: f.target, Packet: slices.Clone(f.whole)})
		return
	}
	s.handle(sender, failed)
}

// next continues with a port's queue, with its first frame gone or not.
func (s *Sim) next(p *port, gone bool) {
	if gone {
		p.queue = p.queue[1:]
	}
	if len(p.queue) == 0 {
		p.queue, p.sending = nil, false
		return
	}
	s.contend(p)
}

func (s *Sim) arrives(l link) bool {
	keep := (1 - l.loss) * (1 - s.config.Radio.Loss)
	to := s.nodes[s.ports[l.to].node]
	return to.started && !to.down && (keep >= 1 || s.random.Float64() < keep)
}

// receive hands a frame to a node, with the faults of the radio.
func (s *Sim) receive(from, to *port, f frame) {
	n := s.nodes[to.node]
	if f.data != nil {
		f.data.Hops++
		f.data.TTL--
		f.data.previous = from.addr
		s.forward(n, f.data, false)
		return
	}
	if f.whole != nil {
		s.receiveWhole(from.addr, to, f, false)
		return
	}
	r := &s.config.Radio
	s.deliver(n, from.addr, to, f, s.damaged(f.send.Data))
	if r.Duplicate > 0 && s.random.Float64() < r.Duplicate {
		s.deliver(n, from.addr, to, f, f.send.Data)
	}
}

func (s *Sim) deliver(n *node, from netip.Addr, to *port, f frame, data []byte) {
	s.soonOrLate(n, manet.Packet{Interface: to.iface, From: from, Unicast: f.to >= 0, TTL: f.send.TTL, Data: data})
}

// soonOrLate gives a node what the radio brought it, at once or late.
func (s *Sim) soonOrLate(n *node, e manet.Event) {
	if r := &s.config.Radio; r.Delay > 0 && s.random.Float64() < r.Delay {
		boots := n.boots
		s.At(s.now+time.Duration(s.random.Int64N(int64(r.DelayMax))), func() {
			if n.boots == boots {
				s.handle(n, e)
			}
		})
		return
	}
	s.handle(n, e)
}

func (s *Sim) damaged(data []byte) []byte {
	r := &s.config.Radio
	if r.Truncate > 0 && s.random.Float64() < r.Truncate {
		return data[:s.random.IntN(len(data)+1)]
	}
	if r.Flip > 0 && len(data) > 0 && s.random.Float64() < r.Flip {
		data = slices.Clone(data)
		data[s.random.IntN(len(data))] ^= 1 << s.random.IntN(8)
	}
	return data
}
