package medium

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// recorder is a sink that remembers which numbered frame came to whom.
type recorder struct {
	delivered map[[2]int]int // node, number → times
	bytes     []uint64       // Ethernet bytes, by node
	failed    int
	gaveUp    []int // numbers of the frames
	refuse    bool
}

func newRecorder(nodes int) *recorder {
	return &recorder{delivered: map[[2]int]int{}, bytes: make([]uint64, nodes)}
}

func (r *recorder) Deliver(node int, _ time.Duration, ethernet []byte) bool {
	if r.refuse {
		return false
	}
	r.delivered[[2]int{node, int(binary.BigEndian.Uint32(ethernet[14:]))}]++
	r.bytes[node] += uint64(len(ethernet))
	return true
}

func (r *recorder) TxFailed(_ int, _ time.Duration, _ MAC, ethernet []byte) {
	r.failed++
	r.gaveUp = append(r.gaveUp, int(binary.BigEndian.Uint32(ethernet[14:])))
}

func nodeMAC(i int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255) }

// line puts nodes on a line, spacing metres apart.
func line(spacingM float64) Locate {
	return func(node int, _ time.Duration) (float64, float64) { return float64(node) * spacingM, 0 }
}

func testConfig(standard string, rateMbps float64, nodes int) Config {
	cfg := Config{Seed: 1, Standard: standard, Channel: 6, RateMbps: rateMbps,
		Propagation: propagation.Config{Model: "log_distance", Exponent: 3}}
	if standard == phy.Standard80211a {
		cfg.Channel = 36
	}
	for i := range nodes {
		cfg.Nodes = append(cfg.Nodes, NodeConfig{Name: fmt.Sprintf("n%d", i), MAC: nodeMAC(i),
			TxPowerDbm: 20, NoiseFigureDb: 7, HeightM: 1.5})
	}
	return cfg
}

