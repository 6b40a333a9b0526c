package errorrate

import (
	"math"
	"sync"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Curve is the error rate of a mode over the SNR, tabulated: the negative logarithm of the
// chance that one decision is right, as a logarithm, at every curveStepDb. Between two points
// it is taken as straight, which is off by less than 0.1 % of the error rate where that is
// above 1 in 10^9.
type Curve []float64

// A curve lies between these two SNRs.
const (
	CurveFromDb, CurveToDb, curveStepDb = -30.0, 50.0, 0.05

	neverWrong = -700.0 // logarithm of a rate that is below all that counts
)

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
	c := make(Curve, int(math.Round((CurveToDb-CurveFromDb)/curveStepDb))+1)
	for i := range c {
		rate := s.SymbolErrorRate(propagation.DbToRatio(CurveFromDb + float64(i)*curveStepDb))
		c[i] = math.Max(neverWrong, math.Log(-math.Log1p(-rate)))
	}
	curves.Store(s, c)
	return c
}

// At is the negative logarithm of the chance that one decision is right.
func (c Curve) At(snr float64) float64 {
	x := (propagation.RatioToDb(snr) - CurveFromDb) / curveStepDb
	switch {
	case !(x > 0):
		return math.Exp(c[0])
	case x >= float64(len(c)-1):
		return math.Exp(c[len(c)-1])
	}
	i := int(x)
	v := c[i] + (x-float64(i))*(c[i+1]-c[i])
	if v <= neverWrong {
		return 0
	}
	return math.Exp(v)
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
