package medium

import (
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// On the air: a broadcast is lost as often as the mean says, with that cause,
// and an acknowledged frame is sent again.
func TestMarkovChannelOnTheAir(t *testing.T) {
	cfg := testConfig(phy.Standard80211g, 54, 2)
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.1, BurstFrames: 2}
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
