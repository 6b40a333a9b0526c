package medium

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// disc puts a configuration on a disc of 250 m with a radius of carrier sense.
func disc(cfg Config, senseM float64) Config {
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 250, CarrierSenseM: senseM}
	return cfg
}

// goodputs is the UDP payload rate of each flow's receiver in Mbit/s.
func goodputs(t *testing.T, cfg Config, locate Locate, udpBytes int, flows ...flow) []float64 {
	t.Helper()
	const during = 20 * time.Second
	cfg.QueueFrames = 20
	sink := newRecorder(len(cfg.Nodes))
	c := mustCore(t, cfg, locate, sink)
	saturate(c, udpBytes+28, during, flows...)
	out := make([]float64, len(flows))
	for i, f := range flows {
		out[i] = float64(sink.delivered[[2]int{f.to, f.from}]) * float64(udpBytes) * 8 / during.Seconds() / 1e6
	}
	return out
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Two senders 400 m apart that do not hear each other, and a receiver in the
// middle; beside it the same with carrier sense over 500 m.
func TestHiddenTerminal(t *testing.T) {
	lossOf := func(rate float64, udpBytes, rts int) (share float64) {
		cfg := testConfig(phy.Standard80211b, rate, 3)
		cfg.RTSThresholdBytes = rts
		hidden := sum(goodputs(t, disc(cfg, 250), line(200), udpBytes, flow{0, 1}, flow{2, 1}))
		open := sum(goodputs(t, disc(cfg, 500), line(200), udpBytes, flow{0, 1}, flow{2, 1}))
		t.Logf("%g Mbit/s, %d bytes, RTS threshold %d: hidden %.3f Mbit/s, in earshot %.3f", rate, udpBytes, rts,
			hidden, open)
		return 1 - hidden/open
	}
	long, rts := lossOf(2, 1472, 0), lossOf(2, 1472, 1)
	short, fast := lossOf(2, 64, 0), lossOf(11, 1472, 0)
	if long < 0.5 {
		t.Errorf("2 Mbit/s and 1472 bytes lose %.0f %% to the hidden terminal, want most", 100*long)
	}
	if rts > 0.2 {
		t.Errorf("with RTS and CTS %.0f %% is lost still", 100*rts)
	}
	if short > 0.7*long || fast > 0.7*long {
		t.Errorf("long frames lose %.0f %%, short ones %.0f %%, fast ones %.0f %%; want much less", 100*long, 100*short,
			100*fast)
	}
}

// 0 ← 1   2 → 3: the senders hear each other and defer, though their receivers
// would be well; two senders out of earshot carry twice as much.
func TestExposedTerminalDefers(t *testing.T) {
	cfg := disc(testConfig(phy.Standard80211b, 2, 4), 250)
	near := goodputs(t, cfg, line(200), 1472, flow{1, 0}, flow{2, 3})
	far := goodputs(t, cfg, func(n int, _ time.Duration) (float64, float64) {
		return []float64{0, 200, 2000, 2200}[n], 0
	}, 1472, flow{1, 0}, flow{2, 3})
	alone := theoreticalMbps(phy.Standard80211b, 2, 1472, false)
	t.Logf("exposed %.3f Mbit/s, apart %.3f, one alone %.3f", near, far, alone)
	within(t, "apart", sum(far), 2*alone, 0.02)
	within(t, "exposed", sum(near), alone, 0.1)
	within(t, "the other's share", near[0], near[1], 0.1)
}

// relay forwards frames along a chain.
type relay struct {
	last    int
	forward []int // nodes that owe a frame to the next
	arrived int
}

func (r *relay) Deliver(node int, _ time.Duration, _ []byte) bool {
	if node == r.last {
		r.arrived++
	} else {
		r.forward = append(r.forward, node)
	}
	return true
}

func (r *relay) TxFailed(int, time.Duration, MAC, []byte) {}

// chain is the UDP payload rate over so many hops of 200 m, the source
// saturated.
func chain(t *testing.T, cfg Config, hops, udpBytes int, during time.Duration) float64 {
	t.Helper()
	sink := &relay{last: hops}
	c := mustCore(t, cfg, line(200), sink)
	for c.Now() < during {
		for c.QueueRoom(0) > cfg.QueueFrames-2 {
			c.Enqueue(0, ethernet(0, 1, 0, udpBytes+28))
		}
		for _, n := range sink.forward {
			c.Enqueue(n, ethernet(n, n+1, 0, udpBytes+28))
		}
		sink.forward = sink.forward[:0]
		next, _ := c.NextEffect()
		c.Advance(min(next, c.Now()+time.Millisecond))
	}
	return float64(sink.arrived) * float64(udpBytes) * 8 / during.Seconds() / 1e6
}

// waveLAN is a receiver with noise and the ranges of ns-2's radio: a full frame of 2
// Mbit/s reaches 250 m, and carrier sense 550 m.
func waveLAN(t *testing.T, cfg Config) Config {
	t.Helper()
	freqHz, err := frequencyHz(cfg.Standard, cfg.Channel)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Propagation = propagation.Config{Model: "two_ray_ground"}
	cfg.Nodes = slices.Clone(cfg.Nodes)
	for i := range cfg.Nodes {
		n := &cfg.Nodes[i]
		n.TxPowerDbm, n.NoiseFigureDb = 0, 10
	}
	senseDbm := -propagation.TwoRayGround{FrequencyHz: freqHz}.LossDb(551, 1.5, 1.5)
	cfg.CarrierSenseDbm, cfg.EnergyDetectDbm = &senseDbm, &senseDbm // ns-2 knows energy only
	return cfg
}

// Li, Blake, De Couto, Lee, Morris, "Capacity of ad hoc wireless networks",
// MobiCom 2001, section 3: a chain of nodes 200 m apart with a range of 250 m and
// interference to 550 m, 2 Mbit/s, 1500-byte packets, RTS and CTS. One hop gives
// 1.7 Mbit/s; perfect scheduling a quarter of it over a long chain; 802.11 about
// 0.25 Mbit/s, a seventh. For the lengths between they give a plot and no
// numbers: nothing is made up here to stand beside ours.
//
// They had ns-2's radio. The disc, in which no overlap is survived, is worse than theirs,
// and two-ray ground with the error rate of 2 Mbit/s, which survives one that is 2 dB
// weaker, better. TestE2ENS2sChainsCarryAsMuchHere has ns-2 itself beside its radio.
func TestChainThroughputFallsAsInLiEtAl(t *testing.T) {
	const most = 8
	theirs := map[int]string{1: "1.7, 1", most: "0.25, 1/7 (ideal 0.43, 1/4)"}
	t.Log("      disc              two-ray ground    ns-2's radio")
	t.Log("hops  Mbit/s  of a hop  Mbit/s  of a hop  Mbit/s  of a hop  Li et al., where their text has a number")
	var rows [most + 1][3]float64
	for hops := 1; hops <= most; hops++ {
		cfg := testConfig(phy.Standard80211b, 2, hops+1)
		cfg.RTSThresholdBytes, cfg.QueueFrames = 1, 50
		ns2 := ns2Config(2, hops+1)
		ns2.RTSThresholdBytes, ns2.QueueFrames = 1, 50
		for i, c := range []Config{disc(cfg, 550), waveLAN(t, cfg), ns2} {
			rows[hops][i] = chain(t, c, hops, 1472, 60*time.Second)
		}
		r, one := rows[hops], rows[1]
		t.Logf("%4d  %6.3f  %8.2f  %6.3f  %8.2f  %6.3f  %8.2f  %s", hops, r[0], r[0]/one[0], r[1], r[1]/one[1], r[2],
			r[2]/one[2], cmp.Or(theirs[hops], "a plot only"))
		for i := range r {
			checkChain(t, hops, r[i], rows[max(1, hops-1)][i], one[i])
		}
	}
	within(t, "one hop", rows[1][0], 1.7, 0.1)
	if end := rows[most]; end[0] > 0.25 || end[1] < 0.25 {
		t.Errorf("%d hops carry %g and %g Mbit/s: theirs, 0.25, was wanted between", most, end[0], end[1])
	}
	if end := rows[most]; end[2] > 0.25 || end[2] <= end[0] {
		t.Errorf("%d hops carry %g Mbit/s with ns-2's radio, want more than the disc's %g, and at most theirs, 0.25",
			most, end[2], end[0])
	}
}

func checkChain(t *testing.T, hops int, got, before, one float64) {
	t.Helper()
	switch {
	case hops == 1:
	case hops <= 3 && math.Abs(got*float64(hops)/one-1) > 0.15:
		t.Errorf("%d hops carry %g of one: all hear each other, 1/%d was wanted", hops, got/one, hops)
	case hops == 4 && got > 0.29*one || hops >= 6 && (got > 0.25*one || got < one/10):
		t.Errorf("%d hops carry %g of one: a quarter and below was wanted, about a seventh in the end", hops, got/one)
	case hops <= 4 && got > before:
		t.Errorf("%d hops carry %g Mbit/s, more than one hop less", hops, got)
	}
}