func mustCore(t testing.TB, cfg Config, locate Locate, sink Sink) *Core {
	t.Helper()
	c, err := NewCore(cfg, locate, sink)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ethernet makes a numbered frame with so many bytes after the header.
func ethernet(from, to, number, payloadBytes int) []byte {
	f := make([]byte, dot11.EthernetHeaderBytes+payloadBytes)
	dst := MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if to >= 0 {
		dst, _ = ParseMAC(nodeMAC(to))
	}
	src, _ := ParseMAC(nodeMAC(from))
	copy(f, dst[:])
	copy(f[6:], src[:])
	binary.BigEndian.PutUint32(f[14:], uint32(number))
	return f
}

// flow is a saturated sender and its receiver.
type flow struct{ from, to int }

// saturate keeps the senders' queues full for a time. A sender's frames have its
// number.
func saturate(c *Core, payloadBytes int, during time.Duration, flows ...flow) {
	var frames [][]byte
	for _, f := range flows {
		frames = append(frames, ethernet(f.from, f.to, f.from, payloadBytes))
	}
	for end := c.Now() + during; c.Now() < end; c.Advance(c.Now() + time.Millisecond) {
		for i, f := range flows {
			for c.QueueRoom(f.from) > 0 {
				c.Enqueue(f.from, frames[i])
			}
		}
	}
}

// exchangeUs is the time in microseconds from DIFS to the end of the ACK of one frame on an
// idle channel, without its backoff, with the slot and the contention window: written out from
// the standard (and ns-2's basic rate) and not by the code under test.
func exchangeUs(radio, standard string, rate float64, udpBytes int, rts, longSlot bool) (us, slotUs float64,
	window int,
) {
	mpdu := float64(udpBytes + 8 + 20 + 8 + 24 + 4)
	var slot, sifs float64
	var air func(rate, bytes float64) float64
	var control float64
	if standard == phy.Standard80211b {
		slot, sifs, window = 20, 10, 31
		air = func(rate, bytes float64) float64 { return 192 + math.Ceil(8*bytes/rate) }
		control = min(rate, 2)
		if radio == phy.RadioNS2WaveLAN {
			control, window = 1, 30 // mac-timers.cc: random() % cw
		}
	} else {
		slot, sifs, window = 9, 16, 15
		ext := 0.0
		if standard == phy.Standard80211g {
			sifs, ext = 10, 6
		}
		if longSlot {
			slot = 20 // 18.4.4: aSlotTime of an ERP, 9 µs only where all know it and it is no IBSS
		}
		air = func(rate, bytes float64) float64 { return 20 + 4*math.Ceil((22+8*bytes)/(4*rate)) + ext }
		for _, basic := range []float64{6, 12, 24} {
			if basic <= rate {
				control = basic
			}
		}
	}
	us = sifs + 2*slot + air(rate, mpdu) + sifs + air(control, 14)
	if rts {
		us += air(control, 20) + sifs + air(control, 14) + sifs
	}
	return us, slot, window
}

// theoreticalMbps is the UDP payload rate of one saturated link, with the mean first backoff.
func theoreticalMbps(standard string, rate float64, udpBytes int, rts bool) float64 {
	us, slot, window := exchangeUs("", standard, rate, udpBytes, rts, false)
	return 8 * float64(udpBytes) / (us + slot*float64(window)/2)
}

// oneHop is one saturated link, and how far its throughput is from theory's with the backoffs that there were.
type oneHop struct {
	radio, standard string
	rate            float64
	longSlot        bool
	udpBytes        int
	rts             bool
	off             float64
}

const oneHopFrames = 400

var oneHops = once(func(t *testing.T) (all []oneHop) {
	for _, r := range phy.KnownRadios() {
		for _, standard := range r.Standards {
			if r.Format != nil {
				continue // see TestAMPDUSaturationAgainstArithmetic
			}
			base := testConfig(standard, 0, 2)
			base.Radio = r.Name
			if r.OwnPropagation {
				base.Propagation = propagation.Config{}
			}
			if r.Name == phy.RadioDisc {
				base.Propagation.RangeM = 100
			}
			all = append(all, oneHopsOf(t, base)...)
			if base.LongSlot = standard == phy.Standard80211g; base.LongSlot {
				all = append(all, oneHopsOf(t, base)...)
			}
		}
	}
	return all
})

func oneHopsOf(t *testing.T, cfg Config) (all []oneHop) {
	t.Helper()
	for _, m := range mustPHY(t, cfg.Standard).Modes {
		for _, udpBytes := range []int{64, 512, 1472} {
			for _, rts := range []bool{false, true} {
				cfg.RateMbps = m.RateMbps
				name := fmt.Sprintf("%s %s %g Mbit/s %d bytes rts=%v long slot=%v", cfg.Radio, cfg.Standard, m.RateMbps,
					udpBytes, rts, cfg.LongSlot)
				off := checkOneHop(t, name, cfg, udpBytes, rts, oneHopFrames)
				all = append(all, oneHop{cfg.Radio, cfg.Standard, m.RateMbps, cfg.LongSlot, udpBytes, rts, off})
			}
		}
	}
	return all
}

// One hop of every rate of every radio, frame by frame: from one start to the next passes the
// standard's time to the microsecond, and a whole number of slots, which is uniform
// over the contention window. Throughput over a time differs from its mean by the luck of the
// backoffs, and by nothing else.
func TestSaturationThroughputOfOneLinkAgainstTheory(t *testing.T) {
	worst := 0.0
	for _, h := range oneHops(t) {
		worst = max(worst, math.Abs(h.off))
	}
	t.Logf("%d links, the worst %.3f %% off, the luck of %d backoffs taken out", len(oneHops(t)), 100*worst,
		oneHopFrames)
	if worst > 1e-9 {
		t.Errorf("a link is %g of its throughput off", worst)
	}
}

// checkOneHop returns how far the throughput is from theory's with the backoffs that there were.
func checkOneHop(t *testing.T, name string, cfg Config, udpBytes int, rts bool, frames int) float64 {
	t.Helper()
	first := "data"
	if rts {
		cfg.RTSThresholdBytes, first = 1, "rts"
	}
	var starts []time.Duration
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" && e.Kind == first {
			starts = append(starts, e.At)
		}
	}
	sink := newRecorder(2)
	c := mustCore(t, cfg, line(5), sink)
	for len(starts) <= frames {
		saturate(c, udpBytes+28, 50*time.Millisecond, flow{0, 1})
	}
	us, slotUs, window := exchangeUs(cfg.Radio, cfg.Standard, cfg.RateMbps, udpBytes, rts, cfg.LongSlot)
	slots, mean := map[int]bool{}, 0.0
	for i := range frames {
		passed := float64(starts[i+1]-starts[i]) / 1e3
		n := (passed - us) / slotUs
		if n != math.Trunc(n) || n < 0 || n > float64(window) {
			t.Errorf("%s: %g µs from frame %d to the next, want %g and 0 to %d slots of %g", name, passed, i, us,
				window, slotUs)
			return 0
		}
		slots[int(n)] = true
		mean += n / float64(frames)
	}
	// Uniform on 0 … window: its standard deviation over √frames, five times.
	spread := math.Sqrt((math.Pow(float64(window+1), 2)-1)/12) / math.Sqrt(float64(frames))
	if math.Abs(mean-float64(window)/2) > 5*spread || len(slots) != window+1 {
		t.Errorf("%s: backoffs of %.2f slots on average, %d different ones, want %.1f ± %.2f and all of %d", name,
			mean, len(slots), float64(window)/2, 5*spread, window+1)
	}
	got := float64(frames) / (float64(starts[frames]-starts[0]) / 1e3)
	return got*(us+mean*slotUs) - 1
}

