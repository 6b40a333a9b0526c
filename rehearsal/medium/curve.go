package medium

import (
	"math"
	"sync"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// curve is the error rate of a mode over the SNR, tabulated: the negative logarithm of the
// chance that one decision is right, as a logarithm, at every curveStepDb. Between two points
// it is taken as straight, which is off by less than 0.1 % of the error rate where that is
// above 1 in 10^9.
type curve []float64

const (
	curveFromDb, curveToDb, curveStepDb = -30.0, 50.0, 0.05

	neverWrong = -700.0 // logarithm of a rate that is below all that counts
)

// curves keeps them: each is worked out once in a process.
var curves sync.Map // of scheme to curve

// scheme is what a mode's curve depends on.
type scheme struct {
	modulation modulation
	code       codeRate
	soft       bool
}

func (s scheme) curve() curve {
	if c, is := curves.Load(s); is {
		return c.(curve)
	}
	c := make(curve, int(math.Round((curveToDb-curveFromDb)/curveStepDb))+1)
	for i := range c {
		rate := s.symbolErrorRate(propagation.DbToRatio(curveFromDb + float64(i)*curveStepDb))
		c[i] = math.Max(neverWrong, math.Log(-math.Log1p(-rate)))
	}
	curves.Store(s, c)
	return c
}

// at is the negative logarithm of the chance that one decision is right.
func (c curve) at(snr float64) float64 {
	x := (propagation.RatioToDb(snr) - curveFromDb) / curveStepDb
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

// lostShare is the chance of an error that goes with the logarithm of the chance of none.
func lostShare(logSuccess float64) float64 { return -math.Expm1(logSuccess) }
