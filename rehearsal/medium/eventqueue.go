package medium

import "time"

type eventKind uint8

// In the order in which those of one time run: a frame that ends makes room for
// one that begins, and one that begins at a detection's end is still in it.
const (
	evTxEnd   eventKind = iota // a transmission leaves the air
	evUnheard                  // nothing may have followed another's RTS
	evTimeout                  // no CTS or ACK came
	evRespond                  // SIFS after a reception, or after CTS
	evBeacon                   // a beacon of a station's own is due
	evAccess                   // a station's backoff ran out
	evDetect                   // receivers decide which frame they lock on to
	evRelease                  // frames have waited for those before them for long; gen is their sender
)

// event is one entry of the queue. Station events carry a generation: raising
// the station's own makes the entry void, which is cheaper than removing it.
type event struct {
	at    time.Duration
	order uint64 // among events of one time: by kind, and then first scheduled, first run
	node  int32  // of evTxEnd and evDetect the transmission
	gen   uint32
}

// kindShift leaves room for more events of a kind than any channel lives long enough to have.
const kindShift = 56

func (e *event) kind() eventKind { return eventKind(e.order >> kindShift) }

// eventQueue is a heap by (at, order), in which each has four below it: half as many levels, each in two cache
// lines. It has no pointers, which would cost when the garbage collector runs.
type eventQueue struct {
	heap []event
	seq  uint64
}

func (q *eventQueue) before(a, b *event) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (q *eventQueue) push(kind eventKind, e event) {
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

func (q *eventQueue) pop() event {
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