func TestTwoContendingStationsShare(t *testing.T) {
	cfg := testConfig(phy.Standard80211g, 54, 3)
	sink := newRecorder(3)
	c := mustCore(t, cfg, line(5), sink)
	saturate(c, 1500, 10*time.Second, flow{0, 2}, flow{1, 2})
	first, second := c.Counters(0), c.Counters(1)
	got0, got1 := first.Attempts-first.AttemptsFailed.Total(), second.Attempts-second.AttemptsFailed.Total()
	within(t, "the other's share", float64(got1), float64(got0), 0.05)
	alone := theoreticalMbps(phy.Standard80211g, 54, 1472, false)
	both := float64(sink.bytes[2]) / 1514 * 1472 * 8 / 10 / 1e6
	if both < 0.9*alone || both > 1.15*alone {
		t.Errorf("two stations carry %g Mbit/s together, one alone %g", both, alone)
	}
	if first.AttemptsFailed[Collision] == 0 {
		t.Error("two saturated stations never collided")
	}
	// Two stations with 16 slots each: Bianchi's fixed point for n = 2.
	p := float64(first.AttemptsFailed[Collision]) / float64(first.Attempts)
	within(t, "collision probability", p, bianchi(2, 16, 6), 0.1)
}

// bianchi is the collision probability of n saturated stations ("Performance
// analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC
// 18(3), 2000, eq. 7 and 9), by bisection.
func bianchi(n int, w, m float64) float64 {
	low, high := 0.0, 0.499999
	for range 100 {
		p := (low + high) / 2
		tau := 2 * (1 - 2*p) / ((1-2*p)*(w+1) + p*w*(1-math.Pow(2*p, m)))
		if 1-math.Pow(1-tau, float64(n-1)) > p {
			low = p
		} else {
			high = p
		}
	}
	return low
}

