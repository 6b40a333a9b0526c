package propagation

import "math"

const (
	// phasorSteps is how finely a turn is tabulated. A wave's value is off by at most π/4096 of
	// its amplitude, which is 62 dB below it: no fade that counts is as deep.
	phasorSteps = 4096
	// phasorOffset keeps phases above 0 within 1000 km, where they still have 1/8192 of a step.
	phasorOffset = 1 << 38
)

// phasors is a turn: cosine and sine of the middle of each step.
var phasors = func() (out [phasorSteps][2]float32) {
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * (float64(i) + 0.5) / phasorSteps)
		out[i] = [2]float32{float32(cos), float32(sin)}
	}
	return out
}()

// packed is the same in whole numbers: the cosine in the upper half of each, the sine in the lower, both
// with an offset that keeps them above 0. Half of a fader's waves add up to less than a half holds. They are off by
// at most 76 dB below the amplitude.
var packed = func() (out [phasorSteps]uint32) {
	for i, p := range phasors {
		whole := func(v float32) uint32 { return uint32(math.Round(packedUnit*float64(v)) + packedOffset) }
		out[i] = whole(p[0])<<16 | whole(p[1])
	}
	return out
}()

const (
	packedUnit   = 3200
	packedOffset = 3201
)

// phasor is the one of a phase in steps.
func phasor(steps float64) *[2]float32 { return &phasors[int64(steps+phasorOffset)&(phasorSteps-1)] }

// inSteps is an angle (radians) as a phase.
func inSteps(angle float64) float64 { return angle * phasorSteps / (2 * math.Pi) }
