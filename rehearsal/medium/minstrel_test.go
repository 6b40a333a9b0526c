package medium

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// On the air it comes near the best fixed rate at every distance.
func TestMinstrelAgainstTheBestFixedRate(t *testing.T) {
	for _, distanceM := range []float64{10, 60, 110} {
		carried := func(rate float64, control string) float64 {
			cfg := testConfig(phy.Standard80211g, rate, 2)
			cfg.RateControl = control
			sink := newRecorder(2)
			c := mustCore(t, cfg, line(distanceM), sink)
			saturate(c, 1500, 6*time.Second, flow{0, 1})
			return float64(sink.bytes[1]) * 8 / 6e6
		}
		best, bestRate := 0.0, 0.0
		for _, rate := range []float64{6, 9, 12, 18, 24, 36, 48, 54} {
			if got := carried(rate, ""); got > best {
				best, bestRate = got, rate
			}
		}
		got := carried(0, rateControlMinstrel)
		t.Logf("%g m: Minstrel %.2f Mbit/s, the best fixed rate (%g) %.2f", distanceM, got, bestRate, best)
		if got < 0.8*best || got > 1.02*best {
			t.Errorf("%g m: Minstrel carries %g Mbit/s, %g Mbit/s fixed carries %g", distanceM, got, bestRate, best)
		}
	}
}
