package medium

// frame is a data frame from Enqueue until the MAC is done with it.
type frame struct {
	id        uint64
	ethernet  []byte
	dst       MAC
	to        int // station; toAll or toNobody
	mpduBytes int
	delivered bool // handed up at its receiver
	class     Class
}

const (
	toAll    = -1 // broadcast and multicast
	toNobody = -2 // unicast to an address that is not on this channel
)

// newFrame copies an Ethernet frame into a used or new buffer: a long rehearsal
// must not feed the garbage collector.
func (c *Core) newFrame(ethernet []byte) *frame {
	var f *frame
	if n := len(c.freeFrames); n > 0 {
		f = c.freeFrames[n-1]
		c.freeFrames = c.freeFrames[:n-1]
	} else {
		f = &frame{ethernet: make([]byte, 0, 2048)}
	}
	f.ethernet = append(f.ethernet[:0], ethernet...)
	f.dst = MAC(ethernet[:6])
	f.mpduBytes = mpduBytes(len(ethernet))
	f.delivered = false
	f.class = classOf(ethernet)
	switch to, known := c.byMAC[f.dst]; {
	case f.dst.group():
		f.to = toAll
	case known:
		f.to = to
	default:
		f.to = toNobody
	}
	return f
}

func (c *Core) freeFrame(f *frame) { c.freeFrames = append(c.freeFrames, f) }

// frameQueue is a ring that grows to the interface queue's size and stays.
type frameQueue struct {
	ring []*frame
	head int
	len  int
}

func (q *frameQueue) push(f *frame) {
	if q.len == len(q.ring) {
		bigger := make([]*frame, max(8, 2*len(q.ring)))
		for i := range q.len {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.len)%len(q.ring)] = f
	q.len++
}

func (q *frameQueue) pop() *frame {
	f := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.len--
	return f
}
