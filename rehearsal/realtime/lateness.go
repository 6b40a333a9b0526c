package realtime

import (
	"math/bits"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Tolerance is how late a delivery may be without counting as behind: the
// frame reaches the host as late through the interrupt moderation and the USB
// polling of real cards (one USB microframe is 125 µs, one full-speed frame
// 1 ms). The next event starts from model time whatever the delay, so what is
// within it changes neither airtime nor order, only one frame's delay.
const Tolerance = time.Millisecond

// lateness accounts how far behind model time deliveries are. A delivery that
// is due at model time m and handed to the host at r ≥ m is r − m late.
//
//   - mean, p99 and worst are over all deliveries of the window,
//   - the sum is the wall time during which the emulation was behind by more
//     than Tolerance: the length of the union of the intervals [m + Tolerance, r].
//     Deliveries that wait together therefore count once, and a stall of the
//     machine counts for as long as frames were due in it.
//
// A frame that a host sends is stamped with the time at which it is read, so a
// stall while nothing is due is not seen here; it delays the host as a busy
// host would.
type lateness struct {
	from    time.Duration // the window's start
	events  uint64
	total   time.Duration
	worst   time.Duration
	behind  time.Duration
	reached time.Duration // end of the union so far
	buckets [64 * bucketsPerOctave]uint64
}

// bucketsPerOctave keeps a percentile within an eighth of its value.
const bucketsPerOctave = 8

func (l *lateness) begin(at time.Duration) { *l = lateness{from: at, reached: at} }

// add counts one delivery; calls come in order of both times.
func (l *lateness) add(due, done time.Duration) {
	late := max(0, done-due)
	l.events++
	l.total += late
	l.worst = max(l.worst, late)
	l.buckets[bucket(late)]++
	if from := max(due+Tolerance, l.reached); done > from {
		l.behind += done - from
	}
	l.reached = max(l.reached, done)
}

// bucket is an octave of nanoseconds and an eighth in it.
func bucket(d time.Duration) int {
	n := uint64(d)
	if n < bucketsPerOctave {
		return int(n)
	}
	octave := bits.Len64(n) - 1
	return octave*bucketsPerOctave + int(n>>(octave-3))&(bucketsPerOctave-1)
}

// bucketTop is the longest delay in a bucket.
func bucketTop(b int) time.Duration {
	if b < bucketsPerOctave {
		return time.Duration(b)
	}
	octave, part := b/bucketsPerOctave, uint64(b%bucketsPerOctave)
	return time.Duration((bucketsPerOctave+part+1)<<(octave-3) - 1)
}

// end is the record of the window that ends now.
func (l *lateness) end(at time.Duration) wire.Lateness {
	out := wire.Lateness{Source: "medium", WindowS: (at - l.from).Seconds(), Events: l.events,
		SumS: l.behind.Seconds(), WorstUs: micros(l.worst)}
	if l.events > 0 {
		out.MeanUs = micros(l.total) / float64(l.events)
		out.P99Us = micros(min(l.worst, l.quantile(0.99)))
	}
	return out
}

func (l *lateness) quantile(q float64) time.Duration {
	need := uint64(q * float64(l.events))
	var seen uint64
	for b, n := range l.buckets {
		seen += n
		if seen > need {
			return bucketTop(b)
		}
	}
	return l.worst
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
