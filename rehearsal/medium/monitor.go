package medium

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ipv4"
)

// FrameLoss is a lost data frame, one for each receiver that it was for. A
// broadcast is for those who can notice it: nodes out of its reach are in the
// counters only.
type FrameLoss struct {
	At   time.Duration
	Node int // that sent it, or could not
	Peer int // that should have had it; -1 when there is none
	// Flow is "src:port>dst:port/proto" of the IPv4 packet inside, without
	// ports for a later fragment and for protocols that have none; empty when
	// it is not IPv4. Of data that DSR carries it is the data's.
	Flow string
	Seq  uint32 // TCP's sequence number, the IPv4 identification of others
	// Payload is how many bytes the packet has behind the header of TCP or UDP,
	// also when DSR carries it; -1 when its headers are not there to tell.
	Payload int
	// Cause is what made the last attempt fail for a frame that was given up.
	Cause Cause
	// RetryLimit tells a unicast frame given up after all retries.
	RetryLimit bool

	Src, Dst [4]byte // IPv4 addresses, when Flow is set
}

// report tells the monitor of a loss, when there is one.
func (c *Core) report(node, peer int, ethernet []byte, why Cause, retryLimit bool) {
	if c.cfg.FrameLost == nil {
		return
	}
	loss := FrameLoss{At: c.now, Node: node, Peer: peer, Payload: -1, Cause: why, RetryLimit: retryLimit}
	if ip, is := ipv4.In(ethernet); is {
		loss.Src, loss.Dst = [4]byte(ip[12:16]), [4]byte(ip[16:20])
		loss.Flow, loss.Seq = ipv4.Flow(ip)
		loss.Payload = ipv4.Payload(ip)
	}
	c.cfg.FrameLost(loss)
}

// PacketLoss is the loss of an IPv4 packet that its node's kernel gave up before
// it was a frame: NoRoute, NoNeighbour. Of the packet its beginning is enough.
func PacketLoss(at time.Duration, node int, packet []byte, why Cause) FrameLoss {
	loss := FrameLoss{At: at, Node: node, Peer: -1, Payload: -1, Cause: why}
	if ipv4.Is(packet) {
		loss.Src, loss.Dst = [4]byte(packet[12:16]), [4]byte(packet[16:20])
		loss.Flow, loss.Seq = ipv4.Flow(packet)
		loss.Payload = ipv4.Payload(packet)
	}
	return loss
}
