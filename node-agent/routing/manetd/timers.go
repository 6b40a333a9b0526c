package manetd

import (
	"container/heap"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// timers holds a protocol's timers by time, equal ones in the order in which
// they were set.
type timers struct {
	due    queue // by when they are due
	late   queue // by when they are late
	byKey  map[manet.TimerKey]*timer
	serial uint64
}

// A timer has its place in both queues.
const (
	byDue = iota
	byLate
	queues
)

type timer struct {
	key    manet.TimerKey
	at     [queues]manet.Time
	place  [queues]int
	serial uint64
}

func newTimers() timers {
	return timers{due: queue{by: byDue}, late: queue{by: byLate}, byKey: map[manet.TimerKey]*timer{}}
}

func (t *timers) set(s manet.SetTimer) {
	t.stop(s.Key)
	t.serial++
	fresh := &timer{key: s.Key, at: [queues]manet.Time{s.At, s.At + s.Slack}, serial: t.serial}
	t.byKey[s.Key] = fresh
	heap.Push(&t.due, fresh)
	heap.Push(&t.late, fresh)
}

func (t *timers) stop(key manet.TimerKey) {
	if old := t.byKey[key]; old != nil {
		heap.Remove(&t.due, old.place[byDue])
		heap.Remove(&t.late, old.place[byLate])
		delete(t.byKey, key)
	}
}

// next is when the daemon has to wake for a timer, if nothing else wakes it.
func (t *timers) next() (manet.Time, bool) {
	if len(t.late.list) == 0 {
		return 0, false
	}
	return t.late.list[0].at[byLate], true
}

// take removes the first timer where it is due.
func (t *timers) take(now manet.Time) (manet.TimerKey, bool) {
	if len(t.due.list) == 0 || t.due.list[0].at[byDue] > now {
		return manet.TimerKey{}, false
	}
	key := t.due.list[0].key
	t.stop(key)
	return key, true
}

// queue is a heap of timers.
type queue struct {
	by   int
	list []*timer
}

func (q *queue) Len() int { return len(q.list) }
func (q *queue) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	return a.at[q.by] < b.at[q.by] || a.at[q.by] == b.at[q.by] && a.serial < b.serial
}
func (q *queue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].place[q.by], q.list[j].place[q.by] = i, j
}
func (q *queue) Push(x any) {
	t := x.(*timer)
	t.place[q.by] = len(q.list)
	q.list = append(q.list, t)
}
func (q *queue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list[len(q.list)-1] = nil
	q.list = q.list[:len(q.list)-1]
	return last
}
