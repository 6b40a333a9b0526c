package manetd

// Packets are read and sent in batches, so that a call of the kernel is for
// several of them.
const batchPackets = 32

// tailroom is left behind each packet for the headers of a carrier, so that it
// need not be copied to another place.
const tailroom = 160

// slab is memory that packets are read into, side by side.
type slab struct {
	largest int // bytes of a packet
	free    []byte
}

func newSlab(mtu int) *slab { return &slab{largest: max(mtu, 1500)} }

// room is where the next packet may be read to.
func (s *slab) room() []byte {
	if len(s.free) < s.largest+tailroom {
		s.free = make([]byte, batchPackets/2*(s.largest+tailroom))
	}
	return s.free[:s.largest]
}

// take gives room for a packet to the caller, whatever its length will be.
func (s *slab) take() []byte {
	s.room()
	return s.keep(s.largest)
}

// keep gives the packet that was read to room, with nothing behind it in use.
func (s *slab) keep(n int) []byte {
	packet := s.free[: n : n+tailroom]
	s.free = s.free[n+tailroom:]
	return packet
}
