package medium

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
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

// So it does with A-MPDUs, whose frames it counts one by one.
func TestMinstrelOfAMPDUsAgainstTheBestFixedRate(t *testing.T) {
	for _, h := range htSets()[1:] {
		for _, distanceM := range []float64{5, 40, 50, 80} {
			carried := func(rate float64) float64 {
				cfg := h.config(t, 0, 2)
				cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
				cfg.RateMbps, cfg.RateControl = rate, rateControlMinstrel
				sink := newRecorder(2)
				c := mustCore(t, cfg, line(distanceM), sink)
				saturate(c, 1500, 2*time.Second, flow{0, 1}) // in which it learns
				before := sink.bytes[1]
				saturate(c, 1500, 4*time.Second, flow{0, 1})
				return float64(sink.bytes[1]-before) * 8 / 4e6
			}
			best, bestRate := 0.0, 0.0
			for _, rate := range mustCore(t, h.config(t, 0, 2), line(1), newRecorder(2)).RatesMbps() {
				if got := carried(rate); got > best {
					best, bestRate = got, rate
				}
			}
			got := carried(0)
			t.Logf("%s, %g m: Minstrel %.2f Mbit/s, the best fixed rate (%g) %.2f", h.radio, distanceM, got, bestRate,
				best)
			if got < 0.8*best || got > 1.02*best {
				t.Errorf("%s, %g m: Minstrel carries %g Mbit/s, %g Mbit/s fixed carries %g", h.radio, distanceM, got,
					bestRate, best)
			}
		}
	}
}