func TestSameSeedSameEvents(t *testing.T) {
	log := func(seed uint64) []byte {
		var out bytes.Buffer
		cfg := testConfig(phy.Standard80211g, 0, 5)
		cfg.Seed = seed
		cfg.RTSThresholdBytes = 800
		cfg.Trace = func(e Trace) { fmt.Fprintln(&out, e) }
		sink := newRecorder(5)
		c := mustCore(t, cfg, moving, sink)
		rng := rand.New(rand.NewPCG(7, 7))
		for i := range 3000 {
			from := rng.IntN(5)
			c.Enqueue(from, ethernet(from, rng.IntN(6)-1, i, 50+rng.IntN(1400)))
			c.Advance(c.Now() + time.Duration(rng.IntN(2_000_000)))
		}
		c.Advance(c.Now() + 10*time.Second)
		return out.Bytes()
	}
	first := log(1)
	if !bytes.Equal(first, log(1)) {
		t.Error("the same seed gave two event logs")
	}
	if bytes.Equal(first, log(2)) {
		t.Error("two seeds gave one event log")
	}
	h := fnv.New64a()
	h.Write(first)
	t.Logf("%d bytes of events, hash %x", len(first), h.Sum64())
}

// moving spreads nodes and lets them drift at 20 m/s.
func moving(node int, at time.Duration) (float64, float64) {
	return float64(node)*90 + 20*at.Seconds()*float64(node%2), float64(node*node%7) * 30
}

// Every frame ends once: at its receiver or as lost with a cause; and none is
// handed up twice. Random fields, rates, thresholds, deaths and refusals.
func TestNoFrameTwiceNoneLostWithoutCause(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		nodes := 2 + rng.IntN(7)
		standard := []string{phy.Standard80211b, phy.Standard80211g}[rng.IntN(2)]
		cfg := testConfig(standard, 0, nodes)
		cfg.Seed = seed
		cfg.RTSThresholdBytes = []int{0, 500}[rng.IntN(2)]
		cfg.QueueFrames = 1 + rng.IntN(50)
		if rng.IntN(2) == 0 {
			cfg.RateMbps = 11
			if standard == phy.Standard80211g {
				cfg.RateMbps = 24
			}
		}
		spread := rng.Float64() * 400
		xs, ys := make([]float64, nodes), make([]float64, nodes)
		for i := range nodes {
			xs[i], ys[i] = rng.Float64()*spread, rng.Float64()*spread
		}
		sink := newRecorder(nodes)
		c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
			return xs[n] + 15*at.Seconds(), ys[n]
		}, sink)
		sent := drive(c, rng, sink, nodes)
		checkEveryFrameEnded(t, seed, c, sink, sent, nodes)
	}
}

type sentFrames struct{ unicast, broadcast int }

func drive(c *Core, rng *rand.Rand, sink *recorder, nodes int) sentFrames {
	var sent sentFrames
	for i := range 1500 {
		from := rng.IntN(nodes)
		to := rng.IntN(nodes+2) - 1 // -1: broadcast; nodes: an address of nobody
		if to == from {
			to = -1
		}
		c.SetDead(rng.IntN(50) == 0)
		sink.refuse = rng.IntN(50) == 0
		frame := ethernet(from, to, i, 40+rng.IntN(1460))
		if c.Enqueue(from, frame) {
			if to < 0 {
				sent.broadcast++
			} else {
				sent.unicast++
			}
		}
		c.Advance(c.Now() + time.Duration(rng.IntN(1_000_000)))
	}
	c.SetDead(false)
	c.Advance(c.Now() + time.Minute)
	return sent
}

func checkEveryFrameEnded(t *testing.T, seed uint64, c *Core, sink *recorder, sent sentFrames, nodes int) {
	t.Helper()
	for key, times := range sink.delivered {
		if times != 1 {
			t.Errorf("seed %d: frame %d delivered %d times at node %d", seed, key[1], times, key[0])
		}
	}
	var delivered, lost, enqueued uint64
	for i := range nodes {
		n := c.Counters(i)
		delivered += n.Delivered
		enqueued += n.Enqueued
		lost += n.Lost.Total() - n.Lost[QueueFull]
		if n.Lost[NotLost] != 0 || n.AttemptsFailed[NotLost] != 0 {
			t.Errorf("seed %d: node %d lost frames without a cause", seed, i)
		}
		if c.stations[i].queued() != 0 || c.stations[i].head != nil {
			t.Errorf("seed %d: node %d still holds frames after a minute", seed, i)
		}
	}
	if int(enqueued) != sent.unicast+sent.broadcast {
		t.Errorf("seed %d: %d frames enqueued, %d given", seed, enqueued, sent.unicast+sent.broadcast)
	}
	if want := sent.unicast + sent.broadcast*(nodes-1); int(delivered+lost) != want {
		t.Errorf("seed %d: %d delivered + %d lost, %d owed", seed, delivered, lost, want)
	}
	for i, s := range c.stations {
		if s.arrivals != 0 || s.sumMw != 0 || s.sensed != 0 || s.tx != nil {
			t.Errorf("seed %d: node %d has %d frames on the air after a minute", seed, i, s.arrivals)
		}
	}
}

