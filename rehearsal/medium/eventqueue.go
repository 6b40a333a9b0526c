package medium

import "time"

type eventKind uint8

const (
	evAccess  eventKind = iota // a station's backoff ran out
	evRespond                  // SIFS after a reception, or after CTS
	evTimeout                  // no CTS or ACK came
	evTxEnd                    // a transmission leaves the air
	evUnheard                  // nothing may have followed another's RTS
)

// event is one entry of the queue. Station events carry a generation: raising
// the station's own makes the entry void, which is cheaper than removing it.
type event struct {
	at   time.Duration
	seq  uint64 // order among events of the same time: first scheduled, first run
	kind eventKind
	node int32
	gen  uint32
	tx   *transmission
}

// eventQueue is a binary heap by (at, seq).
type eventQueue struct {
	heap []event
	seq  uint64
}

func (q *eventQueue) before(a, b *event) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *eventQueue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.before(&q.heap[i], &q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *eventQueue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && q.before(&q.heap[down], &q.heap[least]) {
				least = down
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
