package manet

import (
	"cmp"
	"slices"
)

// MaxDelayed is how much waits for its jitter at most.
const MaxDelayed = 256

// Delayed holds what waits for its jitter, by time, and sets a timer for it.
type Delayed[T any] struct {
	turn  *Turn
	timer uint8
	full  string
	queue []delayed[T]
}

type delayed[T any] struct {
	at   Time
	what T
}

// NewDelayed makes one without anything in it. timer is the kind of its timer,
// full what is counted when something finds no room.
func NewDelayed[T any](turn *Turn, timer uint8, full string) *Delayed[T] {
	return &Delayed[T]{turn: turn, timer: timer, full: full}
}

// Put holds something until a time.
func (d *Delayed[T]) Put(at Time, what T) {
	if len(d.queue) >= MaxDelayed {
		d.turn.Count(d.full)
		return
	}
	d.queue = append(d.queue, delayed[T]{at, what})
	slices.SortStableFunc(d.queue, func(a, b delayed[T]) int { return cmp.Compare(a.at, b.at) })
	d.wake()
}

// Due takes out what is due, in order.
func (d *Delayed[T]) Due(yield func(T) bool) {
	for len(d.queue) > 0 && d.queue[0].at <= d.turn.Now {
		what := d.queue[0].what
		d.queue = slices.Delete(d.queue, 0, 1)
		if !yield(what) {
			break
		}
	}
	if len(d.queue) > 0 {
		d.wake()
	}
}

func (d *Delayed[T]) wake() {
	d.turn.Act(SetTimer{Key: TimerKey{Kind: d.timer}, At: d.queue[0].at})
}

// Remove drops some of what waits.
func (d *Delayed[T]) Remove(which func(T) bool) {
	d.queue = slices.DeleteFunc(d.queue, func(w delayed[T]) bool { return which(w.what) })
}

// Len is how much waits.
func (d *Delayed[T]) Len() int { return len(d.queue) }
