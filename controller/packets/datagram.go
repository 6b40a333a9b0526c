package packets

// DatagramBytesMin is the least payload of a datagram that counts. iperf3 puts
// as much before its own: seconds and microseconds of when it handed the
// datagram on, and its number, from 1 (32 bits; with --udp-counters-64bit the
// number's high half comes first).
const DatagramBytesMin = 12

// Numbers is what is known of one UDP client's datagrams by their numbers. The
// sender's capture need not have them all: those that wait for the neighbour's
// hardware address and those that a full queue drops come to no capture. Those
// before one that was seen were handed on before it; of those behind the last
// that was seen nothing here tells.
type Numbers struct {
	First       *Mark // the first that was seen
	Open, Close Edge  // about the edges of the sender's window
	Bytes       int   // of a datagram's payload
}

// Mark is a datagram that was seen, and when it was handed on, by common time.
type Mark struct {
	Number uint32
	AtNs   int64
}

// Edge is the last datagram that was seen of those handed on before a moment,
// and the first of those after it.
type Edge struct{ Before, After *Mark }

func (n *Numbers) see(m Mark, e *end, bytes int) {
	if n.First == nil {
		n.First, n.Bytes = new(m), bytes
	}
	n.Open.see(m, e.OpenNs)
	n.Close.see(m, e.CloseNs)
}

func (e *Edge) see(m Mark, whenNs int64) {
	if m.AtNs < whenNs {
		if e.Before == nil || m.Number > e.Before.Number {
			e.Before = new(m)
		}
	} else if e.After == nil || m.Number < e.After.Number {
		e.After = new(m)
	}
}

// datagramLeaves takes a datagram at the sender.
func (s *stream) datagramLeaves(e *end, h *header, at int64) {
	number, stampNs, ok := datagram(h)
	if !ok || s.seenBefore(key{number, 0}) {
		return
	}
	if s.flow.ByStamp && stampNs != 0 {
		at = s.flow.handedOn(stampNs, at)
	}
	s.numbers.see(Mark{number, at}, e, h.payload)
	s.depart(key{number, 0}, transmission{at: at, bytes: int32(h.payload), inWindow: at >= e.OpenNs && at < e.CloseNs})
}

// handedOn is when a datagram was handed on, by common time. iperf3's stamps are
// of a clock of their own; the datagram that waited least tells how it goes
// against the capture's.
func (f *flow) handedOn(stampNs, at int64) int64 {
	if behind := at - stampNs; f.stamped == nil || behind < *f.stamped {
		f.stamped = new(behind)
	}
	return stampNs + *f.stamped
}

// datagram reads iperf3's header; stampNs is 0 where it has no stamp.
func datagram(h *header) (number uint32, stampNs int64, ok bool) {
	if h.payload < DatagramBytesMin || len(h.data) < DatagramBytesMin {
		return 0, 0, false // iperf3's connecting, or cut
	}
	return order.Uint32(h.data[8:]), int64(order.Uint32(h.data))*1e9 + int64(order.Uint32(h.data[4:]))*1e3, true
}
