package propagation

import (
	"fmt"
	"time"
)

// MarkovLink is the two-state Markov channel of Gilbert ("Capacity of a
// burst-noise channel", Bell System Technical Journal 39, 1960) and Elliott
// (42, 1963) on one directed link: every data frame is lost in the bad state and
// none in the good.
//
// With mean m and a mean burst of b frames, the bad state is left with chance
// 1/b after a frame and entered with m / (b (1 - m)): the shares balance at m.
// With a mean burst of s seconds the stays are exponential, s in the bad and
// s (1 - m) / m in the good state.
type MarkovLink struct {
	draws stream
	known bool
	bad   bool
	until time.Duration // of the state, for bursts in time
}

// Loses reports whether a data frame that arrives now is lost. For bursts in
// frames each call is a frame.
func (l *MarkovLink) Loses(cfg ChannelErrorConfig, seed uint64, from, to int, now time.Duration) bool {
	if !l.known {
		l.draws, l.known = newStream(seed, forChannelError, from, to), true
		l.bad = l.draws.unit() < cfg.Mean // the steady state
		if cfg.BurstS > 0 {
			l.until = l.stay(cfg)
		}
	} else if cfg.BurstFrames > 0 {
		l.step(cfg)
	}
	for cfg.BurstS > 0 && l.until <= now {
		l.bad = !l.bad
		l.until += l.stay(cfg)
	}
	return l.bad
}

func (l *MarkovLink) step(cfg ChannelErrorConfig) {
	leave := 1 / cfg.BurstFrames
	if !l.bad {
		leave = cfg.Mean / (cfg.BurstFrames * (1 - cfg.Mean))
	}
	if l.draws.unit() < leave {
		l.bad = !l.bad
	}
}

// stay draws how long the present state lasts; a nanosecond at least, so that
// time goes on.
func (l *MarkovLink) stay(cfg ChannelErrorConfig) time.Duration {
	mean := cfg.BurstS
	if !l.bad {
		mean *= (1 - cfg.Mean) / cfg.Mean
	}
	return max(1, time.Duration(mean*l.draws.exponential()*float64(time.Second)))
}

// Validate says what cannot be.
func (cfg ChannelErrorConfig) Validate() error {
	switch {
	case cfg == ChannelErrorConfig{}:
		return nil
	case !(cfg.Mean >= 0 && cfg.Mean < 1):
		return fmt.Errorf("check channel error: mean %g: 0 to below 1 is possible", cfg.Mean)
	case cfg.Mean > 0 && (cfg.BurstFrames == 0) == (cfg.BurstS == 0):
		return fmt.Errorf("check channel error: a mean burst in frames or in seconds is needed, and not both")
	case cfg.BurstFrames != 0 && !(cfg.BurstFrames >= 1 && cfg.BurstFrames >= cfg.Mean/(1-cfg.Mean)):
		return fmt.Errorf("check channel error: bursts of %g frames cannot give a mean of %g: those of %.4g or "+
			"more can", cfg.BurstFrames, cfg.Mean, max(1, cfg.Mean/(1-cfg.Mean)))
	case cfg.BurstS != 0 && !(cfg.BurstS >= 1e-6):
		return fmt.Errorf("check channel error: bursts of %g s are shorter than a microsecond", cfg.BurstS)
	}
	return nil
}
