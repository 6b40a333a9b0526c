package medium

import (
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol"
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

// Where nobody answers, a frame is tried as its retry chain has it: nothing has been learnt, so
// each stage has two tries, all but the first with RTS, and a sample one. Limits that are set count
// besides.
func TestMinstrelGivesUpAtTheEndOfItsChain(t *testing.T) {
	for _, limit := range []int{0, 3} {
		cfg := testConfig(phy.Standard80211g, 0, 2)
		cfg.ShortRetryLimit = limit
		sent := map[string]int{}
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" {
				sent[e.Kind]++
			}
		}
		sink := newRecorder(2)
		c := mustCore(t, cfg, line(1e5), sink)
		c.Enqueue(0, ethernet(0, 1, 0, 1000))
		c.Advance(time.Second)
		data, rts := 1, 6 // of a sample, and of three stages
		if limit > 0 {
			rts = limit - data
		}
		if sent["data"] != data || sent["rts"] != rts || sink.failed != 1 {
			t.Errorf("limit %d: on the air %v, %d frames given up; want %d data, %d RTS, and 1", limit, sent,
				sink.failed, data, rts)
		}
	}
}

// A radio of 40 or 80 MHz sends in a part of the channel where all of it has too much noise: farther than its
// slowest rate reaches.
func TestMinstrelNarrowsTheChannel(t *testing.T) {
	for _, h := range htSets()[2:] {
		beyondDb := map[string]float64{phy.RadioHT40: 2, phy.RadioVHT80: 4}[h.radio]
		carried := func(rate float64) float64 {
			cfg := h.config(t, 0, 2)
			cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
			reachM := mustCore(t, cfg, line(1), newRecorder(2)).ReachM(0, cfg.RateMbps)
			cfg.RateMbps, cfg.RateControl = rate, rateControlMinstrel
			sink := newRecorder(2)
			c := mustCore(t, cfg, line(reachM*math.Pow(10, beyondDb/30)), sink)
			saturate(c, 1500, 4*time.Second, flow{0, 1})
			return float64(sink.bytes[1]) * 8 / 4e6
		}
		fixed := carried(h.config(t, 0, 2).RateMbps)
		if got := carried(0); fixed > 0.3 || got < 3 {
			t.Errorf("%s, %g dB beyond the reach of its slowest rate: %g Mbit/s, and %g at that rate", h.radio,
				beyondDb, got, fixed)
		}
	}
}

// chained has a chain of so many tries.
type chained struct {
	choosy
	tries int
}

func (r *chained) Tries(int) int { return r.tries }

// With 802.11n and 802.11ac too a frame is sent to the end of its retry chain, and not only as often as the
// limits say that it may be.
func TestAChainIsNotLeftInTheMiddle(t *testing.T) {
	const tries = 12
	for _, limit := range []int{0, 3} {
		cfg := htSets()[1].config(t, 0, 2)
		cfg.RateMbps, cfg.RateControl, cfg.ShortRetryLimit = 0, rateControlMinstrel, limit
		sent := 0
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" && e.Kind == "data" {
				sent++
			}
		}
		sink := newRecorder(2)
		c := mustCore(t, cfg, line(1e6), sink)
		c.stations[0].rate = &chained{tries: tries}
		c.Enqueue(0, ethernet(0, 1, 0, 1000))
		c.Advance(time.Second)
		want := tries
		if limit > 0 {
			want = limit
		}
		if sent != want || sink.failed != 1 {
			t.Errorf("limit %d: sent %d times, %d frames given up, want %d and 1", limit, sent, sink.failed, want)
		}
	}
}

// choosy notes after how many tries it is asked.
type choosy struct {
	ratecontrol.Fixed
	choice ratecontrol.Choice
	tried  []int
}

func (r *choosy) Pick(_, tried int, _ bool, _ time.Duration) ratecontrol.Choice {
	r.tried = append(r.tried, tried)
	return r.choice
}

// A CTS ends the count of RTS in vain, by which a frame is given up, and not the way along the
// retry chain.
func TestACTSDoesNotRestartTheChain(t *testing.T) {
	cfg := testConfig(phy.Standard80211g, 6, 2)
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.999, BurstFrames: 1000} // which spares RTS
	r := &choosy{choice: ratecontrol.Choice{RTS: true}}
	c := mustCore(t, cfg, line(5), newRecorder(2))
	c.stations[0].rate = r
	c.SetDead(true)
	c.Enqueue(0, ethernet(0, 1, 0, 1000))
	c.Advance(time.Millisecond)
	c.SetDead(false)
	c.Advance(time.Second)
	n := c.Counters(0)
	rts, data := n.AttemptsFailed[RadioDead], n.AttemptsFailed[ChannelError]
	if rts == 0 || data != longRetryLimit {
		t.Fatalf("%d RTS and %d data were in vain, want some and %d", rts, data, longRetryLimit)
	}
	for i, tried := range r.tried {
		if tried != i {
			t.Errorf("the places in the chain are %v, want each attempt's own", r.tried)
			break
		}
	}
}

// A frame that samples a rate goes by itself, however many wait.
func TestASampleIsNotAggregated(t *testing.T) {
	for _, sample := range []bool{false, true} {
		cfg := htSets()[1].config(t, 7, 2)
		answers := map[string]int{}
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" && e.Node == 1 {
				answers[e.Kind]++
			}
		}
		c := mustCore(t, cfg, line(1), newRecorder(2))
		c.stations[0].rate = &choosy{choice: ratecontrol.Choice{Mode: 7, Sample: sample}}
		saturate(c, 1500, 100*time.Millisecond, flow{0, 1})
		if alone, together := answers["ack"] > 1, answers["block_ack"] > 0; alone != sample || together == sample {
			t.Errorf("samples %v: answered with %v", sample, answers)
		}
	}
}
