package manet

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestSequenceNumbersWrap(t *testing.T) {
	for _, c := range []struct {
		a, b  uint16
		after bool
	}{{1, 0, true}, {0, 1, false}, {5, 5, false}, {0, 0xffff, true}, {0xffff, 0, false}, {0x7fff, 0, true},
		{0, 0x8001, true}} {
		if got := After16(c.a, c.b); got != c.after {
			t.Errorf("After16(%#x, %#x) = %v", c.a, c.b, got)
		}
	}
	// Of two different numbers one is the newer, never both.
	for b := range 0x10000 {
		if After16(0x1234, uint16(b)) == After16(uint16(b), 0x1234) && b != 0x1234 {
			t.Fatalf("no order between 0x1234 and %#x", b)
		}
	}
	if !After32(0, 0xffffffff) || After32(0xffffffff, 0) || After32(7, 7) || !After32(0x80000001, 0x7fffffff) {
		t.Error("After32 does not wrap")
	}
}

func TestBufferIsBounded(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	buffer := NewBuffer[int](2, 4, 30*time.Second)
	var out []int
	for i := range 3 {
		out = append(out, buffer.Put(Time(i), a, i)...)
	}
	if !slices.Equal(out, []int{0}) {
		t.Errorf("the third packet to one destination pushed out %v, want the first", out)
	}
	out = nil
	for i := 3; i < 6; i++ {
		out = append(out, buffer.Put(Time(i), []netip.Addr{b, b, c}[i-3], i)...)
	}
	if !slices.Equal(out, []int{1}) || buffer.Len() != 4 {
		t.Errorf("the fifth packet pushed out %v, %d held; want the oldest, 4", out, buffer.Len())
	}
	if got := buffer.Take(b); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("taken %v", got)
	}
	if got := buffer.Expire(30*time.Second + 5); !slices.Equal(got, []int{2}) || buffer.Len() != 1 {
		t.Errorf("expired %v, %d held", got, buffer.Len())
	}
	buffer.MaxAge = 0
	if got := buffer.Expire(time.Hour); got != nil {
		t.Errorf("without an age %v expired", got)
	}
}

// Times that are further apart than an int of 32 bits has nanoseconds keep their order, too.
func TestDelayedComesByTime(t *testing.T) {
	turn := &Turn{}
	d := NewDelayed[int](turn, 1, "full")
	for i, at := range []Time{9, 3, 0, 6, 3} {
		d.Put(at*time.Second, i)
	}
	turn.Begin(10 * time.Second)
	if got := slices.Collect(d.Due); !slices.Equal(got, []int{2, 1, 4, 3, 0}) {
		t.Errorf("what waited came as %v", got)
	}
}

func TestJitterRepeats(t *testing.T) {
	x, y := NewJitter(7), NewJitter(7)
	for range 1000 {
		a := x.Below(time.Second)
		if a != y.Below(time.Second) || a < 0 || a >= time.Second {
			t.Fatal("not the same delays, or out of range")
		}
	}
	if x.Below(0) != 0 || x.Below(-1) != 0 {
		t.Error("an empty range gives a delay")
	}
}
