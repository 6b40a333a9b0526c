package manetd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Packets are read in batches: handing each to the loop's goroutine by itself
// would cost more than all else that is done with it.
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

// keep gives the packet that was read to room, with nothing behind it in use.
func (s *slab) keep(n int) []byte {
	packet := s.free[: n : n+tailroom]
	s.free = s.free[n+tailroom:]
	return packet
}

// drain calls read until it would have to wait, or often enough. It says
// whether anything was read, and the first error.
func drain(read func() error) (some bool, err error) {
	for range batchPackets {
		err := read()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return some, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return true, err
		}
		some = true
	}
	return true, nil
}
