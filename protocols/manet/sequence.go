package manet

import "math/rand/v2"

// After16 reports whether the 16-bit sequence number a is newer than b, where
// numbers wrap: RFC 3626 section 19. Numbers exactly half the space apart are
// ordered by their value, as there.
func After16(a, b uint16) bool {
	return a > b && a-b <= 0x7fff || b > a && b-a > 0x7fff
}

// After32 reports whether the 32-bit sequence number a is newer than b, by
// signed subtraction: RFC 3561 section 6.1.
func After32(a, b uint32) bool { return int32(a-b) > 0 }

// Jitter is a deterministic source of delays: the same seed gives the same
// delays.
type Jitter struct{ pcg rand.PCG }

// NewJitter makes the source of a seed.
func NewJitter(seed uint64) *Jitter {
	return &Jitter{pcg: *rand.NewPCG(seed, 0x6d616e6574)} // "manet"
}

// Below is uniform in [0, limit); 0 for a limit that is not positive.
func (j *Jitter) Below(limit Time) Time {
	if limit <= 0 {
		return 0
	}
	return Time(j.pcg.Uint64() % uint64(limit))
}

// Uint32 is a number to start a sequence from.
func (j *Jitter) Uint32() uint32 { return uint32(j.pcg.Uint64() >> 32) }
