package errorrate

import (
	"math"
	"sync"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Curve is the error rate of a mode over the SNR, tabulated: the negative logarithm of the chance that one decision
// is right, at 512 points an octave. Between two points it is taken as straight. It is worked out at every fourth
// of them, and its logarithm taken as straight in between. All that is off by less than 0.1 % of the error rate
// where that is above 1 in 10^9.
type Curve []float64

// A curve lies between these two SNRs, rounded outwards to where it is worked out.
const (
	CurveFromDb, CurveToDb = -30.0, 50.0

	neverWrong = -700.0 // logarithm of a rate that is below all that counts
)

// The points are where these bits of a number's mantissa change.
const (
	workedBits, betweenBits = 7, 2

	workedShift = 52 - workedBits
	pointShift  = workedShift - betweenBits
)

// curveFirst is the first point, as the upper bits of its number.
var curveFirst = workedAt(CurveFromDb) << betweenBits

func workedAt(db float64) int { return int(math.Float64bits(propagation.DbToRatio(db)) >> workedShift) }

// curves keeps them: each is worked out once in a process.
var curves sync.Map // of scheme to curve

// Scheme is what a mode's curve depends on.
type Scheme struct {
	Modulation Modulation
	Code       CodeRate
	Soft       bool // decides softly before it decodes
}

// Curve is the scheme's error rate over the SNR.
func (s Scheme) Curve() Curve {
	if c, is := curves.Load(s); is {
		return c.(Curve)
	}
	logAt := func(worked int) float64 {
		rate := s.SymbolErrorRate(math.Float64frombits(uint64(worked) << workedShift))
		return math.Max(neverWrong, math.Log(-math.Log1p(-rate)))
	}
	var c Curve
	next := logAt(workedAt(CurveFromDb))
	for worked := workedAt(CurveFromDb); worked <= workedAt(CurveToDb); worked++ {
		log := next
		next = logAt(worked + 1)
		for i := range 1 << betweenBits {
			c = append(c, errorRate(log+float64(i)/(1<<betweenBits)*(next-log)))
		}
	}
	c = append(c, errorRate(next))
	curves.Store(s, c)
	return c
}

func errorRate(log float64) float64 {
	if log <= neverWrong {
		return 0
	}
	return math.Exp(log)
}

// At is the negative logarithm of the chance that one decision is right.
func (c Curve) At(snr float64) float64 {
	if !(snr > 0) {
		return c[0]
	}
	bits := math.Float64bits(snr)
	i := int(bits>>pointShift) - curveFirst
	switch {
	case i < 0:
		return c[0]
	case i >= len(c)-1:
		return c[len(c)-1]
	}
	beyond := float64(bits&(1<<pointShift-1)) / (1 << pointShift)
	return c[i] + beyond*(c[i+1]-c[i])
}

// LeastSNR is the least SNR (ratio) at which an error rate that falls with the SNR
// is at most the target, by bisection between -30 and 60 dB.
func LeastSNR(target float64, errorRate func(snr float64) float64) float64 {
	low, high := -30.0, 60.0
	for high-low > 1e-3 {
		mid := (low + high) / 2
		if errorRate(propagation.DbToRatio(mid)) <= target {
			high = mid
		} else {
			low = mid
		}
	}
	return propagation.DbToRatio(high)
}
