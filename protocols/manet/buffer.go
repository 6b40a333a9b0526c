package manet

import (
	"net/netip"
	"time"
)

// Buffer holds data packets that wait for a route, for a runner. It is bounded
// in packets per destination, in packets altogether and in age; the oldest
// give way. T is the runner's packet.
type Buffer[T any] struct {
	PerDestination int
	Total          int
	MaxAge         time.Duration // 0: none

	held  map[netip.Addr][]heldPacket[T]
	count int
}

type heldPacket[T any] struct {
	since  Time
	packet T
}

// NewBuffer makes a buffer. ns-2 and the drafts of DSR use 64 packets for
// 30 s, which the runners here keep to.
func NewBuffer[T any](perDestination, total int, maxAge time.Duration) *Buffer[T] {
	return &Buffer[T]{PerDestination: perDestination, Total: total, MaxAge: maxAge,
		held: map[netip.Addr][]heldPacket[T]{}}
}

// Len is the number of packets held.
func (b *Buffer[T]) Len() int { return b.count }

// Put holds a packet and returns those that had to give way to it.
func (b *Buffer[T]) Put(now Time, destination netip.Addr, packet T) []T {
	out := b.Expire(now)
	queue := append(b.held[destination], heldPacket[T]{now, packet})
	b.count++
	b.held[destination] = queue
	if len(queue) > b.PerDestination {
		out = append(out, b.pop(destination))
	}
	for b.count > b.Total {
		out = append(out, b.pop(b.oldest()))
	}
	return out
}

// Take removes and returns all packets held for a destination, oldest first.
func (b *Buffer[T]) Take(destination netip.Addr) []T {
	queue := b.held[destination]
	out := make([]T, 0, len(queue))
	for _, h := range queue {
		out = append(out, h.packet)
	}
	b.count -= len(queue)
	delete(b.held, destination)
	return out
}

// Expire removes and returns the packets that are too old.
func (b *Buffer[T]) Expire(now Time) []T {
	var out []T
	for destination, queue := range b.held {
		for b.MaxAge > 0 && len(queue) > 0 && now-queue[0].since > b.MaxAge {
			out = append(out, b.pop(destination))
			queue = b.held[destination]
		}
	}
	return out
}

func (b *Buffer[T]) pop(destination netip.Addr) T {
	queue := b.held[destination]
	packet := queue[0].packet
	if len(queue) == 1 {
		delete(b.held, destination)
	} else {
		b.held[destination] = queue[1:]
	}
	b.count--
	return packet
}

// oldest is the destination whose first packet is held longest; equal ages go
// by address, so that a simulation repeats itself.
func (b *Buffer[T]) oldest() netip.Addr {
	var found netip.Addr
	for destination, queue := range b.held {
		if !found.IsValid() || queue[0].since < b.held[found][0].since ||
			queue[0].since == b.held[found][0].since && destination.Less(found) {
			found = destination
		}
	}
	return found
}
