package packets

import (
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// analysis is the flows of two captures that are being read.
type analysis struct{ flows []*flow }

// sent takes a packet of the sender's capture.
func (a *analysis) sent(e *end, h *header, at int64) {
	for _, f := range a.flows {
		if !f.Reverse {
			f.asks(e, h, at)
		}
		if s := f.stream(h, true); s != nil {
			s.leaves(e, h, at)
			return
		}
		if s := f.stream(h, false); s != nil {
			s.answered(h, at)
			return
		}
	}
}

// received takes a packet of the receiver's capture.
func (a *analysis) received(e *end, h *header, at int64) {
	for _, f := range a.flows {
		if f.Reverse {
			f.asks(e, h, at)
		}
		if s := f.stream(h, true); s != nil {
			s.arrives(h, at, at < e.CloseNs)
			return
		}
		if s := f.stream(h, false); s != nil {
			s.confirms(h, at < e.CloseNs)
			return
		}
	}
}

// flow is a flow's streams and what they have in common.
type flow struct {
	Flow
	above   bool               // the sender is looked at above its interface too
	stamped *int64             // the least that a datagram was seen behind its stamp
	streams map[uint16]*stream // by the client's port
	total   Result
}

func newFlow(f Flow) *flow {
	return &flow{Flow: f, streams: map[uint16]*stream{}, total: Result{Flow: f.Name, Numbers: map[uint16]Numbers{}}}
}

// mostStreams bounds the memory of a flow whose client ports are not known.
const mostStreams = 1024

// stream finds a packet's stream: forward, of one that carries data, or of one
// that answers. It is nil for packets of others.
func (f *flow) stream(h *header, forward bool) *stream {
	protocol := uint8(protoTCP)
	if f.UDP {
		protocol = signalling.ProtocolUDP
	}
	from, to := f.From, f.To
	if !forward {
		from, to = to, from
	}
	if h.protocol != protocol || h.src != from || h.dst != to {
		return nil
	}
	server, client := h.dport, h.sport
	if f.Reverse == forward { // the server sends this one
		server, client = client, server
	}
	if server != f.Port || f.ClientFirst != 0 && (client < f.ClientFirst || int(client) >= int(f.ClientFirst)+
		f.Streams) {
		return nil
	}
	s := f.streams[client]
	if s == nil && len(f.streams) < mostStreams {
		s = &stream{flow: f}
		f.streams[client] = s
	}
	return s
}

// asks takes a packet at the client. Its first connection is the one that waits
// for a route: iperf3 opens one for control before those for data.
func (f *flow) asks(e *end, h *header, at int64) {
	client, server := f.From, f.To
	if f.Reverse {
		client, server = server, client
	}
	a := &f.total.Ask
	if f.UDP || h.protocol != protoTCP || at < e.OpenNs {
		return
	}
	out := h.src == client && h.dst == server && h.dport == f.Port
	back := h.src == server && h.dst == client && h.sport == f.Port
	switch syn, ack := h.flags&flagSYN != 0, h.flags&flagACK != 0; {
	case a.AtNs == nil && syn && !ack && out && at < e.CloseNs:
		a.AtNs = new(at)
	case a.AnsweredNs == nil && syn && ack && back:
		a.AnsweredNs = new(at)
	}
}

func (f *flow) result() Result {
	for port, s := range f.streams {
		if f.UDP && s.numbers.First != nil {
			f.total.Numbers[port] = s.numbers
		}
		f.total.DeliveredBytes += uint64(s.deliveredBytes)
		if s.inFlight.last > 0 {
			f.total.StreamsSeen++
		}
	}
	return f.total
}

// stream is one connection, or one UDP client's packets.
type stream struct {
	flow *flow

	// At the sender.
	begun    bool // first is known
	first    uint32
	next     int64 // the end of what was sent at least once
	numbers  Numbers
	synNs    int64
	synSent  bool
	shook    bool
	inFlight flight
	unacked  unacked

	// At the receiver.
	arrived        spans
	newest         uint64 // number of the latest packet that arrived
	connected      bool
	deliveredBytes int64
}

// place puts a sequence number on the stream's own axis, on which the first
// byte of payload is 0; near is a place not further than 2^31 from it.
func (s *stream) place(seq uint32, near int64) int64 {
	return near + int64(int32(seq-s.first-uint32(near)))
}

// begin fixes the axis by the first packet of the data's direction.
func (s *stream) begin(h *header) {
	if s.begun {
		return
	}
	s.begun, s.first = true, h.seq
	if h.flags&flagSYN != 0 {
		s.first++ // a SYN takes a number (RFC 9293, 3.4)
	}
}

// leaves takes a packet at the sender.
func (s *stream) leaves(e *end, h *header, at int64) {
	t := &s.flow.total
	if s.flow.UDP {
		s.datagramLeaves(e, h, at)
		return
	}
	inWindow := at >= e.OpenNs && at < e.CloseNs
	s.begin(h)
	if h.flags&flagSYN != 0 {
		if !s.synSent { // of the client's or the server's: either opens this direction
			s.synSent, s.synNs = true, at
		}
		return
	}
	if h.payload == 0 || s.seenBefore(key{h.seq, h.ipID}) {
		return
	}
	from := s.place(h.seq, s.next)
	part := span{from, from + int64(h.payload)}
	again := part.from < s.next
	if again && inWindow {
		t.Retransmitted++
		t.RetransmittedBytes += uint64(min(part.to, s.next) - part.from)
	}
	if again {
		s.unacked.spoil(part)
	}
	if part.to > s.next {
		s.unacked.add(part.to, at, again || !inWindow) // no round trip before the window is measured
		s.next = part.to
	}
	s.depart(key{h.seq, h.ipID}, transmission{at: at, bytes: int32(h.payload), inWindow: inWindow})
}

// seenBefore reports whether a packet at the sender is one that has left its
// socket already: a routing daemon lets go what was seen above it. On the
// interface alone each packet is another.
func (s *stream) seenBefore(k key) bool {
	if !s.flow.above {
		return false
	}
	x, _ := s.inFlight.find(k)
	return x != nil
}

// depart puts a packet into flight.
func (s *stream) depart(k key, x transmission) {
	if x.inWindow {
		s.flow.total.Sent++
		s.flow.total.SentBytes += uint64(x.bytes)
	}
	s.inFlight.put(k, x)
}

// answered takes a packet at the sender that came from the receiver.
func (s *stream) answered(h *header, at int64) {
	if s.flow.UDP {
		return
	}
	if h.flags&flagSYN != 0 {
		switch {
		case h.flags&flagACK == 0: // the receiver of the data is the one that connects
			if !s.synSent {
				s.synSent, s.shook, s.synNs = true, true, at
			}
		case s.synSent && !s.shook:
			s.shook = true
			s.flow.total.Handshake.add(at - s.synNs)
		}
		return
	}
	if !s.begun || h.flags&flagACK == 0 {
		return
	}
	if sentAt, ok := s.unacked.ack(s.place(h.ack, s.unacked.low)); ok {
		s.flow.total.RoundTrip.add(at - sentAt)
	}
}

// arrives takes a packet at the receiver.
func (s *stream) arrives(h *header, at int64, beforeClose bool) {
	k := key{h.seq, h.ipID}
	var part span
	if s.flow.UDP {
		number, _, ok := datagram(h)
		if !ok {
			return
		}
		k = key{number, 0}
		part = span{int64(number) - 1, int64(number)} // in datagrams
	} else {
		s.begin(h)
		if h.payload == 0 {
			return
		}
		from := s.place(h.seq, s.arrived.next)
		part = span{from, from + int64(h.payload)}
	}
	fresh := s.arrived.add(part)
	if !s.connected && fresh > 0 {
		s.connected = true
		if s.synSent {
			s.flow.total.FirstSegment.add(at - s.synNs)
		}
	}
	if beforeClose {
		s.delivers(h, fresh)
	}
	s.land(k, h, at, fresh)
}

// confirms takes a packet that the receiver sent. What it acknowledges has
// arrived, whether its capture has it or not.
func (s *stream) confirms(h *header, beforeClose bool) {
	if s.flow.UDP || !s.begun || h.flags&flagACK == 0 || h.flags&flagSYN != 0 {
		return
	}
	to := min(s.place(h.ack, s.arrived.next), s.next) // a FIN takes a number too
	s.arrived.add(span{s.arrived.next, to})
	if beforeClose {
		s.deliveredBytes = s.arrived.next
	}
}

// delivers counts what the receiver has. Of a stream, that is what has no hole
// before it, as its kernel counts; of datagrams, every one.
func (s *stream) delivers(h *header, fresh int64) {
	if !s.flow.UDP {
		s.deliveredBytes = s.arrived.next
	} else if fresh > 0 {
		s.deliveredBytes += int64(h.payload)
	}
}

// land finds out which transmission arrived.
func (s *stream) land(k key, h *header, at, fresh int64) {
	t := &s.flow.total
	x, number := s.inFlight.find(k)
	switch {
	case x == nil:
		t.Unmatched++
		return
	case int(x.bytes) != h.payload:
		t.Merged++
		return
	case !x.inWindow:
		return
	case x.landed && x.landedAbove != h.above: // the same copy, on its way up
		return
	case x.landed:
		t.ArrivedTwice++
		return
	}
	x.landed, x.landedAbove = true, h.above
	t.Arrived++
	if fresh > 0 {
		t.Delivered++
	}
	t.OneWay.add(at - x.at)
	if number < s.newest {
		t.OutOfOrder++
	}
	s.newest = max(s.newest, number)
}
