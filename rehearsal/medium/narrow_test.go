package medium

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// minstrels is a channel of 80 MHz between nodes at places along a line.
func minstrels(t *testing.T, xM ...float64) *Core {
	t.Helper()
	cfg := testConfig(phy.Standard80211ac, 0, len(xM))
	cfg.Radio, cfg.Channel = phy.RadioVHT80, 36
	return mustCore(t, cfg, func(node int, _ time.Duration) (float64, float64) { return xM[node], 0 },
		newRecorder(len(xM)))
}

// begin puts a frame of a width, 20 MHz times two to the power of it, on the air.
func (c *Core) begin(from, to, width, bytes int) *transmission {
	tx := c.newTx(kindCts, from, to, c.phy.Groups[width][2], bytes)
	c.startTx(tx)
	return tx
}

// A frame in a part of the channel meets that share of the noise and of a wider frame's power. Of a frame that is no
// wider it meets the whole power. Both count only while they are on the air.
func TestFramesInAPartOfTheChannelCollide(t *testing.T) {
	for mine := range 3 {
		for theirs := range 3 {
			c := minstrels(t, 0, 10, 40)
			tx := c.begin(0, 1, mine, 1500)
			c.Advance(tx.headerEnd)
			other := c.begin(2, 0, theirs, 100)
			s := c.stations[1]
			if s.receives != tx || other.end >= tx.payloadEnd {
				t.Fatal("the frame is not being received, or too short")
			}
			share, wider := math.Pow(2, float64(mine-2)), math.Pow(2, float64(min(0, mine-theirs)))
			m := &c.phy.Modes[tx.mode]
			sinr := func() float64 { return s.rx.powerMw / (s.noiseMw + s.rx.interferenceMw) / m.Loss }
			what := fmt.Sprintf("%d MHz among %d MHz: SINR", 20<<mine, 20<<theirs)
			within(t, what, sinr(), tx.at[1].powerMw/(share*s.noiseMw+wider*other.at[1].powerMw), 1e-9)
			c.Advance(other.end)
			within(t, what+" afterwards", sinr(), tx.at[1].powerMw/(share*s.noiseMw), 1e-9)
		}
	}
}

// The start of a narrow frame stands out from what is on the air in its part of the channel, or is not noticed.
func TestPreamblesInAPartOfTheChannelAreHidden(t *testing.T) {
	const apartM = 10
	lock := minstrels(t, 0, 1).phy.LockSNR
	for theirs := range 3 {
		meets := math.Pow(2, -float64(theirs)) // of their power, the share in the 20 MHz
		for _, dB := range []float64{-0.5, 0.5} {
			ratio := 2 * lock * meets * propagation.DbToRatio(dB)
			c := minstrels(t, -apartM, 0, apartM, apartM*math.Pow(ratio, -1./3))
			c.begin(0, 1, theirs, 1500)
			c.begin(2, 1, theirs, 1500) // neither of which can be received
			c.Advance(100 * time.Microsecond)
			if tx := c.begin(3, 1, 0, 100); tx.at[1].sensed != (dB > 0) {
				t.Errorf("%g dB above what hides it among frames of %d MHz, a frame of 20 MHz is noticed: %v", dB,
					20<<theirs, tx.at[1].sensed)
			}
		}
	}
}

// Of frames that begin together the stronger is received where it is ahead, by the capture ratio, of what it meets of
// the other.
func TestFramesInAPartOfTheChannelAreCaptured(t *testing.T) {
	const apartM = 10
	for theirs := range 3 {
		meets := math.Pow(2, -float64(theirs)) // of their power, the share in the 20 MHz
		for _, dB := range []float64{-0.5, 0.5} {
			ratio := captureRatio * meets * propagation.DbToRatio(dB)
			c := minstrels(t, -apartM, 0, apartM*math.Pow(ratio, -1./3))
			c.begin(0, 1, theirs, 1500)
			tx := c.begin(2, 1, 0, 1500)
			c.Advance(c.phy.Detection + time.Microsecond)
			if received := c.stations[1].receives == tx; received != (dB > 0) {
				t.Errorf("%g dB above what it needs beside a frame of %d MHz, one of 20 MHz is received: %v", dB,
					20<<theirs, received)
			}
		}
	}
}

// Where minstrel chooses the rate, two nodes reach each other by its narrow frames, too. At a fixed rate, and where
// the SNR chooses, there are none, and nothing is noticed earlier for them.
func TestNarrowFramesReachFartherWhereThereAreAny(t *testing.T) {
	for _, h := range htSets()[2:] {
		share := map[string]float64{phy.RadioHT40: 1. / 2, phy.RadioVHT80: 1. / 4}[h.radio]
		cfg := h.config(t, 0, 2)
		cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
		slowest := cfg.RateMbps
		reachM := mustCore(t, cfg, line(1), newRecorder(2)).ReachM(0, slowest)
		for _, v := range []struct {
			what, control         string
			rate, least, farther  float64
			noticesFrom, bestMbps float64
		}{
			{"fixed", "", slowest, slowest, 1, 1, 0},
			{"by the SNR", rateControlSNR, 0, slowest, 1, 1, 0},
			{"minstrel", rateControlMinstrel, 0, 6.5, math.Pow(share, -1./3), share, 6.5},
		} {
			cfg.RateMbps, cfg.RateControl = v.rate, v.control
			c := mustCore(t, cfg, line(reachM*math.Pow(10, 2./30)), newRecorder(2))
			what := h.radio + " " + v.what
			within(t, what+": least rate", c.RatesMbps()[0], v.least, 0)
			within(t, what+": reach", c.ReachM(0, v.least), reachM*v.farther, 1e-3)
			within(t, what+": noticed from", c.phy.LeastLock, c.phy.LockSNR*v.noticesFrom, 1e-9)
			if best := c.BestRateMbps(0, 1); best < v.bestMbps || v.bestMbps == 0 && best != 0 {
				t.Errorf("%s: 2 dB beyond the reach of %g Mbit/s the best rate is %g Mbit/s", what, slowest, best)
			}
		}
	}
}
