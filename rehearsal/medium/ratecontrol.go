package medium

import (
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
)

// The ways to choose a rate that Config.RateControl names.
const (
	rateControlSNR      = "genie_snr"
	rateControlMinstrel = "minstrel"
)

// newRateControls makes what gives each station its own: mode fixed, if not
// negative.
func (c *Core) newRateControls(fixed int) func(*rand.Rand) rateControl {
	n, p := len(c.cfg.Nodes), c.phy
	switch {
	case fixed >= 0:
		return func(*rand.Rand) rateControl { return ratecontrol.Fixed(fixed - p.FirstData) }
	case c.cfg.MPDUs: // the nodes choose
		return func(*rand.Rand) rateControl { return ratecontrol.Fixed(0) }
	case c.cfg.RateControl == rateControlSNR:
		minSNR := p.MinSNRs()
		return func(*rand.Rand) rateControl { return ratecontrol.NewSNR(minSNR, n) }
	}
	times := p.MinstrelTimes()
	return func(rng *rand.Rand) rateControl { return ratecontrol.NewMinstrel(times, n, rng) }
}

// rateControl chooses the rates of one station's unicast data frames, of which 0 is the slowest.
type rateControl interface {
	// Pick is the choice for the next attempt to a peer, after so many in vain with the present
	// frame, whose length asks for RTS or does not.
	Pick(peer, tried int, rts bool, at time.Duration) ratecontrol.Choice
	// Tries is how often the present frame to a peer may go on the air; 0: no limit.
	Tries(peer int) int
	// Heard says at which SNR (a ratio) a frame of the peer came in.
	Heard(peer int, snr float64, at time.Duration)
	// Result reports how many of an attempt's frames were acknowledged.
	Result(peer, mode, frames, ok int, at time.Duration)
}
