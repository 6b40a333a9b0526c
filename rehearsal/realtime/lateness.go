package realtime

import (
	"errors"
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
	since   time.Duration // where the union's part of the first delivery begins
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
	from := max(due+Tolerance, l.reached)
	if l.events == 1 {
		l.since = from
	}
	l.behind += max(0, done-from)
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
	out := wire.Lateness{Source: wire.LateMedium, WindowS: (at - l.from).Seconds(), Events: l.events,
		SumS: l.behind.Seconds(), WorstUs: micros(l.worst)}
	if l.events > 0 {
		out.MeanUs = micros(l.total) / float64(l.events)
		out.P99Us = micros(min(l.worst, l.quantile(0.99)))
	}
	return out
}

// bin is the bin that ends then.
func (l *lateness) bin(to time.Duration) lateBin { return lateBin{l.from, to, l.since, l.end(to)} }

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

const (
	// binEvery is for how long deliveries are counted together: where a window was is
	// known only afterwards.
	binEvery = 100 * time.Millisecond
	// maxBins are those of the longest window that a plan may have, and of what comes
	// after it.
	maxBins = int((time.Hour + 5*time.Minute) / binEvery)
)

// lateBins are the lateness by bins of model time. Bins without a delivery are not
// kept: while nothing is on the air nothing wakes for them.
type lateBins struct {
	present lateness
	ended   []lateBin     // in order of time, at most maxBins
	known   time.Duration // what was before is forgotten
}

// lateBin is the lateness of [from, to).
type lateBin struct {
	from, to time.Duration
	since    time.Duration // before from: a stall that ended in this bin began then
	late     wire.Lateness
}

// add counts one delivery in the bin of the moment at which it was done. What is
// behind goes on from bin to bin: a stall counts whole where it ended.
func (l *lateBins) add(due, done time.Duration) {
	if done >= l.present.from+binEvery {
		l.end()
		reached := l.present.reached
		l.present.begin(done.Truncate(binEvery))
		l.present.reached = reached
	}
	l.present.add(due, done)
}

func (l *lateBins) end() {
	if l.present.events == 0 {
		return
	}
	if len(l.ended) == maxBins { // in large steps, not one by one
		l.ended = append(l.ended[:0:0], l.ended[maxBins/10:]...)
		l.known = l.ended[0].from
	}
	l.ended = append(l.ended, l.present.bin(l.present.from+binEvery))
}

var errNotCovered = errors.New("find lateness of the window: the radio was not on, or it is too long ago")

// over joins the bins that an interval touches, until now: up to a bin more at either
// end, which WindowS counts too. A stall that began before them counts whole, one that ended
// after them up to their end. Mean and worst are of what was delivered in that time, but worst
// is at least what such a stall had reached by the end; the 99th percentile is the highest of
// the bins', an upper bound.
func (l *lateBins) over(open, closed, now time.Duration) (wire.Lateness, error) {
	out := wire.Lateness{Source: wire.LateMedium}
	if open < l.known || closed > now {
		return out, errNotCovered
	}
	bins := l.ended
	if l.present.events > 0 {
		bins = append(bins[:len(bins):len(bins)], l.present.bin(min(now, l.present.from+binEvery)))
	}
	var total float64
	from, to := open, closed
	for _, b := range bins {
		if b.to <= open {
			continue
		}
		if b.from >= closed { // the first such: what later bins have began after the window
			behind := max(0, to-max(from, b.since))
			out.SumS += behind.Seconds()
			out.WorstUs = max(out.WorstUs, micros(behind))
			break
		}
		from, to = min(from, b.from), max(to, b.to)
		out.SumS += b.late.SumS
		out.Events += b.late.Events
		total += b.late.MeanUs * float64(b.late.Events)
		out.P99Us = max(out.P99Us, b.late.P99Us)
		out.WorstUs = max(out.WorstUs, b.late.WorstUs)
	}
	out.WindowS = (to - from).Seconds()
	if out.Events > 0 {
		out.MeanUs = total / float64(out.Events)
	}
	return out, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
