package medium

import "fieldmesh.dev/fieldmesh/rehearsal/medium/ipv4"

// Places in ns-2's queue, first to last.
const (
	ns2Routing = iota
	ns2ACK     // TCP's that carries no data, with DSR
	ns2Other
)

// ns2Place is where a frame belongs in ns-2's queue, and whether that is the one with DSR.
func ns2Place(f *frame) (place uint8, dsr bool) {
	ip, is := ipv4.In(f.ethernet)
	dsr = is && ipv4.IsDSR(ip)
	switch {
	case f.class == Routing:
		return ns2Routing, dsr
	case dsr && ipv4.IsBareACK(ip):
		return ns2ACK, true
	}
	return ns2Other, dsr
}

// ns2Push is the queue of ns-2's scripts: routing's frames go before all others, the newest first,
// and when it is full the last goes for them (ns-2.35, queue/priqueue.cc). One of N frames holds N - 1
// (queue/drop-tail.cc). With DSR they go in their order, TCP's bare ACKs next, and each kind has room
// of its own for N, ARP's among the rest (queue/dsr-priqueue.cc). It reports whether there was room.
func (s *station) ns2Push(f *frame) bool {
	place, dsr := ns2Place(f)
	f.place, f.dsr = place, dsr
	full := s.queue.Len()+1 >= s.core.cfg.QueueFrames
	kinds := dsr || full && s.ns2Waiting(func(g *frame) bool { return g.dsr }) > 0
	switch {
	case kinds && s.ns2Waiting(func(g *frame) bool { return g.place == place }) >= s.core.cfg.QueueFrames,
		!kinds && full && place != ns2Routing:
		return false
	case kinds:
		s.queue.PushBehind(f, func(g *frame) bool { return g.place <= place })
	case place == ns2Routing:
		if full && s.queue.Len() > 0 {
			last := s.queue.PopLast()
			s.core.refuse(s, last.id, last.ethernet, QueueFull)
			s.core.freeFrame(last)
		}
		s.queue.PushFront(f)
	default:
		s.queue.Push(f)
	}
	return true
}

// ns2Waiting is how many such frames wait.
func (s *station) ns2Waiting(such func(*frame) bool) (n int) {
	for i := range s.queue.Len() {
		if such(s.queue.At(i)) {
			n++
		}
	}
	return n
}
