// Package packets computes what happened to a flow's packets from captures at
// its two ends: delays, loss, retransmissions, reordering, the time to connect.
// It reads both as streams and holds no more than what is in flight. Which
// captures, whose clocks and what to call the results is its caller's to say.
package packets

import (
	"io"
	"net/netip"
)

// End is one end's capture.
type End struct {
	Name    string
	Capture io.Reader
	// Above is the same capture once more. With it flows are looked at where the
	// application stands: a packet leaves when its socket has handed it on, be it
	// to the interface or to the device above it, through which a routing daemon
	// holds and carries data. Without it they are looked at on the interface.
	Above io.Reader
	// Common gives the time that both ends share, in nanoseconds, of a packet's
	// own; nil takes packets' own times.
	Common func(timeNs int64) int64
	// UncertaintyNs is by how much a time by Common may be wrong.
	UncertaintyNs int64
	// OpenNs and CloseNs are the window by common time, as this end saw it.
	OpenNs, CloseNs int64
}

// Flow tells a flow's data packets from all others.
type Flow struct {
	Name        string
	UDP         bool
	From, To    netip.Addr
	Port        uint16 // the server's
	Reverse     bool   // the server sends
	ClientFirst uint16 // first port of the client's data sockets; 0: any, and all are data
	Streams     int
	// ByStamp has a datagram be sent when iperf3 stamped it, not when the capture
	// has it: what waits below the socket for a neighbour's address left before.
	ByStamp bool
}

// Result is the outcome of one flow. Only data packets count, and of those the
// sender sent within its window; each transmission of a segment is a packet.
type Result struct {
	Flow               string
	Sent               uint64 // packets that left the sender
	SentBytes          uint64 // their payload
	Arrived            uint64 // of those, packets that reached the receiver
	ArrivedTwice       uint64 // copies of packets that had arrived already
	Delivered          uint64 // of those that arrived, packets with at least one byte that was new
	DeliveredBytes     uint64 // new payload bytes at the receiver by its window's close, without a hole before them
	Retransmitted      uint64 // packets with at least one byte that was sent before
	RetransmittedBytes uint64
	OutOfOrder         uint64             // packets that arrived after one that was sent later (RFC 4737, 3.3)
	Unmatched          uint64             // packets at the receiver that the sender's capture does not have
	Merged             uint64             // packets whose length differs between the ends: merged or split by offloads
	OneWay             Delays             // of each packet that arrived
	RoundTrip          Delays             // at the sender: from a segment sent once to the ACK of its last byte
	FirstSegment       Delays             // one a stream: from its first SYN to the receiver's first new payload
	Handshake          Delays             // one a stream, at the sender: from its first SYN to the SYN-ACK
	Ask                Ask                // of TCP
	Numbers            map[uint16]Numbers // of UDP, by the client's port
	OpenNs, CloseNs    int64              // the sender's window, by common time
	StreamsSeen        int
}

// Ask is how the flow's client came to its first connection, be it for data or
// for control, by the client's capture alone.
type Ask struct {
	AtNs            *int64 // when its first SYN in the window was seen, by common time; nil: none was
	AnsweredNs      *int64 // when the first SYN-ACK behind the window's opening came; nil: none did
	OpenNs, CloseNs int64  // the client's window, by common time
}

// EndResult is what one end's capture says apart from flows.
type EndResult struct {
	Packets        uint64
	RoutingPackets uint64                  // of routing protocols, without data, sent by this end within its window
	RoutingBytes   uint64                  // those, behind the link's header, and RoutingHeaders
	RoutingHeaders uint64                  // bytes of headers that routing put before data
	Messages       map[string]MessageCount // in those, by type, where the protocol's are told apart
	RoutingCut     uint64                  // of those, packets of which not all messages could be read
	ARPPackets     uint64                  // sent by this end within its window
	Undecoded      uint64                  // frames cut before their headers end
	KernelDropped  *uint64
}

// leastAhead is how far the sender's capture is read before the receiver's, beyond
// what their times may be wrong by, so that a packet's leaving is known before its coming.
const leastAhead = 50_000_000

// Analyse reads two captures to their ends. An error in one says where it is.
func Analyse(sender, receiver End, flows []Flow) ([]Result, [2]EndResult, error) {
	a := &analysis{flows: make([]*flow, len(flows))}
	for i, f := range flows {
		a.flows[i] = newFlow(f)
		a.flows[i].above = sender.Above != nil
		total, client := &a.flows[i].total, sender
		if f.Reverse {
			client = receiver
		}
		total.OpenNs, total.CloseNs = sender.OpenNs, sender.CloseNs
		total.Ask.OpenNs, total.Ask.CloseNs = client.OpenNs, client.CloseNs
	}
	ahead := leastAhead + sender.UncertaintyNs + receiver.UncertaintyNs
	ends := [2]*end{{End: sender}, {End: receiver}}
	for _, e := range ends {
		if err := e.open(); err != nil {
			return nil, [2]EndResult{}, err
		}
	}
	for !ends[0].done || !ends[1].done {
		e, take := ends[1], a.received
		if ends[1].done || !ends[0].done && ends[0].at <= ends[1].at+ahead {
			e, take = ends[0], a.sent
		}
		if e.fine {
			take(e, &e.header, e.at)
		}
		if err := e.next(); err != nil {
			return nil, [2]EndResult{}, err
		}
	}
	out := make([]Result, len(flows))
	for i, f := range a.flows {
		out[i] = f.result()
	}
	return out, [2]EndResult{ends[0].finish(), ends[1].finish()}, nil
}

// Scan reads one capture for what it says apart from flows.
func Scan(e End) (EndResult, error) {
	s := &end{End: e}
	err := s.open()
	for err == nil && !s.done {
		err = s.next()
	}
	if err != nil {
		return EndResult{}, err
	}
	return s.finish(), nil
}
