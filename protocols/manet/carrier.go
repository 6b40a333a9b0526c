package manet

import "net/netip"

// A carrier is a protocol that carries data itself instead of having the kernel
// do it along routes: DSR, whose packets hold their route in a header of their
// own. Its runner gives it every data packet of the node and every packet of
// its IP protocol number, and sets no kernel route for it; the protocol buffers
// what waits. Events of a carrier are Outgoing and Received in place of
// NeedRoute, RouteUsed and Packet; its actions are Transmit and Deliver in
// place of Send, SetRoute, DeleteRoute, Release and Drop. A Drop with
// Unreachable and a Report mean what they mean for others.

// Outgoing is a data packet that this node's own kernel sends: a whole IPv4
// packet, which is the protocol's to keep and to change.
type Outgoing struct{ Packet []byte }

// Received is a packet of the protocol's own that came in over a link: a whole
// IPv4 packet, header included, which is the protocol's to keep and to change.
// Its addresses need not name this node: the source of a source route and its
// end stand there while it is on its way.
type Received struct {
	Interface int
	From      netip.Addr // the neighbour that sent the frame; not valid where the runner does not know
	Overheard bool       // the frame was meant for another node
	Packet    []byte
}

// Undelivered takes the place of LinkFailed where the runner has the packet of
// the Transmit back that a neighbour did not take; it may go another way.
type Undelivered struct {
	Interface int
	Neighbor  netip.Addr
	Packet    []byte // the protocol's to keep and to change
}

func (Outgoing) event()    {}
func (Received) event()    {}
func (Undelivered) event() {}

// Transmit sends a whole IPv4 packet to a neighbour, whatever its header's
// destination is. The runner writes the header's checksum. Where the neighbour
// does not take it, LinkFailed or Undelivered follows.
type Transmit struct {
	Interface int
	To        netip.Addr // a neighbour; not valid: everybody on the link
	Packet    []byte     // the runner's to keep
	Messages  []Message  // what is routing overhead in it, for counting by kind
}

// Deliver hands a data packet, as it was before the protocol took it, to this
// node's own kernel. Its memory is the runner's to use again.
type Deliver struct{ Packet []byte }

func (Transmit) action() {}
func (Deliver) action()  {}
