// Package eventqueue is what is to happen at which model time. What that is, is for its user to say.
package eventqueue

import "time"

// Kind is what happens. Of events of one time those of the lowest kind come first.
type Kind uint8

// Event is one entry of the queue. It carries a generation: raising that of what it is about makes the entry void,
// which is cheaper than removing it.
type Event struct {
	At    time.Duration
	order uint64 // among events of one time: by kind, and then first scheduled, first run
	Node  int32  // what it is about
	Gen   uint32
}

// kindShift leaves room for more events of a kind than any channel lives long enough to have.
const kindShift = 56

// Kind is what happens.
func (e *Event) Kind() Kind { return Kind(e.order >> kindShift) }

// Queue is a heap by (At, order), in which each has four below it: half as many levels, each in two cache
// lines. It has no pointers, which would cost when the garbage collector runs.
type Queue struct {
	heap []Event
	seq  uint64
}

// All is the events in no order, the first of them at the front. They are the queue's own.
func (q *Queue) All() []Event { return q.heap }

func (q *Queue) before(a, b *Event) bool {
	return a.At < b.At || a.At == b.At && a.order < b.order
}

// Push adds an event.
func (q *Queue) Push(kind Kind, e Event) {
	q.seq++
	e.order = uint64(kind)<<kindShift | q.seq
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !q.before(&e, &q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// Pop takes out the first event, of which there must be one.
func (q *Queue) Pop() Event {
	last := len(q.heap) - 1
	top, e := q.heap[0], q.heap[last]
	q.heap = q.heap[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= last {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, last); j++ {
			if q.before(&q.heap[j], &q.heap[least]) {
				least = j
			}
		}
		if !q.before(&q.heap[least], &e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
	return top
}
