package medium

import (
	"cmp"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// ns2Config is nodes with ns-2's radio.
func ns2Config(rateMbps float64, nodes int) Config {
	cfg := testConfig(Standard80211b, rateMbps, nodes)
	cfg.Radio, cfg.Propagation = RadioNS2WaveLAN, propagation.Config{}
	for i := range cfg.Nodes {
		cfg.Nodes[i].TxPowerDbm, cfg.Nodes[i].HeightM = NS2TxPowerDbm, NS2AntennaHeightM
	}
	return cfg
}

// The thresholds are those of 250 m and 550 m, for every rate. Whose script sets
// RXThresh_ for another way receives to there, and senses as before.
func TestNS2WaveLANReceivesTo250AndSensesTo550(t *testing.T) {
	for _, v := range []struct {
		rangeM, rate float64
	}{{0, 1}, {0, 2}, {0, 5.5}, {0, 11}, {200, 1}} {
		atM := cmp.Or(v.rangeM, 250)
		for distanceM, want := range map[float64]struct{ received, busy bool }{
			atM - 0.1: {true, true}, atM + 0.1: {false, true}, 549.9: {false, true}, 550.1: {false, false},
		} {
			cfg := ns2Config(v.rate, 2)
			cfg.Propagation.RangeM, cfg.ShortRetryLimit = v.rangeM, 1
			sink := newRecorder(2)
			c := mustCore(t, cfg, line(distanceM), sink)
			c.Enqueue(0, ethernet(0, 1, 1, 500))
			c.Advance(time.Second)
			received := sink.delivered[[2]int{1, 1}] == 1
			if busy := *c.Survey(1).BusyMs > 0; received != want.received || busy != want.busy {
				t.Errorf("%+v at %g m: received %v, channel busy %v", v, distanceM, received, busy)
			}
			reach, best := c.ReachM(0, v.rate), c.BestRateMbps(0, 1)
			if (reach >= distanceM) != want.received || (best > 0) != want.received {
				t.Errorf("%+v at %g m: reach %g m, best rate %g Mbit/s", v, distanceM, reach, best)
			}
		}
	}
}

// ns-2's control frames go at 1 Mbit/s (ns-mac.tcl: basicRate_ 1Mb), and so do its broadcasts.
func TestNS2WaveLANAnswersAtOneMbps(t *testing.T) {
	p, err := newPHY(ns2Config(11, 2))
	if err != nil {
		t.Fatal(err)
	}
	for mode := range p.modes {
		if got := p.modes[p.responseMode(mode)].RateMbps; got != 1 {
			t.Errorf("a frame at %g Mbit/s is answered at %g", p.modes[mode].RateMbps, got)
		}
	}
	other := ns2Config(11, 2)
	other.BasicRatesMbps = []float64{1, 2}
	if p, err = newPHY(other); err != nil {
		t.Fatal(err)
	}
	if got := p.modes[p.responseMode(len(p.modes)-1)].RateMbps; got != 2 {
		t.Errorf("told to know 2 Mbit/s, it answers at %g", got)
	}
}

// In a row of nodes 200 m apart, 0 sends to 1; the interferer, out of 0's earshot, begins
// before, after or at the same time. At 400 m from the receiver it is weaker by 12 dB, and
// harmless unless it was first; at 351 m it is weaker by 9.8 dB, and is not.
func TestNS2WaveLANSurvivesAWeakerFrameThatComesLater(t *testing.T) {
	for _, v := range []struct {
		interfererM float64 // from the receiver
		afterUs     int
		want        int
	}{
		{400, 16, 1}, {400, 1000, 1}, {400, 14, 1}, {400, 0, 1}, {400, -14, 1}, {400, -16, 0}, {400, -1000, 0},
		{351, 16, 0}, {351, 1000, 0}, {351, 0, 0}, {351, -1000, 0},
		{551, 1000, 1}, {551, 0, 1}, {551, -1000, 1},
	} {
		cfg := ns2Config(2, 3)
		cfg.ShortRetryLimit = 1
		sink := newRecorder(3)
		c := mustCore(t, cfg, func(n int, _ time.Duration) (float64, float64) {
			return []float64{0, 200, 200 + v.interfererM}[n], 0
		}, sink)
		send := func(from int, at time.Duration) {
			c.Advance(at)
			c.Enqueue(from, ethernet(from, -1, from, 500))
		}
		const at = time.Second
		if after := time.Duration(v.afterUs) * time.Microsecond; after < 0 {
			send(2, at+after)
			send(0, at)
		} else {
			send(0, at)
			send(2, at+after)
		}
		c.Advance(2 * time.Second)
		if got := sink.delivered[[2]int{1, 0}]; got != v.want || c.Counters(0).Lost[Collision] != uint64(1-v.want) {
			t.Errorf("interferer at %g m, %d µs later: delivered %d times, %d collisions", v.interfererM, v.afterUs,
				got, c.Counters(0).Lost[Collision])
		}
	}
}
