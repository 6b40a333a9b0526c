package manetd

import (
	"math"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// timers are a protocol's, in no order: a protocol has a handful, and one more
// for each destination that it looks for. To look at all of them costs less
// than to keep them sorted.
type timers struct {
	list   []timer
	serial uint64
}

type timer struct {
	manet.SetTimer
	serial uint64 // of timers that are due at once, the one that was set first goes first
}

func (t *timers) find(key manet.TimerKey) int {
	for i := range t.list {
		if t.list[i].Key == key {
			return i
		}
	}
	return -1
}

func (t *timers) set(s manet.SetTimer) {
	t.serial++
	if i := t.find(s.Key); i >= 0 {
		t.list[i] = timer{s, t.serial}
		return
	}
	t.list = append(t.list, timer{s, t.serial})
}

func (t *timers) stop(key manet.TimerKey) {
	if i := t.find(key); i >= 0 {
		t.remove(i)
	}
}

func (t *timers) remove(i int) {
	last := len(t.list) - 1
	t.list[i] = t.list[last]
	t.list = t.list[:last]
}

// never is later than any daemon runs.
const never = manet.Time(math.MaxInt64 / 2)

// next is when the daemon has to wake for a timer, if nothing else wakes it.
func (t *timers) next() manet.Time {
	next := never
	for i := range t.list {
		next = min(next, t.list[i].At+t.list[i].Slack)
	}
	return next
}

// take removes the first timer where it is due.
func (t *timers) take(now manet.Time) (manet.TimerKey, bool) {
	first := -1
	for i := range t.list {
		if a := &t.list[i]; a.At <= now && (first < 0 || a.At < t.list[first].At || a.At == t.list[first].At &&
			a.serial < t.list[first].serial) {
			first = i
		}
	}
	if first < 0 {
		return manet.TimerKey{}, false
	}
	key := t.list[first].Key
	t.remove(first)
	return key, true
}
