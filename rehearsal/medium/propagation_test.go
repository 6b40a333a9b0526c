package medium

import (
	"math"
	"testing"
	"time"
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
		cfg := testConfig(Standard80211b, 11, 2)
		cfg.Propagation = PropagationConfig{Model: "disc", RangeM: v.rangeM, CarrierSenseM: v.senseM}
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
	cfg := testConfig(Standard80211b, 1, 3)
	cfg.Propagation = PropagationConfig{Model: "disc", RangeM: 250}
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

// Shadowing over independent links of several fields: mean 0, the deviation asked for, and a
// correlation of exp(-d/d0) when one end moves, and the product when both do.
func TestShadowingVarianceAndCorrelation(t *testing.T) {
	const seed, fields, links = 11, 8, 1000
	for _, cfg := range []ShadowingConfig{
		{SigmaDb: 7.5, DecorrelationM: 500}, {SigmaDb: 4.3, DecorrelationM: 8.3}, // Gudmundson's suburb and city
		{SigmaDb: 6, DecorrelationM: 20, NodeCorrelation: 0.25},
	} {
		correlation := func(ax, by float64) (correlation, mean float64) {
			for n := range uint64(fields) {
				f := newShadowField(seed+n, cfg)
				at := func(link int, ax, by float64) float64 {
					// Far apart, so that no two links have an end's part in common.
					x := 100 * cfg.DecorrelationM * float64(link)
					return f.atDb(link, links+link, f.cell(&place{xM: x + ax, yM: 50}),
						f.cell(&place{xM: x, yM: by - 100*cfg.DecorrelationM}))
				}
				for i := range links {
					was := at(i, 0, 0)
					mean += was / links / fields
					correlation += was * at(i, ax, by) / links / fields / (cfg.SigmaDb * cfg.SigmaDb)
				}
			}
			return correlation, mean
		}
		variance, mean := correlation(0, 0)
		t.Logf("seeds from %d, %+v: mean %.3f dB, variance %.3f of what was asked", seed, cfg, mean, variance)
		// Standard errors over 8000 links are 1.1 and 1.6 %.
		if math.Abs(mean) > 0.045*cfg.SigmaDb {
			t.Errorf("seeds from %d: mean %g dB", seed, mean)
		}
		within(t, "variance", variance, 1, 0.065)
		for _, d := range []float64{0.1, 0.25, 0.5, 1, 2} {
			one, _ := correlation(d*cfg.DecorrelationM, 0)
			both, _ := correlation(d*cfg.DecorrelationM, -d*cfg.DecorrelationM)
			c := 2 * cfg.NodeCorrelation
			wantOne := (1-c)*math.Exp(-d) + c*(1+math.Exp(-d))/2
			wantBoth := (1-c)*math.Exp(-2*d) + c*math.Exp(-d)
			t.Logf("moved by %g d0: correlation %.3f, want %.3f; both %.3f, want %.3f", d, one, wantOne, both, wantBoth)
			if math.Abs(one-wantOne) > 0.05 || math.Abs(both-wantBoth) > 0.05 {
				t.Errorf("seeds from %d: moved by %g d0: correlation %g, want %g; both ends %g, want %g", seed, d, one,
					wantOne, both, wantBoth)
			}
		}
	}
}

// Two links of one node whose other ends are far apart have the correlation asked for; two
// without a common node none.
func TestShadowsOfOneNodesLinksCorrelate(t *testing.T) {
	const seeds = 4000
	far := []place{{}, {xM: 9000, yM: 500}, {xM: -400, yM: 7000}, {xM: 6000, yM: -5000}}
	for _, want := range []float64{0, 0.3, 0.5} {
		cfg := ShadowingConfig{SigmaDb: 5, DecorrelationM: 20, NodeCorrelation: want}
		common, apart, variance := 0.0, 0.0, 0.0
		for seed := range uint64(seeds) {
			f := newShadowField(seed, cfg)
			link := func(a, b int) float64 { return f.atDb(a, b, f.cell(&far[a]), f.cell(&far[b])) / cfg.SigmaDb }
			common += link(0, 1) * link(0, 2) / seeds
			apart += link(0, 1) * link(2, 3) / seeds
			variance += link(0, 1) * link(0, 1) / seeds
		}
		t.Logf("seeds 0 to %d: correlation %.3f, want %.1f; without a common node %.3f; variance %.3f", seeds-1, common,
			want, apart, variance)
		// The standard error of each is below 0.023.
		if math.Abs(common-want) > 0.08 || math.Abs(apart) > 0.08 || math.Abs(variance-1) > 0.1 {
			t.Errorf("correlation %g of one node's links, want %g; of others %g, want 0; variance %g", common, want,
				apart, variance)
		}
	}
}

// The ends of a short link see nearly the same obstacles: its loss spreads by
// √(1 + 2ρ·e^(−d/d₀)) times what was asked for, as the guide says.
func TestAShortLinksShadowSpreadsAsTheGuideSays(t *testing.T) {
	const seeds = 8000
	for _, d := range []float64{4, 20, 60} {
		cfg := ShadowingConfig{SigmaDb: 5, DecorrelationM: 20, NodeCorrelation: 0.5}
		variance := 0.0
		for seed := range uint64(seeds) {
			f := newShadowField(seed, cfg)
			db := f.atDb(0, 1, f.cell(&place{}), f.cell(&place{xM: d})) / cfg.SigmaDb
			variance += db * db / seeds
		}
		want := 1 + 2*cfg.NodeCorrelation*math.Exp(-d/cfg.DecorrelationM)
		t.Logf("seeds 0 to %d, %g m: variance %.3f, want %.3f", seeds-1, d, variance, want)
		if math.Abs(variance-want) > 0.1 { // its standard error is below 0.03
			t.Errorf("at %g m: variance %g, want %g", d, variance, want)
		}
	}
}

// Over many seeds Gudmundson's published figures must come back: 0.82 at 100 m,
// 0.3 at 10 m.
func TestShadowingGivesGudmundsonsFigures(t *testing.T) {
	for _, v := range []struct {
		cfg  ShadowingConfig
		d    float64
		want float64
	}{
		{ShadowingConfig{SigmaDb: 7.5, DecorrelationM: 500}, 100, 0.82},
		{ShadowingConfig{SigmaDb: 4.3, DecorrelationM: 8.3}, 10, 0.30},
	} {
		const seeds = 8000
		sum := 0.0
		for seed := range uint64(seeds) {
			f := newShadowField(seed, v.cfg)
			far := f.cell(&place{xM: 40})
			sum += f.atDb(0, 1, f.cell(&place{}), far) * f.atDb(0, 1, f.cell(&place{yM: v.d}), far)
		}
		got := sum / seeds / (v.cfg.SigmaDb * v.cfg.SigmaDb)
		t.Logf("%g m: correlation %.3f, published %.2f", v.d, got, v.want)
		if math.Abs(got-v.want) > 0.05 {
			t.Errorf("%+v: correlation %g over %g m, published %g", v.cfg, got, v.d, v.want)
		}
	}
}

// Another seed is another field; the same one comes back when the car does.
func TestShadowingIsTheSeedsAndThePlaces(t *testing.T) {
	heard := func(seed uint64, at time.Duration) float64 {
		cfg := testConfig(Standard80211g, 6, 2)
		cfg.Seed, cfg.Shadowing = seed, ShadowingConfig{SigmaDb: 6, DecorrelationM: 20}
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
