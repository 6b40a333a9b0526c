package packets

import (
	"math"
	"math/bits"
)

// Delays are a set of times in nanoseconds: their number, mean and extremes are
// exact, percentiles within 1/128. Its memory does not grow.
type Delays struct {
	N        uint64
	sum      float64
	MinNs    int64
	MaxNs    int64
	buckets  []uint32
	negative uint64 // clocks that disagree: they count as the smallest
}

const subBits = 6 // each power of two in 64 parts

func (d *Delays) add(ns int64) {
	if d.buckets == nil {
		d.buckets, d.MinNs, d.MaxNs = make([]uint32, (64-subBits)<<subBits), ns, ns
	}
	d.N++
	d.sum += float64(ns)
	d.MinNs, d.MaxNs = min(d.MinNs, ns), max(d.MaxNs, ns)
	if ns < 0 {
		d.negative++
		return
	}
	d.buckets[bucket(uint64(ns))]++
}

// bucket numbers times linearly below 2^subBits and then logarithmically.
func bucket(v uint64) int {
	n := bits.Len64(v)
	if n <= subBits {
		return int(v)
	}
	shift := n - subBits - 1
	return (shift+1)<<subBits | int(v>>shift)&(1<<subBits-1)
}

// middle is the middle of a bucket.
func middle(b int) float64 {
	if b < 1<<subBits {
		return float64(b)
	}
	shift := b>>subBits - 1
	low := uint64(1<<subBits|b&(1<<subBits-1)) << shift
	return float64(low) + float64(uint64(1)<<shift-1)/2
}

// MeanNs is the mean; NaN without any.
func (d *Delays) MeanNs() float64 {
	if d.N == 0 {
		return math.NaN()
	}
	return d.sum / float64(d.N)
}

// PercentileNs is the smallest time that at least the share p of them do not
// exceed; NaN without any.
func (d *Delays) PercentileNs(p float64) float64 {
	if d.N == 0 {
		return math.NaN()
	}
	rank := max(1, uint64(math.Ceil(p*float64(d.N))))
	at := d.negative
	if at >= rank {
		return float64(d.MinNs)
	}
	for b, n := range d.buckets {
		if at += uint64(n); at >= rank {
			return min(max(middle(b), float64(d.MinNs)), float64(d.MaxNs))
		}
	}
	return float64(d.MaxNs)
}
