package medium

import (
	"math"
	"testing"
	"time"
)

// Mean and burst length of the two means that P4-like studies use, and a heavy
// one; over frames and over time.
func TestMarkovChannelHasItsMeanAndItsBursts(t *testing.T) {
	for _, cfg := range []ChannelErrorConfig{
		{Mean: 0.01, BurstFrames: 4}, {Mean: 0.1, BurstFrames: 4}, {Mean: 0.4, BurstFrames: 1.5},
		{Mean: 0.01, BurstS: 0.05}, {Mean: 0.1, BurstS: 0.02},
	} {
		// A frame a millisecond on many links; sampled in time, a burst is seen
		// as its length in milliseconds, and those that fall between are not.
		const links, frames = 40, 50_000
		var lost, bursts int
		for link := range links {
			var l markovLink
			was := false
			for i := range frames {
				is := l.loses(cfg, 3, link, 99, time.Duration(i)*time.Millisecond)
				if is {
					lost++
				}
				if is && !was {
					bursts++
				}
				was = is
			}
		}
		mean, burst := float64(lost)/(links*frames), float64(lost)/float64(bursts)
		wantBurst := cfg.BurstFrames
		if cfg.BurstS > 0 {
			// The chain that a clock of 1 ms sees: leaves the bad state with
			// (1 - m)(1 - exp(-(1/s + 1/g) Δ)).
			rate := 1/cfg.BurstS + cfg.Mean/(1-cfg.Mean)/cfg.BurstS
			wantBurst = -1 / ((1 - cfg.Mean) * math.Expm1(-rate*0.001))
		}
		t.Logf("%+v: mean %.4f, burst %.2f frames (want %.2f)", cfg, mean, burst, wantBurst)
		within(t, "mean", mean, cfg.Mean, 0.08)
		within(t, "burst", burst, wantBurst, 0.08)
	}
}

// On the air: a broadcast is lost as often as the mean says, with that cause,
// and an acknowledged frame is sent again.
func TestMarkovChannelOnTheAir(t *testing.T) {
	cfg := testConfig(Standard80211g, 54, 2)
	cfg.ChannelError = ChannelErrorConfig{Mean: 0.1, BurstFrames: 2}
	const frames = 20_000
	for _, to := range []int{-1, 1} {
		c := mustCore(t, cfg, line(5), newRecorder(2))
		for i := range frames {
			c.Enqueue(0, ethernet(0, to, i, 100))
			c.Advance(c.Now() + 10*time.Millisecond)
		}
		n := c.Counters(0)
		if to < 0 {
			within(t, "lost broadcasts", float64(n.Lost[ChannelError])/frames, 0.1, 0.1)
			continue
		}
		within(t, "failed attempts", float64(n.AttemptsFailed[ChannelError])/float64(n.Attempts), 0.1, 0.1)
		// Seven in a row: enter the bad state or be in it, and stay six times.
		if want := 0.1 / 64 * frames; math.Abs(float64(n.Lost[ChannelError])-want) > 4*math.Sqrt(want) {
			t.Errorf("%d frames given up, want about %.0f", n.Lost[ChannelError], want)
		}
		if n.Lost.Total() != n.Lost[ChannelError] || n.TxFailed != n.Lost[ChannelError] {
			t.Errorf("lost %v, given up %d", n.Lost, n.TxFailed)
		}
	}
}
