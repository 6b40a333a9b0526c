package medium

import (
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

func TestDiscReceivesWithinItsRangeAndSensesWithinItsOwn(t *testing.T) {
	for _, v := range []struct {
		rangeM, senseM, distanceM float64
		gets, senses              bool
	}{
		{250, 0, 249.9, true, true}, {250, 0, 250.1, false, true},
		{250, 0, 549.9, false, true}, {250, 0, 550.1, false, false}, // ns-2's 550 m
		{200, 0, 199.9, true, true}, {200, 0, 200.1, false, true}, {200, 200, 200.1, false, false},
		{200, 300, 299.9, false, true}, {200, 300, 300.1, false, false},
	} {
		cfg := testConfig(phy.Standard80211b, 11, 2)
		cfg.Propagation = propagation.Config{Model: "disc", RangeM: v.rangeM, CarrierSenseM: v.senseM}
		// What a disc must not mind.
		cfg.Nodes[0].TxPowerDbm, cfg.Nodes[1].NoiseFigureDb, cfg.Nodes[0].AntennaGainDbi = -20, 30, -10
		sink := newRecorder(2)
		c := mustCore(t, cfg, line(v.distanceM), sink)
		c.Enqueue(0, ethernet(0, -1, 1, 1000))
		c.Advance(200 * time.Microsecond)
		if got := c.stations[1].busy; got != v.senses {
			t.Errorf("disc %g/%g m: at %g m the channel is sensed busy: %v, want %v", v.rangeM, v.senseM, v.distanceM,
				got, v.senses)
		}
		c.Advance(time.Second)
		if got := sink.delivered[[2]int{1, 1}] == 1; got != v.gets {
			t.Errorf("disc %g/%g m: at %g m the frame is received: %v, want %v", v.rangeM, v.senseM, v.distanceM, got,
				v.gets)
		}
	}
}

// Any overlap is a collision in a disc, whichever sender is nearer and however
// sturdy the rate.
func TestDiscHasNoCapture(t *testing.T) {
	cfg := testConfig(phy.Standard80211b, 1, 3)
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 250}
	sink := newRecorder(3)
	at := []float64{0, 10, 400} // 2 is within carrier sense of 1 only by its radius of 550 m
	c := mustCore(t, cfg, func(n int, _ time.Duration) (float64, float64) { return at[n], 0 }, sink)
	c.Advance(time.Second)
	c.Enqueue(0, ethernet(0, -1, 1, 500))
	c.Enqueue(2, ethernet(2, -1, 2, 500))
	c.Advance(2 * time.Second)
	if len(sink.delivered) != 0 {
		t.Errorf("frames came through a collision: %v", sink.delivered)
	}
	if n := c.Counters(0); n.Lost[Collision] != 1 || n.Lost[OutOfRange] != 1 {
		t.Errorf("node 0 lost %v; want one collision (at 1) and one out of range (at 2)", n.Lost)
	}
}

// Another seed is another field; the same one comes back when the car does.
func TestShadowingIsTheSeedsAndThePlaces(t *testing.T) {
	heard := func(seed uint64, at time.Duration) float64 {
		cfg := testConfig(phy.Standard80211g, 6, 2)
		cfg.Seed, cfg.Shadowing = seed, propagation.ShadowingConfig{SigmaDb: 6, DecorrelationM: 20}
		// There and back in 10 s.
		c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
			return float64(n) * (10 + 30*math.Sin(math.Pi*at.Seconds()/10)), 0
		}, newRecorder(2))
		c.Advance(at)
		c.Enqueue(1, ethernet(1, 0, 1, 100))
		c.Advance(at + 5*time.Millisecond)
		stations := c.Stations(0)
		if len(stations) == 0 || stations[0].SignalDbm == nil {
			t.Fatalf("seed %d: nothing heard at %s", seed, at)
		}
		return *stations[0].SignalDbm
	}
	if a, b := heard(1, 2*time.Second), heard(1, 8*time.Second); a != b {
		t.Errorf("the same place twice: %g dBm, then %g", a, b)
	}
	if a, b := heard(1, 2*time.Second), heard(2, 2*time.Second); a == b {
		t.Errorf("two seeds, one shadow: %g dBm", a)
	}
}