// NextEffect never lies beyond a delivery.
// A frame for one node is delivered to all who receive it where they are
// promiscuous, and only there; a broadcast comes once.
func TestPromiscuousNodesHaveFramesForOthers(t *testing.T) {
	for _, promiscuous := range []bool{false, true} {
		cfg := testConfig(phy.Standard80211g, 6, 3)
		cfg.Promiscuous = promiscuous
		sink := newRecorder(3)
		c := mustCore(t, cfg, line(10), sink)
		c.Enqueue(0, ethernet(0, 1, 7, 500))
		c.Enqueue(0, ethernet(0, -1, 8, 500))
		c.Advance(time.Second)
		want := map[[2]int]int{{1, 7}: 1, {1, 8}: 1, {2, 8}: 1}
		if promiscuous {
			want[[2]int{2, 7}] = 1
		}
		if !maps.Equal(sink.delivered, want) {
			t.Errorf("promiscuous %v: delivered %v, want %v", promiscuous, sink.delivered, want)
		}
		if n := c.Counters(2).Delivered; n != 1 {
			t.Errorf("promiscuous %v: %d frames count as delivered to the node that overhears", promiscuous, n)
		}
	}
}

// Who is told that a frame was given up is told which.
func TestAFrameThatIsGivenUpIsSaid(t *testing.T) {
	sink := newRecorder(2)
	c := mustCore(t, testConfig(phy.Standard80211g, 6, 2), line(1e5), sink)
	c.Enqueue(0, ethernet(0, 1, 7, 500))
	c.Advance(time.Second)
	if !slices.Equal(sink.gaveUp, []int{7}) {
		t.Errorf("given up: %v, want frame 7", sink.gaveUp)
	}
}

func TestNextEffectIsALowerBound(t *testing.T) {
	configs := []Config{testConfig(phy.Standard80211g, 0, 4)}
	for _, h := range htSets() {
		cfg := h.config(t, 0, 4)
		cfg.RateMbps, cfg.Propagation = 0, configs[0].Propagation
		cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.3, BurstFrames: 2}
		configs = append(configs, cfg)
	}
	for _, cfg := range configs {
		for _, threshold := range []int{0, 700} {
			cfg.RTSThresholdBytes = threshold
			checkNextEffect(t, cfg)
		}
	}
}

func checkNextEffect(t *testing.T, cfg Config) {
	t.Helper()
	var bound time.Duration
	var delivered int
	check := sinkFunc(func(_ int, at time.Duration) {
		delivered++
		if at < bound {
			t.Errorf("%s: delivery at %s before the bound %s", cfg.Radio, at, bound)
		}
	})
	c := mustCore(t, cfg, line(40), check)
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 8000 {
		from := rng.IntN(4)
		c.Enqueue(from, ethernet(from, rng.IntN(5)-1, i, 40+rng.IntN(1460)))
		next, any := c.NextEffect()
		if !any {
			next = c.Now() + time.Millisecond
		}
		bound = next
		c.Advance(next - 1)
		bound = 0
		c.Advance(next)
	}
	if delivered < 1000 {
		t.Fatalf("%s: only %d frames delivered", cfg.Radio, delivered)
	}
}

type sinkFunc func(node int, at time.Duration)

