package medium

import (
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
)

const (
	// targetErrorRate and targetBytes say which rate the SNR-driven control
	// takes: the highest at which a full frame is lost to noise at most this
	// often.
	targetErrorRate = 0.10
	targetBytes     = 1500
	// heardFor is how long a heard SNR counts. After it the lowest rate is
	// used until the peer is heard again: a peer that went out of a high
	// rate's reach in silence could otherwise never answer.
	heardFor = 2 * time.Second
)

// The ways to choose a rate that Config.RateControl names.
const (
	rateControlSNR      = "snr"
	rateControlMinstrel = "minstrel"
)

// newRateControls makes what gives each station its own: mode fixed, if not
// negative.
func (c *Core) newRateControls(fixed int) func(*rand.Rand) rateControl {
	n := len(c.cfg.Nodes)
	switch {
	case fixed >= 0:
		return func(*rand.Rand) rateControl { return fixedRate(fixed) }
	case c.cfg.RateControl == rateControlMinstrel:
		return func(rng *rand.Rand) rateControl { return newMinstrel(c.phy, n, rng) }
	}
	minSNR := c.phy.minSNRs()
	return func(*rand.Rand) rateControl { return &snrRate{minSNR: minSNR, peers: make([]heardSNR, n)} }
}

// rateControl chooses the rates of one station's unicast data frames.
type rateControl interface {
	// pick is the index of the mode for the next attempt to a peer, 0 for a
	// frame's first.
	pick(peer, attempt int, at time.Duration) int
	// heard says at which SNR (a ratio) a frame of the peer came in.
	heard(peer int, snr float64, at time.Duration)
	// result reports whether an attempt was acknowledged.
	result(peer, mode int, ok bool)
}

// fixedRate always takes one mode.
type fixedRate int

func (r fixedRate) pick(int, int, time.Duration) int      { return int(r) }
func (r fixedRate) heard(int, float64, time.Duration)     {}
func (r fixedRate) result(peer, mode int, succeeded bool) {}

// snrRate takes the highest mode that the last-heard SNR of the peer carries.
type snrRate struct {
	minSNR []float64 // by mode, ratio
	peers  []heardSNR
}

type heardSNR struct {
	snr float64
	at  time.Duration
	any bool
}

func (r *snrRate) pick(peer, _ int, at time.Duration) int {
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

func (r *snrRate) heard(peer int, snr float64, at time.Duration) {
	r.peers[peer] = heardSNR{snr, at, true}
}

func (r *snrRate) result(int, int, bool) {}

// minSNRs is the least SNR (ratio) of each mode for the target error rate.
func (p *phy) minSNRs() []float64 {
	out := make([]float64, len(p.modes))
	for i, m := range p.modes {
		out[i] = errorrate.LeastSNR(targetErrorRate, func(snr float64) float64 {
			return p.frameErrorRate(m, snr, targetBytes)
		})
	}
	return out
}
