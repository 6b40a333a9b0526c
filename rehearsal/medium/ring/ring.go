// Package ring is a queue that is open at both ends, without waste: a ring that grows
// to what it once held and stays so.
package ring

// Queue is empty as its zero value.
type Queue[T any] struct {
	ring []T
	head int
	len  int
}

// Len is how many elements are in the queue.
func (q *Queue[T]) Len() int { return q.len }

// At is the i-th element from the front, of Len.
func (q *Queue[T]) At(i int) T { return *q.at(i) }

func (q *Queue[T]) at(i int) *T { return &q.ring[(q.head+i)%len(q.ring)] }

// Push puts an element behind all others.
func (q *Queue[T]) Push(e T) {
	q.grow()
	q.len++
	*q.at(q.len - 1) = e
}

// PushFront puts an element before all others.
func (q *Queue[T]) PushFront(e T) {
	q.grow()
	q.head = (q.head + len(q.ring) - 1) % len(q.ring)
	q.len++
	*q.at(0) = e
}

// PushBehind puts an element behind the last one that precedes it.
func (q *Queue[T]) PushBehind(e T, precedes func(T) bool) {
	q.Push(e)
	for i := q.len - 1; i > 0 && !precedes(*q.at(i - 1)); i-- {
		*q.at(i - 1), *q.at(i) = *q.at(i), *q.at(i - 1)
	}
}

// Pop takes the first element away; there must be one.
func (q *Queue[T]) Pop() T {
	var none T
	e := *q.at(0)
	*q.at(0) = none
	q.head = (q.head + 1) % len(q.ring)
	q.len--
	return e
}

// PopLast takes the last element away; there must be one.
func (q *Queue[T]) PopLast() T {
	var none T
	e := *q.at(q.len - 1)
	*q.at(q.len - 1) = none
	q.len--
	return e
}

// RemoveIf asks about each element in turn, and removes those that it is to.
func (q *Queue[T]) RemoveIf(removes func(T) bool) {
	for range q.len {
		if e := q.Pop(); !removes(e) {
			q.Push(e)
		}
	}
}

func (q *Queue[T]) grow() {
	if q.len < len(q.ring) {
		return
	}
	bigger := make([]T, max(8, 2*len(q.ring)))
	for i := range q.len {
		bigger[i] = *q.at(i)
	}
	q.ring, q.head = bigger, 0
}
