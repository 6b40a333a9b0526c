package propagation

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
			var l MarkovLink
			was := false
			for i := range frames {
				is := l.Loses(cfg, 3, link, 99, time.Duration(i)*time.Millisecond)
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
		if math.Abs(mean/cfg.Mean-1) > 0.08 || math.Abs(burst/wantBurst-1) > 0.08 {
			t.Errorf("%+v: mean %g, burst %g, want %g", cfg, mean, burst, wantBurst)
		}
	}
}

// What P4's campaigns and their guide say: of a mean of 1 % in bursts of 10 frames, four tries
// leave about a fifth at each hop. By arithmetic: after a packet that arrived the next is lost
// where the chain goes bad, once in 990 frames, and stays so for three more; after one that was
// lost, where it stays bad for four.
func TestFourTriesLeaveAFifthOfAPercentInBursts(t *testing.T) {
	cfg := ChannelErrorConfig{Mean: 0.01, BurstFrames: 10}
	const links, packets, tries, stays = 40, 100_000, 4, 0.9
	lost := 0
	for link := range links {
		var l MarkovLink
		for range packets {
			left := tries
			for left > 0 && l.Loses(cfg, 5, link, 99, 0) {
				left--
			}
			if left == 0 {
				lost++
			}
		}
	}
	first, again := math.Pow(stays, tries-1)/990, math.Pow(stays, tries)
	want := first / (1 - again + first)
	if share := float64(lost) / (links * packets); math.Abs(share/want-1) > 0.1 || math.Abs(want-0.00214) > 1e-5 {
		t.Errorf("%.4f %% of packets are lost, want %.4f %%", 100*share, 100*want)
	}
}