func (f sinkFunc) Deliver(node int, at time.Duration, _ []byte) bool { f(node, at); return true }
func (f sinkFunc) TxFailed(int, time.Duration, MAC, []byte)          {}

func TestSnapshots(t *testing.T) {
	c := mustCore(t, testConfig(phy.Standard80211g, 54, 3), line(10), newRecorder(3))
	saturate(c, 1500, time.Second, flow{0, 1})
	stations := c.Stations(0)
	if len(stations) != 1 || stations[0].Peer != nodeMAC(1) || *stations[0].TxBitrateMbps != 54 {
		t.Fatalf("node 0 sees %+v", stations)
	}
	// 20 dBm less 40.2 dB at 1 m and 30 dB for the decade.
	within(t, "signal", *stations[0].SignalDbm, 20-40.2-30, 0.01)
	if stations[0].RxBitrateMbps != nil {
		t.Error("an rx bitrate without received data")
	}
	survey := c.Survey(0)
	if busy := *survey.BusyMs / *survey.ActiveMs; busy < 0.6 || busy > 0.9 {
		t.Errorf("a saturated channel is busy for %g of the time", busy)
	}
	if drops := *survey.QueueDrops; drops != 0 {
		t.Errorf("%d queue drops", drops)
	}
	if caps := c.Caps(0); caps.Driver != "medium" || len(caps.RatesMbps) != 8 {
		t.Errorf("caps %+v", caps)
	}
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"standard":       func(c *Config) { c.Standard = "802.11x" },
		"rate":           func(c *Config) { c.RateMbps = 11 },
		"basic rate":     func(c *Config) { c.BasicRatesMbps = []float64{6, 11} },
		"channel":        func(c *Config) { c.Channel = 15 },
		"model":          func(c *Config) { c.Propagation.Model = "magic" },
		"exponent":       func(c *Config) { c.Propagation.Exponent = math.NaN() },
		"one node":       func(c *Config) { c.Nodes = c.Nodes[:1] },
		"names":          func(c *Config) { c.Nodes[1].Name = c.Nodes[0].Name },
		"addresses":      func(c *Config) { c.Nodes[1].MAC = c.Nodes[0].MAC },
		"group address":  func(c *Config) { c.Nodes[1].MAC = "01:00:00:00:00:00" },
		"not an address": func(c *Config) { c.Nodes[1].MAC = "wlan0" },
		"power":          func(c *Config) { c.Nodes[0].TxPowerDbm = math.Inf(1) },
		"height": func(c *Config) {
			c.Propagation.Model = "two_ray_ground"
			c.Nodes[0].HeightM = 0
		},
		"queue":          func(c *Config) { c.QueueFrames = -1 },
		"node's channel": func(c *Config) { c.Nodes[1].Channel = 36 },
		"disc":           func(c *Config) { c.Propagation = propagation.Config{Model: "disc"} },
		"carrier sense": func(c *Config) {
			c.Propagation = propagation.Config{Model: "disc", RangeM: 250, CarrierSenseM: 200}
		},
		"faded disc": func(c *Config) { *c = disc(*c, 550); c.Fading.Model = "rayleigh" },
		"shadowed disc": func(c *Config) {
			*c = disc(*c, 550)
			c.Shadowing = propagation.ShadowingConfig{SigmaDb: 6, DecorrelationM: 20}
		},
		"node correlation": func(c *Config) {
			c.Shadowing = propagation.ShadowingConfig{SigmaDb: 6, DecorrelationM: 20, NodeCorrelation: 0.6}
		},
		"scatterers without fading": func(c *Config) { c.Fading.ScattererMps = 1 },
		"energy below carrier sense": func(c *Config) {
			low := -90.0
			c.EnergyDetectDbm = &low
		},
		"shadowing":     func(c *Config) { c.Shadowing = propagation.ShadowingConfig{SigmaDb: -1, DecorrelationM: 20} },
		"decorrelation": func(c *Config) { c.Shadowing = propagation.ShadowingConfig{SigmaDb: 6} },
		"fading":        func(c *Config) { c.Fading.Model = "nakagami" },
		"K factor":      func(c *Config) { c.Fading.Model, c.Fading.KFactorDb = "rician", math.NaN() },
		"error mean":    func(c *Config) { c.ChannelError = propagation.ChannelErrorConfig{Mean: 1, BurstFrames: 2} },
		"error burst":   func(c *Config) { c.ChannelError = propagation.ChannelErrorConfig{Mean: 0.1} },
		"two error bursts": func(c *Config) {
			c.ChannelError = propagation.ChannelErrorConfig{Mean: 0.1, BurstFrames: 2, BurstS: 1}
		},
		"impossible burst": func(c *Config) { c.ChannelError.Mean, c.ChannelError.BurstFrames = 0.9, 2 },
		"rate control":     func(c *Config) { c.RateControl = "oracle" },
		"radio":            func(c *Config) { c.Radio = "orinoco" },
		"ns-2's as 802.11g": func(c *Config) {
			c.Radio, c.Propagation = phy.RadioNS2WaveLAN, propagation.Config{}
		},
		"ns-2's with a loss": func(c *Config) { *c = ns2Config(2, 2); c.Propagation.Model = "free_space" },
		"ns-2's beyond its carrier sense": func(c *Config) {
			*c = ns2Config(2, 2)
			c.Propagation.RangeM = 551
		},
		"retry limit": func(c *Config) { c.LongRetryLimit = -1 },
	} {
		cfg := testConfig(phy.Standard80211g, 54, 2)
		change(&cfg)
		if _, err := NewCore(cfg, line(5), newRecorder(2)); err == nil {
			t.Errorf("%s: no error", name)
		} else if errors.Unwrap(err) == nil && len(err.Error()) < 20 {
			t.Errorf("%s: error says too little: %v", name, err)
		}
	}
}

