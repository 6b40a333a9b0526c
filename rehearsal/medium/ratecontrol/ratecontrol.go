// Package ratecontrol chooses the rates of one station's unicast frames, for package medium:
// a fixed rate, one by the signal, and one by success alone. It knows modes by their place in
// a list from the slowest on, and neither frames nor the air.
package ratecontrol

import "time"

// heardFor is how long a heard SNR counts. After it the lowest rate is used until the
// peer is heard again: a peer that went out of a high rate's reach in silence could
// otherwise never answer.
const heardFor = 2 * time.Second

// Choice is how an attempt is made.
type Choice struct {
	Mode   int
	RTS    bool // it begins with RTS, whatever the length of its frames
	Sample bool // it shall tell how well its mode does
}

// Fixed always takes one mode.
type Fixed int

// Pick is the choice for the next attempt.
func (r Fixed) Pick(int, int, bool, time.Duration) Choice { return Choice{Mode: int(r)} }

// Tries is 0: it has no limit of them.
func (r Fixed) Tries(int) int { return 0 }

// Heard is of no use to it.
func (r Fixed) Heard(int, float64, time.Duration) {}

// Result is of no use to it.
func (r Fixed) Result(int, int, int, int, time.Duration) {}

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

// Pick is the choice for the next attempt.
func (r *SNR) Pick(peer, _ int, _ bool, at time.Duration) (best Choice) {
	if peer < 0 {
		return best
	}
	h := &r.peers[peer]
	if !h.any || at-h.at > heardFor {
		return best
	}
	for i, min := range r.minSNR {
		if h.snr >= min {
			best.Mode = i
		}
	}
	return best
}

// Tries is 0: it has no limit of them.
func (r *SNR) Tries(int) int { return 0 }

// Heard notes at which SNR a frame of the peer came in.
func (r *SNR) Heard(peer int, snr float64, at time.Duration) {
	r.peers[peer] = heardSNR{snr, at, true}
}

// Result is of no use to it.
func (r *SNR) Result(int, int, int, int, time.Duration) {}
