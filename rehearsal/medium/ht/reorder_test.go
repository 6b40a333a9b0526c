package ht

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever comes when, it goes up once, in order, and as soon as nothing is missing before it. Behind a
// gap it waits for the sender or for 100 ms.
func TestReorderAgainstASortedList(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var r Reorder[*uint64]
		var up []uint64
		took := func(f *uint64) { up = append(up, *f) }
		at, least := time.Duration(0), uint64(0) // next is what the model waits for
		got := map[uint64]time.Duration{}        // in the window, by the model
		var want []uint64
		forward := func(next uint64) {
			for ; least < next; least++ {
				if _, is := got[least]; is {
					want = append(want, least)
					delete(got, least)
				}
			}
			for _, is := got[least]; is; _, is = got[least] {
				want = append(want, least)
				delete(got, least)
				least++
			}
		}
		for range 2000 {
			at += time.Duration(rng.IntN(5000)) * time.Microsecond
			for {
				first := uint64(1 << 62)
				for n := range got {
					first = min(first, n)
				}
				since, any := got[first]
				if !any || since+100*time.Millisecond > at {
					break
				}
				forward(first)
			}
			r.Release(at, took)
			if rng.IntN(50) == 0 {
				next := least + uint64(rng.IntN(80))
				forward(next)
				r.MoveTo(next, took)
			}
			n := least + uint64(rng.IntN(12))
			if rng.IntN(100) == 0 {
				n += 60 + uint64(rng.IntN(60))
			}
			if back := uint64(rng.IntN(3)); n >= back {
				n -= back
			}
			_, twice := got[n]
			fresh := n >= least && !twice
			if fresh {
				got[n] = at
				if n >= least+Window {
					forward(n - Window + 1)
				}
				forward(least)
			}
			if took := r.Take(n, &n, at, took); took != fresh {
				t.Fatalf("seed %d: number %d taken: %v, want %v", seed, n, took, fresh)
			}
			if !slices.Equal(up, want) {
				t.Fatalf("seed %d: went up %v, want %v", seed, up[max(0, len(up)-5):], want[max(0, len(want)-5):])
			}
		}
		if len(up) < 500 || !slices.IsSorted(up) {
			t.Fatalf("seed %d: %d went up", seed, len(up))
		}
	}
}
