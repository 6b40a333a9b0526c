package medium

import (
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
)

// The ways to choose a rate that Config.RateControl names.
const (
	rateControlSNR      = "snr"
	rateControlMinstrel = "minstrel"
)

// newRateControls makes what gives each station its own: mode fixed, if not
// negative.
func (c *Core) newRateControls(fixed int) func(*rand.Rand) rateControl {
	n, p := len(c.cfg.Nodes), c.phy
	switch {
	case fixed >= 0:
		return func(*rand.Rand) rateControl { return ratecontrol.Fixed(fixed - p.FirstData) }
	case c.cfg.RateControl == rateControlSNR:
		minSNR := p.MinSNRs()
		return func(*rand.Rand) rateControl { return ratecontrol.NewSNR(minSNR, n) }
	}
	var airtime []time.Duration
	for i := range p.Modes[p.FirstData:] {
		airtime = append(airtime, p.SampleTime(&p.Modes[p.FirstData+i], ratecontrol.MinstrelBytes))
	}
	return func(rng *rand.Rand) rateControl { return ratecontrol.NewMinstrel(airtime, p.HT != nil, n, rng) }
}

// rateControl chooses the rates of one station's unicast data frames, of which 0 is the slowest.
type rateControl interface {
	// Pick is the mode for the next attempt to a peer, 0 for a frame's first.
	Pick(peer, attempt int, at time.Duration) int
	// Heard says at which SNR (a ratio) a frame of the peer came in.
	Heard(peer int, snr float64, at time.Duration)
	// Result reports whether an attempt was acknowledged.
	Result(peer, mode int, ok bool)
}
