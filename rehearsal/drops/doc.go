// Package drops tells what the kernel of an emulated node threw away before it
// could reach the radio: packets that had no route, and packets whose next hop
// did not answer ARP.
//
// There are two sources, and neither alone is enough:
//
//   - Counter reads the kernel's own counters of a network namespace. They are
//     there on every kernel and count all that was refused, also what never
//     became a packet: without a route, a connect() and the send of a datagram
//     end with an error before there is a packet at all.
//   - Watch follows the tracepoint skb:kfree_skb with a BPF program and tells
//     single packets: those of an established TCP connection, and those that
//     were to be forwarded, routes that say "unreachable" included. It needs root, and a kernel with BTF that gives
//     reasons for its drops (5.17 for some, 6.x for all of them).
//
// What happens to a packet after it has entered the emulated radio, and what a
// node does about any of it, are other packages' business.
package drops

import (
	"time"
)

// Reason is why a packet did not get to the interface.
type Reason int

// The reasons.
const (
	// NoRoute: the kernel knew no way to the destination.
	NoRoute Reason = iota
	// Unreachable: a packet to be forwarded met a route that says so, as babeld
	// keeps one for a while in the place of a route that it has lost. The
	// kernel's counters of missing routes leave it out.
	Unreachable
	// NoNeighbour: the next hop did not answer ARP, or too many packets
	// waited for its answer.
	NoNeighbour

	reasons
)

// Drop is one packet that did not get to an interface.
type Drop struct {
	Boot   time.Duration // boot clock
	Netns  uint64        // inode of the network namespace
	Reason Reason
	// Packet is the beginning of the IPv4 packet: its header and the first
	// bytes of what it carries. Where the kernel had not written the header
	// yet, this one has the length, the addresses and the protocol only;
	// a length above what IPv4 has is 0.
	Packet []byte
}
