package manetd

import (
	"container/heap"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// timers holds a protocol's timers by time, equal ones in the order in which
// they were set.
type timers struct {
	byTime due
	byKey  map[manet.TimerKey]*timer
	serial uint64
}

type timer struct {
	key    manet.TimerKey
	at     manet.Time
	serial uint64
	place  int
}

func (t *timers) set(key manet.TimerKey, at manet.Time) {
	t.stop(key)
	t.serial++
	fresh := &timer{key: key, at: at, serial: t.serial}
	t.byKey[key] = fresh
	heap.Push(&t.byTime, fresh)
}

func (t *timers) stop(key manet.TimerKey) {
	if old := t.byKey[key]; old != nil {
		heap.Remove(&t.byTime, old.place)
		delete(t.byKey, key)
	}
}

// next is when the first timer is due.
func (t *timers) next() (manet.Time, bool) {
	if len(t.byTime) == 0 {
		return 0, false
	}
	return t.byTime[0].at, true
}

// take removes the first timer where it is due.
func (t *timers) take(now manet.Time) (manet.TimerKey, bool) {
	if len(t.byTime) == 0 || t.byTime[0].at > now {
		return manet.TimerKey{}, false
	}
	first := heap.Pop(&t.byTime).(*timer)
	delete(t.byKey, first.key)
	return first.key, true
}

type due []*timer

func (d due) Len() int { return len(d) }
func (d due) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].serial < d[j].serial
}
func (d due) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}
func (d *due) Push(x any) {
	t := x.(*timer)
	t.place = len(*d)
	*d = append(*d, t)
}
func (d *due) Pop() any {
	old := *d
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return last
}
