package packets

import "slices"

// key tells one transmission of a segment from another: Linux numbers a
// connection's packets one by one in IP's identification.
type key struct {
	seq uint32
	id  uint16
}

// transmission is one packet on its way.
type transmission struct {
	at       int64
	number   uint64 // its place among the stream's packets, from 1
	bytes    int
	inWindow bool
	landed   bool

	landedAbove bool // where it was seen first at the receiver
}

// mostInFlight is how many packets of a stream may be sent after one before it
// is given up: some 13 s at 54 Mbit/s.
const mostInFlight = 1 << 16

// flight is a stream's newest transmissions: a ring that grows while the oldest
// is young.
type flight struct {
	at     map[key]int // place in the ring
	ring   []transmission
	keys   []key
	oldest int
	used   int
}

// youngNs is how long a transmission is kept at least while the ring may grow:
// longer than any queue, any link layer's retries and a routing daemon, which
// may hold it for 30 s at each hop, keep a packet.
const youngNs = 120_000_000_000

func (f *flight) put(k key, x transmission) {
	if f.used == len(f.ring) && !f.grow(x.at) {
		old := f.keys[f.oldest]
		if f.at[old] == f.oldest {
			delete(f.at, old)
		}
		f.oldest = (f.oldest + 1) % len(f.ring)
		f.used--
	}
	i := (f.oldest + f.used) % len(f.ring)
	f.ring[i], f.keys[i] = x, k
	f.at[k] = i
	f.used++
}

// grow makes room unless the oldest is old enough to be forgotten.
func (f *flight) grow(now int64) bool {
	n := len(f.ring)
	if n > 0 && (now-f.ring[f.oldest].at > youngNs || n >= mostInFlight) {
		return false
	}
	ring, keys := make([]transmission, max(64, 2*n)), make([]key, max(64, 2*n))
	copy(ring[copy(ring, f.ring[f.oldest:]):], f.ring[:f.oldest])
	copy(keys[copy(keys, f.keys[f.oldest:]):], f.keys[:f.oldest])
	for k, i := range f.at {
		f.at[k] = (i - f.oldest + n) % n
	}
	f.ring, f.keys, f.oldest = ring, keys, 0
	return true
}

// find gives a transmission, nil when it is not known.
func (f *flight) find(k key) *transmission {
	i, ok := f.at[k]
	if !ok {
		return nil
	}
	return &f.ring[i]
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
