package delay

import (
	"sync"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// queue emits an end's records in their order, by a goroutine of its own: to emit
// one may wait for the disk, and datagrams have their times.
type queue struct {
	emit func(tBootNs int64, b wire.Body) error

	lock     sync.Mutex // guards what follows
	waiting  []pending
	emitting bool
	failure  error // of emit, the first: nothing is emitted after it
	emitter  sync.WaitGroup
}

type pending struct {
	tBootNs int64
	body    wire.Body
}

// record has a record emitted, and does not wait until it is.
func (q *queue) record(tBootNs int64, b wire.Body) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.waiting = append(q.waiting, pending{tBootNs, b})
	if !q.emitting {
		q.emitting = true
		q.emitter.Go(q.emitAll)
	}
}

func (q *queue) emitAll() {
	for {
		q.lock.Lock()
		batch := q.waiting
		q.waiting = nil
		if q.emitting = len(batch) > 0 && q.failure == nil; !q.emitting {
			q.lock.Unlock()
			return
		}
		q.lock.Unlock()
		for _, r := range batch {
			if err := q.emit(r.tBootNs, r.body); err != nil {
				q.lock.Lock()
				q.failure = err
				q.lock.Unlock()
				break
			}
		}
	}
}

// failed is why records are no longer emitted; nil: they are.
func (q *queue) failed() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.failure
}

// flush waits until all is emitted. Nobody may record meanwhile.
func (q *queue) flush() error {
	q.emitter.Wait()
	return q.failed()
}
