// Package ratecontrol chooses the rates of one station's unicast frames, for package medium:
// a fixed rate, one by the signal, and one by success alone. It knows modes by their place in
// a list from the slowest on, and neither frames nor the air.
package ratecontrol

import "time"

// heardFor is how long a heard SNR counts. After it the lowest rate is used until the
// peer is heard again: a peer that went out of a high rate's reach in silence could
// otherwise never answer.
const heardFor = 2 * time.Second

// Fixed always takes one mode.
type Fixed int

// Pick is the mode for the next attempt.
func (r Fixed) Pick(int, int, time.Duration) int { return int(r) }

// Heard is of no use to it.
func (r Fixed) Heard(int, float64, time.Duration) {}

// Result is of no use to it.
func (r Fixed) Result(int, int, bool) {}

// SNR takes the highest mode that the last-heard SNR of the peer carries.
type SNR struct {
	minSNR []float64 // by mode, ratio
	peers  []heardSNR
}

// NewSNR is one for a station, by the least SNR of each mode.
func NewSNR(minSNR []float64, peers int) *SNR {
	return &SNR{minSNR: minSNR, peers: make([]heardSNR, peers)}
}

type heardSNR struct {
	snr float64
	at  time.Duration
	any bool
}

// Pick is the mode for the next attempt.
func (r *SNR) Pick(peer, _ int, at time.Duration) int {
	if peer < 0 {
		return 0
	}
	h := &r.peers[peer]
	if !h.any || at-h.at > heardFor {
		return 0
	}
	best := 0
	for i, min := range r.minSNR {
		if h.snr >= min {
			best = i
		}
	}
	return best
}

// Heard notes at which SNR a frame of the peer came in.
func (r *SNR) Heard(peer int, snr float64, at time.Duration) {
	r.peers[peer] = heardSNR{snr, at, true}
}

// Result is of no use to it.
func (r *SNR) Result(int, int, bool) {}
