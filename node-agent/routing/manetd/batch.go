package manetd

// Packets are read and sent in batches, so that a call of the kernel is for
// several of them.
const batchPackets = 32

// tailroom is left behind each packet for the headers of a carrier, so that it
// need not be copied to another place.
const tailroom = 160

// slab is memory for packets, which is used again: what a carrier forwards would
// otherwise be all garbage, and made of memory that is cleared first.
type slab struct {
	bytes int // of a packet, with its tailroom
	free  [][]byte
}

// slabFree bounds what is kept for packets to come.
const slabFree = 8 * batchPackets

func newSlab(mtu int) *slab { return &slab{bytes: max(mtu, 1500) + tailroom} }

// take gives room for a packet, of the length that one may have.
func (s *slab) take() []byte {
	if len(s.free) == 0 {
		for chunk := make([]byte, batchPackets/2*s.bytes); len(chunk) > 0; chunk = chunk[s.bytes:] {
			s.free = append(s.free, chunk[:s.bytes:s.bytes])
		}
	}
	last := len(s.free) - 1
	room := s.free[last]
	s.free = s.free[:last]
	return room[:s.bytes-tailroom]
}

// put gives a packet back that nobody has a use for any more. One that is not
// from here, or no longer begins where its room does, is left to the garbage
// collector.
func (s *slab) put(packet []byte) {
	if cap(packet) == s.bytes && len(s.free) < slabFree {
		s.free = append(s.free, packet)
	}
}

// sameRoom reports whether two packets end in the same piece of memory,
// wherever in it they begin.
func sameRoom(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:cap(a)][cap(a)-1] == &b[:cap(b)][cap(b)-1]
}
