package realtime

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
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

// A window has the bins that it touches, and those without a delivery cost nothing.
func TestBinsOfAWindowAreJoined(t *testing.T) {
	ms, us := time.Millisecond, time.Microsecond
	var l lateBins
	for _, d := range []struct{ at, late time.Duration }{{50 * ms, 9 * ms}, {120 * ms, 100 * us}, {199 * ms, 500 * us},
		{250 * ms, 3 * ms}, {7310 * ms, 8 * ms}} {
		l.add(d.at-d.late, d.at)
	}
	for _, c := range []struct {
		open, closed, now time.Duration
		want              wire.Lateness
	}{
		{100 * ms, 300 * ms, 8000 * ms,
			wire.Lateness{WindowS: 0.2, Events: 3, MeanUs: 1200, WorstUs: 3000, SumS: 0.002}},
		{150 * ms, 1000 * ms, 8000 * ms,
			wire.Lateness{WindowS: 0.9, Events: 3, MeanUs: 1200, WorstUs: 3000, SumS: 0.002}},
		{1000 * ms, 7000 * ms, 8000 * ms, wire.Lateness{WindowS: 6}},
		{7000 * ms, 7310 * ms, 7350 * ms,
			wire.Lateness{WindowS: 0.35, Events: 1, MeanUs: 8000, WorstUs: 8000, SumS: 0.007}},
		{0, 7320 * ms, 7400 * ms, wire.Lateness{WindowS: 7.4, Events: 5, MeanUs: 4120, WorstUs: 9000, SumS: 0.017}},
	} {
		got, err := l.over(c.open, c.closed, c.now)
		p99 := got.P99Us
		got.P99Us = 0
		c.want.Source = wire.LateMedium
		if err != nil || !alike(got, c.want) || p99 > got.WorstUs || (p99 > 0) != (got.Events > 0) {
			t.Errorf("from %v to %v: %+v (%v), p99 %g, want %+v", c.open, c.closed, got, err, p99, c.want)
		}
	}
	for _, w := range [][2]time.Duration{{-1, 100 * ms}, {100 * ms, 8001 * ms}} {
		if _, err := l.over(w[0], w[1], 8000*ms); err == nil {
			t.Errorf("window %v passes, in which the radio was not on", w)
		}
	}
}

// alike compares what is summed to a nanosecond.
func alike(a, b wire.Lateness) bool {
	near := func(x, y float64) bool { return x-y < 1e-6 && y-x < 1e-6 }
	return a.Source == b.Source && a.Events == b.Events && near(a.WindowS, b.WindowS) && near(a.SumS, b.SumS) &&
		near(a.MeanUs, b.MeanUs) && near(a.WorstUs, b.WorstUs)
}

// A stall over the ends of bins counts whole, where it ended.
func TestAStallOverManyBinsCountsWhole(t *testing.T) {
	ms := time.Millisecond
	var l lateBins
	l.add(95*ms, 95*ms)
	for _, due := range []time.Duration{101 * ms, 180 * ms, 330 * ms} {
		l.add(due, 450*ms)
	}
	got, err := l.over(100*ms, 500*ms, 600*ms)
	if want := (450*ms - 101*ms - Tolerance).Seconds(); err != nil || got.SumS != want {
		t.Errorf("behind for %g s (%v), want %g", got.SumS, err, want)
	}
}

// A stall that begins in a window and ends after it counts up to the window's close, in which
// the bin is that the close lies in where it had a delivery.
func TestAStallOverTheCloseCountsUpToIt(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		before []time.Duration // done in time
		due    []time.Duration // done at 10400 ms
		closed time.Duration
		want   wire.Lateness
	}{
		{"closed with a bin", []time.Duration{9500 * ms}, []time.Duration{9600 * ms, 9700 * ms}, 10000 * ms,
			wire.Lateness{WindowS: 10, Events: 1, SumS: 0.399, WorstUs: 399000}},
		{"closed within a bin of deliveries", []time.Duration{10010 * ms}, []time.Duration{10020 * ms}, 10030 * ms,
			wire.Lateness{WindowS: 10.1, Events: 1, SumS: 0.079, WorstUs: 79000}},
		{"nothing delivered", nil, []time.Duration{1000 * ms}, 10000 * ms,
			wire.Lateness{WindowS: 10, SumS: 8.999, WorstUs: 8999000}},
		{"due after the close", []time.Duration{9500 * ms}, []time.Duration{10000 * ms}, 10000 * ms,
			wire.Lateness{WindowS: 10, Events: 1}},
	} {
		var l lateBins
		for _, at := range c.before {
			l.add(at, at)
		}
		for _, due := range c.due {
			l.add(due, 10400*ms)
		}
		l.add(10550*ms, 10560*ms) // another stall, in no window
		c.want.Source = wire.LateMedium
		if got, err := l.over(0, c.closed, 11000*ms); err != nil || !alike(got, c.want) {
			t.Errorf("%s: %+v (%v), want %+v", c.name, got, err, c.want)
		}
	}
}

// The bins of an hour are kept, and what was before them is told to be forgotten.
func TestTheBinsOfTheLongestWindowAreKept(t *testing.T) {
	var l lateBins
	const hours = 3 * time.Hour
	for at := time.Duration(0); at < hours; at += binEvery {
		l.add(at, at+time.Microsecond)
	}
	got, err := l.over(hours-time.Hour, hours-binEvery, hours)
	if want := uint64(time.Hour/binEvery) - 1; err != nil || got.Events != want {
		t.Errorf("an hour has %d deliveries (%v), want %d", got.Events, err, want)
	}
	if _, err := l.over(0, time.Second, hours); err == nil || len(l.ended) > maxBins {
		t.Errorf("%d bins are kept, and of the first second they say %v", len(l.ended), err)
	}
}