func BenchmarkSaturatedHop(b *testing.B) {
	sink := sinkFunc(func(int, time.Duration) {})
	benchmarkHop(b, mustCore(b, testConfig(phy.Standard80211g, 54, 2), line(5), sink))
}

func benchmarkHop(b *testing.B, c *Core) {
	frame := ethernet(0, 1, 0, 1500)
	b.ReportAllocs()
	for b.Loop() {
		c.Enqueue(0, frame)
		c.Advance(c.Now() + 400*time.Microsecond)
	}
}

// What shadowing, fading and burst errors cost beside a moving peer.
func BenchmarkSaturatedHopInAllWeathers(b *testing.B) {
	cfg := testConfig(phy.Standard80211g, 0, 2)
	cfg.Shadowing = propagation.ShadowingConfig{SigmaDb: 4, DecorrelationM: 20}
	cfg.Fading = propagation.FadingConfig{Model: "rician", KFactorDb: 6}
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.01, BurstS: 0.01}
	c := mustCore(b, cfg, func(n int, at time.Duration) (float64, float64) {
		return 5 * float64(n), 10 * math.Sin(at.Seconds()) * float64(n)
	}, sinkFunc(func(int, time.Duration) {}))
	benchmarkHop(b, c)
}

// Whatever a host writes to its device, the core takes or counts.
func FuzzEnqueue(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 13))
	f.Add(ethernet(0, 1, 1, 100))
	f.Add(ethernet(0, -1, 1, 1500))
	f.Add(ethernet(0, 0, 1, 50)) // to itself
	f.Add(make([]byte, 3000))
	fuzz.Run(f, func(t *testing.T, frame []byte) {
		var delivered int
		sink := sinkFunc(func(int, time.Duration) { delivered++ })
		c := mustCore(t, testConfig(phy.Standard80211g, 0, 2), line(5), sink)
		taken := c.Enqueue(0, frame)
		c.Advance(time.Minute)
		n := c.Counters(0)
		if uint64(delivered)+n.Lost.Total() != 1 {
			t.Errorf("frame of %d bytes, taken %v: %d delivered, %d lost", len(frame), taken, delivered, n.Lost.Total())
		}
	})
}
