package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The queue holds what a slice holds to which the same is done.
func TestAQueueIsASlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	var want []int
	for step := range 20_000 {
		switch e := rng.IntN(100); rng.IntN(8) {
		case 0, 1:
			q.Push(e)
			want = append(want, e)
		case 2:
			q.PushFront(e)
			want = slices.Insert(want, 0, e)
		case 3:
			q.PushBehind(e, func(other int) bool { return other <= e })
			i := len(want)
			for i > 0 && want[i-1] > e {
				i--
			}
			want = slices.Insert(want, i, e)
		case 4, 5:
			if len(want) > 0 {
				if got := q.Pop(); got != want[0] {
					t.Fatalf("step %d: Pop is %d, want %d", step, got, want[0])
				}
				want = want[1:]
			}
		case 6:
			if len(want) > 0 {
				if got := q.PopLast(); got != want[len(want)-1] {
					t.Fatalf("step %d: PopLast is %d, want %d", step, got, want[len(want)-1])
				}
				want = want[:len(want)-1]
			}
		case 7:
			odd := func(e int) bool { return e%2 == 1 && e < 20 }
			q.RemoveIf(odd)
			want = slices.DeleteFunc(want, odd)
		}
		got := make([]int, q.Len())
		for i := range got {
			got[i] = q.At(i)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
	}
}
