package medium

import "fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"

// frame is a data frame from Enqueue until the MAC is done with it.
type frame struct {
	id        uint64
	ethernet  []byte
	dst       MAC
	to        int // station; toAll or toNobody
	mpduBytes int
	delivered bool // handed up at its receiver
	class     Class
	place     uint8 // in ns-2's queue
	dsr       bool  // which is the one with DSR
	mpdu      mpdu  // with Config.MPDUs
	ba        blockACKed
}

const (
	toAll    = -1 // broadcast and multicast
	toNobody = -2 // unicast to an address that is not on this channel
)

// newFrame copies an Ethernet frame into a used or new buffer: a long rehearsal
// must not feed the garbage collector.
func (c *Core) newFrame(ethernet []byte) *frame {
	f := c.takeFrame()
	f.ethernet = append(f.ethernet[:0], ethernet...)
	f.mpduBytes = dot11.MPDUBytes(len(ethernet))
	f.class = classOf(ethernet)
	c.address(f, MAC(ethernet[:6]))
	if c.phy.HT != nil && f.to != toAll {
		f.mpduBytes += dot11.QoSBytes
	}
	return f
}

// takeFrame is a used or new buffer.
func (c *Core) takeFrame() *frame {
	n := len(c.freeFrames)
	if n == 0 {
		return &frame{ethernet: make([]byte, 0, 2048)}
	}
	f := c.freeFrames[n-1]
	c.freeFrames = c.freeFrames[:n-1]
	f.delivered, f.ba = false, blockACKed{}
	return f
}

// address says who a frame is for.
func (c *Core) address(f *frame, dst MAC) {
	f.dst = dst
	switch to, known := c.byMAC[dst]; {
	case dst.group():
		f.to = toAll
	case known:
		f.to = to
	default:
		f.to = toNobody
	}
}

func (c *Core) freeFrame(f *frame) { c.freeFrames = append(c.freeFrames, f) }
