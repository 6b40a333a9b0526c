// Package manet is the contract between a routing protocol for mobile ad hoc
// networks and whatever runs it: a daemon with sockets and kernel routes, or a
// simulation in virtual time. A protocol is a pure state machine: an event and
// the time go in, actions come out. Sockets, clocks, goroutines and sources of
// randomness stay outside; the seed of a protocol's jitter is part of its
// configuration. The protocols themselves stay out too.
package manet

import (
	"errors"
	"net/netip"
	"time"
)

// ErrMalformed is behind every error of a protocol's parser.
var ErrMalformed = errors.New("malformed")

// Time is the time since an arbitrary start, by a clock that never steps
// back. The zero Time is that start.
type Time = time.Duration

// Node is one protocol instance on one node. It is not safe for concurrent
// use: the runner calls it from one goroutine.
type Node interface {
	// Handle takes an event in at a time and returns what is to be done, in
	// order. now never goes back from one call to the next. The slice and what
	// it refers to are valid until the next call, except for the Data of a
	// Send, which the runner may keep and must not change.
	Handle(now Time, event Event) []Action
	// State describes the node for people and records.
	State(now Time) State
}

// Interface is one network interface that a protocol runs on. A protocol
// refers to an interface by its index in the list that it was made with.
type Interface struct {
	Name    string
	Address netip.Addr
	MTU     int // bytes of an IP packet
}

// Event is one of the types below.
type Event interface{ event() }

// Start is the first event, once the runner is ready. Interfaces count as up.
type Start struct{}

// Packet is a control packet that arrived: the payload above UDP (or above IP
// where a protocol has an IP protocol number of its own).
type Packet struct {
	Interface int
	From      netip.Addr // source of the IP header
	Unicast   bool       // it was addressed to this node alone
	TTL       int        // of the IP header as received; 0 is unknown
	Data      []byte     // not kept by the protocol beyond the call
}

// Timer says that the time of a SetTimer came.
type Timer struct{ Key TimerKey }

// InterfaceUp and InterfaceDown say that an interface of the node itself went
// up or down. Either may be repeated.
type (
	InterfaceUp   struct{ Interface int }
	InterfaceDown struct{ Interface int }
)

// LinkFailed says that the link layer gave up delivering a packet to a
// neighbour. Destination is where the packet was going; it is not valid when
// the runner does not know, or the packet was no data.
type LinkFailed struct {
	Interface   int
	Neighbor    netip.Addr
	Destination netip.Addr
	Known       bool // the runner knows what the packet was
	Type        byte // first octet of the protocol's own message that it was; 0: none of its own
}

// NeedRoute says that the runner holds a data packet for which no route is
// installed. The runner keeps it, within the bounds of its Buffer, until the
// protocol answers with Release or Drop for the destination, then or later.
type NeedRoute struct {
	Destination netip.Addr
	Source      netip.Addr
	Local       bool       // this node is the source
	Previous    netip.Addr // neighbour that it came from; not valid when Local or unknown
}

// RouteUsed says that data went along a route, or came to its end at this node
// (Destination is its own then), since the last such event for the same pair.
// Source is not valid where the runner cannot tell.
type RouteUsed struct {
	Destination netip.Addr
	Source      netip.Addr
	Local       bool
	Previous    netip.Addr
}

func (Start) event()         {}
func (Packet) event()        {}
func (Timer) event()         {}
func (InterfaceUp) event()   {}
func (InterfaceDown) event() {}
func (LinkFailed) event()    {}
func (NeedRoute) event()     {}
func (RouteUsed) event()     {}

// Action is one of the types below.
type Action interface{ action() }

// Send transmits a control packet.
type Send struct {
	Interface int
	To        netip.Addr // a neighbour; not valid: the interface's broadcast address
	TTL       int        // of the IP header
	Data      []byte
	Messages  []Message // what Data holds, for counting by kind
}

// Message is one message within a control packet.
type Message struct {
	Kind      string // "HELLO", "TC", "RREQ"
	Bytes     int
	Forwarded bool // on behalf of another node
}

// TimerKey names a timer. Kind is the protocol's own.
type TimerKey struct {
	Kind uint8
	Addr netip.Addr
}

// SetTimer asks for a Timer event with this key at a time; a time that is past
// means at once. It replaces an earlier one of the same key. The event may come
// later by up to Slack, together with another: waking for each of the looks at
// its tables would be most of what a node at rest costs.
type SetTimer struct {
	Key   TimerKey
	At    Time
	Slack Time
}

// StopTimer forgets a timer; nothing happens where none is set.
type StopTimer struct{ Key TimerKey }

// Hop is where a packet goes next. Addr is on the link of the interface,
// whatever its prefix says.
type Hop struct {
	Addr      netip.Addr
	Interface int
}

// SetRoute installs a route or replaces the one to the same destination. Next
// holds at least one hop, best first: data goes over the first, and the others
// are what the protocol will fall back on, which a check for loops follows too.
type SetRoute struct {
	Destination netip.Prefix
	Next        []Hop
	Hops        int     // to the destination along the best; 0 is unknown
	Metric      float64 // the protocol's own, less is better
	Cause       string
}

// DeleteRoute removes the route to a destination.
type DeleteRoute struct {
	Destination netip.Prefix
	Cause       string
}

// Release lets held packets to a destination go along the route that was set.
type Release struct{ Destination netip.Addr }

// Drop discards held packets to a destination. Unreachable asks the runner to
// tell local senders so, as by ICMP.
type Drop struct {
	Destination netip.Addr
	Reason      string
	Unreachable bool
	Packets     [][]byte // what a carrier held; the runner holds the packets of other protocols itself
}

// Report is something worth recording: a discovery's latency, a neighbour
// lost, a hostile packet. Value has the unit that its kind's name ends in.
type Report struct {
	Kind  string
	Addr  netip.Addr
	Value float64
	Note  string
}

func (Send) action()        {}
func (SetTimer) action()    {}
func (StopTimer) action()   {}
func (SetRoute) action()    {}
func (DeleteRoute) action() {}
func (Release) action()     {}
func (Drop) action()        {}
func (Report) action()      {}
