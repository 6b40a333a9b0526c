package medium

import "time"

// Cause is why a frame, or one attempt to send it, was lost.
type Cause uint8

// The causes. A unicast frame that is given up is lost to what made its last
// attempt fail.
const (
	// NotLost is no loss.
	NotLost Cause = iota
	// Collision: it would have come through without the others on the air, or
	// the receiver was transmitting or held by another frame.
	Collision
	// ChannelError: noise alone broke it.
	ChannelError
	// OutOfRange: too weak to be noticed, or nobody has that address.
	OutOfRange
	// RadioDead: the medium was switched off (SetDead).
	RadioDead
	// QueueFull: the interface queue had no room.
	QueueFull
	// BadFrame: too short to be Ethernet or too long for 802.11.
	BadFrame
	// HostRefused: the receiving host did not take it (interface down).
	HostRefused
	// NoRoute: the sending or forwarding node's kernel had no route. The frame
	// was never made, so the core never sees it: who runs the core adds it.
	NoRoute
	// NoNeighbour: the next hop did not answer ARP, and the kernel gave up. As
	// with NoRoute, the core never sees it.
	NoNeighbour

	causeCount
)

// String is the cause's name in records: collision, channel_error …
func (c Cause) String() string {
	names := [causeCount]string{"none", "collision", "channel_error", "out_of_range",
		"radio_dead", "queue_full", "bad_frame", "host_refused", "no_route", "no_neighbour"}
	if c >= causeCount {
		return "unknown"
	}
	return names[c]
}

// CauseCounts counts by cause.
type CauseCounts [causeCount]uint64

// Total is the sum over the causes of loss.
func (c CauseCounts) Total() uint64 {
	var sum uint64
	for _, n := range c[NotLost+1:] {
		sum += n
	}
	return sum
}

// Counters are one node's, all cumulative. Every unicast frame that Enqueue was
// given ends once, in the receiver's Delivered or in the sender's Lost; a
// broadcast ends so once for every other node.
type Counters struct {
	Enqueued  uint64 // frames taken into the queue
	Delivered uint64 // frames handed up at this node
	Duplicate uint64 // frames received again after a lost ACK, and not handed up
	Attempts  uint64 // data frames put on the air
	Retries   uint64 // attempts beyond a frame's first, RTS included
	TxFailed  uint64 // unicast frames given up (the receiver may have got one whose ACKs were lost)

	OnAir ClassCounts // frames of all kinds that this node put on the air, by what they are there for

	Lost           CauseCounts // frames of this sender, per receiver
	AttemptsFailed CauseCounts // exchanges of this sender that failed, by what made them
}

// Trace is one event on the air or at the MAC's edge.
type Trace struct {
	At       time.Duration
	Event    string // enqueue | tx | rx | rx_fail | deliver | lost
	Node     int    // where it happened
	Peer     int    // the other node; -1 for broadcast or nobody
	Frame    uint64 // the data frame's number, counted from 1 over the channel
	Kind     string // data | ack | rts | cts
	RateMbps float64
	Cause    Cause
}
