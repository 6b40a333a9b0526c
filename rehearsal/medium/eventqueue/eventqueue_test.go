package eventqueue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Events come by their times, those of one time by kind, and those of one kind as they were pushed, whatever was
// pushed and popped in between.
func TestEventsComeInOrder(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	type entry struct {
		at    time.Duration
		kind  Kind
		order uint32
	}
	var q Queue
	var waits []entry
	for i := range uint32(20000) {
		if e := (entry{time.Duration(rng.IntN(50)), Kind(rng.IntN(8)), i}); len(waits) < 300 {
			q.Push(e.kind, Event{At: e.at, Gen: i})
			waits = append(waits, e)
		}
		if rng.IntN(3) > 0 && len(waits) > 0 {
			first := slices.MinFunc(waits, func(a, b entry) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.order, b.order))
			})
			if e := q.Pop(); e.Gen != first.order || e.At != first.at || e.Kind() != first.kind {
				t.Fatalf("seed %d: after %d events came %d, want %d", seed, i+1, e.Gen, first.order)
			}
			waits = slices.DeleteFunc(waits, func(e entry) bool { return e == first })
		}
	}
}
