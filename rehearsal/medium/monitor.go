package medium

import "time"

// FrameLoss is a lost data frame, one for each receiver that it was for.
type FrameLoss struct {
	At   time.Duration
	Node int // that sent it, or could not
	Peer int // that should have had it; -1 when there is none
	// Flow is "src:port>dst:port/proto" of the IPv4 packet inside, without
	// ports for a later fragment and for protocols that have none; empty when
	// it is not IPv4.
	Flow string
	Seq  uint32 // TCP's sequence number, the IPv4 identification of others
	// Cause is what made the last attempt fail for a frame that was given up.
	Cause Cause
	// RetryLimit tells a unicast frame given up after all retries.
	RetryLimit bool
}
