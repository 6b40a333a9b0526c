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
// and when it is full the last goes for them (ns-2.35, queue/priqueue.cc). With DSR they go in their
// order, TCP's bare ACKs next, and each kind has room of its own (queue/dsr-priqueue.cc). It reports
// whether there was room.
func (s *station) ns2Push(f *frame) bool {
	place, dsr := ns2Place(f)
	f.place = place
	full := s.queue.Len() >= s.core.cfg.QueueFrames
	switch {
	case dsr && s.ns2Waiting(place) >= s.core.cfg.QueueFrames, !dsr && full && place != ns2Routing:
		return false
	case dsr:
		s.queue.PushBehind(f, func(g *frame) bool { return g.place <= place })
	case place == ns2Routing:
		if full {
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

// ns2Waiting is how many frames of a kind wait.
func (s *station) ns2Waiting(place uint8) (n int) {
	for i := range s.queue.Len() {
		if s.queue.At(i).place == place {
			n++
		}
	}
	return n
}
