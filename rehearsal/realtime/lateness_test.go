package realtime

import (
	"testing"
	"time"
)

func TestLatenessCountsWallTimeOnce(t *testing.T) {
	ms := time.Millisecond
	var l lateness
	l.begin(0)
	l.add(1*ms, 1*ms+20*time.Microsecond) // within the tolerance
	// A stall from 10 to 20 ms with three frames due in it: behind from the
	// first one's tolerance on, once.
	for _, due := range []time.Duration{11 * ms, 12 * ms, 15 * ms} {
		l.add(due, 20*ms)
	}
	l.add(30*ms, 33*ms)
	got := l.end(100 * ms)
	if want := ((20*ms - 11*ms - Tolerance) + (3*ms - Tolerance)).Seconds(); got.SumS != want {
		t.Errorf("behind for %g s, want %g", got.SumS, want)
	}
	if got.Events != 5 || got.WorstUs != 9000 || got.WindowS != 0.1 || got.Source != "medium" {
		t.Errorf("window %+v", got)
	}
	within(t, "mean", got.MeanUs, (20+9000+8000+5000+3000)/5.0, 1e-9)
}

func TestLatenessPercentile(t *testing.T) {
	var l lateness
	l.begin(0)
	for i := range 1000 {
		l.add(time.Duration(i)*time.Second, time.Duration(i)*time.Second+time.Duration(i)*time.Microsecond)
	}
	got := l.end(time.Hour)
	within(t, "p99", got.P99Us, 990, 0.13)
	for _, d := range []time.Duration{0, 1, 7, 8, 9, 15, 16, 1000, 123456, time.Hour} {
		if top := bucketTop(bucket(d)); top < d || float64(top) > 1.126*float64(d)+1 {
			t.Errorf("%d ns is in a bucket up to %d ns", d, top)
		}
	}
	if empty := (&lateness{}).end(time.Second); empty.Events != 0 || empty.P99Us != 0 {
		t.Errorf("a window without deliveries: %+v", empty)
	}
}
