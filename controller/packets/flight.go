package packets

import (
	"math"
	"slices"
)

// key tells one transmission of a segment from another: Linux numbers a
// connection's packets one by one in IP's identification.
type key struct {
	seq uint32
	id  uint16
}

// transmission is one packet on its way.
type transmission struct {
	key
	at       int64
	bytes    int32
	older    uint32 // how many numbers back the one before it in its bucket is
	inWindow bool
	landed   bool

	landedAbove bool // where it was seen first at the receiver
}

// mostInFlight is how many packets of a stream may be sent after one before it
// is given up: some 13 s at 54 Mbit/s.
const mostInFlight = 1 << 16

// flight is a stream's newest transmissions, numbered from 1 as they were sent:
// a ring that grows while the oldest is young. They are found by their keys as
// in a hash table whose chains run through the ring, the newest first.
type flight struct {
	ring []transmission // number n is at n modulo its length, a power of two
	// heads are the newest numbers of each bucket, of a transmission that may be
	// forgotten; 0: none.
	heads []uint64
	last  uint64 // number of the newest
	used  uint64 // how many are kept
}

// youngNs is how long a transmission is kept at least while the ring may grow:
// longer than any queue, any link layer's retries and a routing daemon, which
// may hold it for 30 s at each hop, keep a packet.
const youngNs = 120_000_000_000

func (f *flight) put(k key, x transmission) {
	if f.used == uint64(len(f.ring)) && !f.grow(x.at) {
		f.used--
	}
	f.last++
	f.used++
	x.key = k
	*f.place(f.last) = x
	f.chain(f.last)
}

// place is where a number's transmission is, or will be.
func (f *flight) place(number uint64) *transmission {
	return &f.ring[number&uint64(len(f.ring)-1)]
}

// bucket is where the chain of a key begins.
func (f *flight) bucket(k key) *uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
	hash := (uint64(k.seq)<<16 | uint64(k.id)) * golden
	return &f.heads[hash>>32&uint64(len(f.heads)-1)]
}

// chain puts a transmission before the others of its bucket.
func (f *flight) chain(number uint64) {
	x := f.place(number)
	head := f.bucket(x.key)
	x.older = uint32(min(number-*head, math.MaxUint32))
	*head = number
}

// grow makes room unless the oldest is old enough to be forgotten.
func (f *flight) grow(now int64) bool {
	n := len(f.ring)
	if n > 0 && (now-f.place(f.last-f.used+1).at > youngNs || n >= mostInFlight) {
		return false
	}
	old := *f
	f.ring, f.heads = make([]transmission, max(64, 2*n)), make([]uint64, max(64, 2*n))
	for number := f.last - f.used + 1; number <= f.last; number++ {
		*f.place(number) = *old.place(number)
		f.chain(number)
	}
	return true
}

// find gives the newest transmission of a key and its number; nil when it is
// not known.
func (f *flight) find(k key) (*transmission, uint64) {
	if f.used == 0 {
		return nil, 0
	}
	for back := f.last - *f.bucket(k); back < f.used; {
		x := f.place(f.last - back)
		if x.key == k {
			return x, f.last - back
		}
		back += uint64(x.older)
	}
	return nil, 0
}

// unacked are the segments that wait for their ACK, in order.
type unacked struct {
	low      int64 // everything before is acknowledged
	segments []segment
}

type segment struct {
	end, at int64
	spoilt  bool // sent more than once: whose ACK it is cannot be told (Karn and Partridge)
}

// mostUnacked bounds the memory of a stream whose ACKs are not in the capture.
const mostUnacked = 1 << 16

func (u *unacked) add(end, at int64, spoilt bool) {
	if len(u.segments) == mostUnacked {
		u.segments = slices.Delete(u.segments, 0, mostUnacked/2)
	}
	if n := len(u.segments); n == cap(u.segments) {
		u.segments = slices.Grow(u.segments, max(64, n)) // append would grow it by a quarter, and copy more often
	}
	u.segments = append(u.segments, segment{end, at, spoilt})
}

// spoil marks the segments that a retransmission covers.
func (u *unacked) spoil(part span) {
	i, _ := slices.BinarySearchFunc(u.segments, part.from+1, func(s segment, at int64) int {
		if s.end < at {
			return -1
		}
		return 1
	})
	for ; i < len(u.segments); i++ {
		u.segments[i].spoilt = true
		if u.segments[i].end >= part.to {
			return
		}
	}
}

// ack takes an acknowledgement, and tells when the segment was sent whose last
// byte is the last that it acknowledges again.
func (u *unacked) ack(to int64) (sentAt int64, ok bool) {
	if to <= u.low {
		return 0, false
	}
	u.low = to
	n := 0
	for n < len(u.segments) && u.segments[n].end <= to {
		s := u.segments[n]
		sentAt, ok = s.at, s.end == to && !s.spoilt
		n++
	}
	u.segments = u.segments[:copy(u.segments, u.segments[n:])]
	return sentAt, ok
}
