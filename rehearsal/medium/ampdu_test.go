package medium

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// htSet is a set of rates as IEEE 802.11-2020 makes them (19.5, 21.5): data subcarriers, bits of a
// subcarrier and the code's rate, in symbols of 4 µs; preamble and header of one stream (19.3.9, 21.3.8).
type htSet struct {
	radio, standard string
	channel         int
	subcarriers     int
	preambleUs      float64
	maxBytes        int
	mcs             int
}

func htSets() []htSet {
	return []htSet{
		{phy.RadioHT20, phy.Standard80211n, 6, 52, 36, 65_535, 8},
		{phy.RadioHT20, phy.Standard80211n, 36, 52, 36, 65_535, 8},
		{phy.RadioHT40, phy.Standard80211n, 36, 108, 36, 65_535, 8},
		{phy.RadioVHT80, phy.Standard80211ac, 36, 234, 40, 1_048_575, 10},
	}
}

// bitsPerSymbol is N_DBPS of a rate, and controlMbps the rate of an answer to it: the highest of the
// basic 6, 12 and 24 Mbit/s up to that of 802.11a with the same modulation and code (10.6.6.5.2).
func (h htSet) bitsPerSymbol(mcs int) float64 {
	bits := []float64{1, 2, 2, 4, 4, 6, 6, 6, 8, 8}[mcs]
	code := []float64{1. / 2, 1. / 2, 3. / 4, 1. / 2, 3. / 4, 2. / 3, 3. / 4, 5. / 6, 3. / 4, 5. / 6}[mcs]
	return math.Round(float64(h.subcarriers) * bits * code)
}

func controlMbps(mcs int) float64 { return []float64{6, 12, 12, 24, 24, 24, 24, 24, 24, 24}[mcs] }

// band is SIFS and the silence after a frame.
func (h htSet) band() (sifsUs, silenceUs float64) {
	if h.channel <= 14 {
		return 10, 6
	}
	return 16, 0
}

// nonHTUs is the airtime of a control frame (17.4.3).
func (h htSet) nonHTUs(mbps float64, bytes int) float64 {
	_, silence := h.band()
	return 20 + 4*math.Ceil(float64(22+8*bytes)/(4*mbps)) + silence
}

// ppduUs is the airtime of an A-MPDU of n MPDUs, and its length.
func (h htSet) ppduUs(mcs, n, mpduBytes int) (us float64, bytes int) {
	_, silence := h.band()
	one := 4 + mpduBytes
	bytes = (n-1)*((one+3)/4*4) + one
	if n == 1 && h.radio != phy.RadioVHT80 {
		bytes = mpduBytes
	}
	return h.preambleUs + 4*math.Ceil(float64(22+8*bytes)/h.bitsPerSymbol(mcs)) + silence, bytes
}

// most is how many MPDUs an A-MPDU may have.
func (h htSet) most(mcs, mpduBytes int) int {
	n := 1
	for n < 64 {
		if us, bytes := h.ppduUs(mcs, n+1, mpduBytes); us > 5484 || bytes > h.maxBytes {
			break
		}
		n++
	}
	return n
}

// saturationMbps is what one sender carries of payload: AIFS of SIFS and three slots, half of the least window of 15
// slots of 9 µs, the PPDU, SIFS and the block acknowledgement of 32 bytes, or the ACK of 14 to one frame.
func (h htSet) saturationMbps(mcs, payloadBytes int) (mbps float64, frames int) {
	mpdu := payloadBytes + 8 + 26 + 4 // LLC, header with QoS control, FCS
	sifs, _ := h.band()
	n := h.most(mcs, mpdu)
	answer := 32
	if n == 1 {
		answer = 14
	}
	us, _ := h.ppduUs(mcs, n, mpdu)
	us += sifs + 3*9 + 7.5*9 + sifs + h.nonHTUs(controlMbps(mcs), answer)
	return float64(8*n*payloadBytes) / us, n
}

func (h htSet) config(t *testing.T, mcs, nodes int) Config {
	t.Helper()
	p, err := phy.New(phy.Config{Standard: h.standard, Radio: h.radio, Channel: h.channel})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(h.standard, p.RatesMbps()[mcs], nodes)
	cfg.Radio, cfg.Channel, cfg.QueueFrames = h.radio, h.channel, 256
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 1000}
	return cfg
}

// saturation is what one sender carries, and what it should.
type saturation struct {
	htSet
	rate, payload, frames int
	got, want             float64 // Mbit/s
}

var saturations = once(func(t *testing.T) (all []saturation) {
	for _, h := range htSets() {
		for mcs := range h.mcs {
			for _, payload := range []int{1500, 200} {
				want, frames := h.saturationMbps(mcs, payload)
				sink := newRecorder(2)
				c := mustCore(t, h.config(t, mcs, 2), line(1), sink)
				const during = 4 * time.Second
				saturate(c, payload, during, flow{0, 1})
				got := float64(sink.bytes[1]) * float64(payload) / float64(payload+14) * 8 / during.Seconds() / 1e6
				all = append(all, saturation{h, mcs, payload, frames, got, want})
			}
		}
	}
	return all
})

// The whole of what a saturated sender carries, against the standard's arithmetic.
func TestAMPDUSaturationAgainstArithmetic(t *testing.T) {
	for _, s := range saturations(t) {
		what := fmt.Sprintf("%s channel %2d MCS %d, %4d bytes", s.radio, s.channel, s.rate, s.payload)
		t.Logf("%s: %7.3f Mbit/s, arithmetic %7.3f (%+.2f %%), %d frames in a PPDU", what, s.got, s.want,
			100*(s.got/s.want-1), s.frames)
		within(t, what, s.got, s.want, 0.03)
	}
}

// Stations of EDCA count down as a slot begins, also when it turns out to be busy: as Bianchi's do, so
// that they collide as often, but for chance, of which four standard deviations are allowed.
func TestSaturatedAMPDUsAgainstBianchi(t *testing.T) {
	h := htSets()[1]
	for _, n := range []int{2, 5, 10} {
		const mcs, payload, seed, transmissions = 7, 1500, 1, 100_000
		mbps, failed, fails := contend(t, h.config(t, mcs, n+1), n, payload, 20*time.Second, func(c *Core) {
			c.cfg.QueueFrames = 256
			c.phy.EIFS = (16 + 9 + 20) * time.Microsecond // all wait equally long after a collision
		})
		frames := h.most(mcs, payload+38)
		us, _ := h.ppduUs(mcs, frames, payload+38)
		model := dcfModel{n, 16, 6, shortRetryLimit, 9, us, 16 + h.nonHTUs(24, 32) + 43, 45}
		played := model.collisions(seed, transmissions, true)
		_, ppdus := model.solve()
		want := ppdus * float64(8*frames*payload) / 1e6
		t.Logf("%2d stations: collisions %.4f, Bianchi's slots played %.4f; %.2f Mbit/s, model %.2f", n, failed, played,
			mbps, want)
		within(t, fmt.Sprintf("%d stations: collisions", n), failed, played,
			4*math.Sqrt(2*float64(frames)/fails+2/(played*transmissions)))
		within(t, fmt.Sprintf("%d stations: throughput", n), mbps, want, 0.05)
	}
}

// A transmission's start counts from the level of the radio's width on, anything from that of its
// energy on.
func TestWiderRadiosSenseByTheirLevels(t *testing.T) {
	for _, h := range htSets() {
		cfg := h.config(t, 0, 2)
		cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
		c := mustCore(t, cfg, line(10), newRecorder(2))
		widerDb := map[string]float64{phy.RadioHT20: 0, phy.RadioHT40: 3, phy.RadioVHT80: 6}[h.radio]
		within(t, h.radio+": carrier sense", propagation.RatioToDb(c.carrierMw), -82+widerDb, 1e-9)
		within(t, h.radio+": energy", propagation.RatioToDb(c.stations[0].energyMw), -62+widerDb, 1e-9)
	}
}

// Two senders share the channel, whatever their numbers are.
func TestAMPDUSendersShareFairly(t *testing.T) {
	for _, h := range htSets() {
		mcs := h.mcs - 1
		var carried []float64
		for _, order := range [][]flow{{{0, 2}, {1, 2}}, {{1, 2}, {0, 2}}, {{2, 0}, {1, 0}}} {
			sink := &byFlow{bytes: map[[2]int]float64{}}
			c := mustCore(t, h.config(t, mcs, 3), line(1), sink)
			const during = 20 * time.Second
			saturate(c, 1500, during, order...)
			a, b := sink.bytes[[2]int{order[0].from, order[0].to}], sink.bytes[[2]int{order[1].from, order[1].to}]
			alone, _ := h.saturationMbps(mcs, 1500)
			t.Logf("%s channel %d: %.2f and %.2f Mbit/s, alone %.2f", h.radio, h.channel, a*8/20e6, b*8/20e6, alone)
			within(t, h.radio+": the two senders", a, b, 0.05)
			carried = append(carried, (a+b)*8/20e6)
			if (a+b)*8/20e6 > 1.02*alone || (a+b)*8/20e6 < 0.8*alone {
				t.Errorf("%s: two senders carry %g Mbit/s, one alone %g", h.radio, (a+b)*8/20e6, alone)
			}
		}
		within(t, h.radio+": another order of nodes", carried[1], carried[0], 0.02)
		within(t, h.radio+": other numbers of nodes", carried[2], carried[0], 0.02)
	}
}

// byFlow counts payload by the sender in its number and the receiver.
type byFlow struct{ bytes map[[2]int]float64 }

func (s *byFlow) Deliver(node int, _ time.Duration, ethernet []byte) bool {
	s.bytes[[2]int{int(binary.BigEndian.Uint32(ethernet[14:])), node}] += float64(len(ethernet) - 14)
	return true
}
func (s *byFlow) TxFailed(int, time.Duration, MAC, []byte) {}

// inOrder is a sink that holds every flow to the order of its numbers.
type inOrder struct {
	t       *testing.T
	what    string
	last    map[[2]int]uint32 // by sender and receiver; numbers begin at 1
	count   map[[2]int]int
	gaveUp  int
	latest  time.Duration
	longest time.Duration // without a delivery
}

func newInOrder(t *testing.T, what string) *inOrder {
	return &inOrder{t: t, what: what, last: map[[2]int]uint32{}, count: map[[2]int]int{}}
}

func (s *inOrder) Deliver(node int, at time.Duration, ethernet []byte) bool {
	flow, number := [2]int{int(ethernet[11]), node}, binary.BigEndian.Uint32(ethernet[14:])
	if number <= s.last[flow] {
		s.t.Errorf("%s: %v got number %d after %d", s.what, flow, number, s.last[flow])
	}
	s.last[flow] = number
	s.count[flow]++
	s.longest, s.latest = max(s.longest, at-s.latest), at
	return true
}

func (s *inOrder) TxFailed(int, time.Duration, MAC, []byte) { s.gaveUp++ }

// Over random losses, positions and lengths every frame comes once at most, in its order, and what does not come is
// counted as lost; some are lost, and some are given up.
func TestAMPDUsArriveOnceAndInOrder(t *testing.T) {
	gaveUp, lost, again, duplicates := 0, uint64(0), uint64(0), uint64(0)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := htSets()[rng.IntN(4)]
		cfg := h.config(t, rng.IntN(h.mcs), 4)
		cfg.Seed, cfg.QueueFrames = seed, 64
		if rng.IntN(3) == 0 {
			cfg.RateMbps, cfg.RateControl = 0, []string{rateControlSNR, rateControlMinstrel}[rng.IntN(2)]
		}
		if rng.IntN(3) == 0 {
			cfg.RTSThresholdBytes = 500
		}
		if rng.IntN(2) == 0 {
			cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.05 + 0.45*rng.Float64(),
				BurstFrames: 1 + 5*rng.Float64()}
		} else {
			cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
			cfg.Fading = propagation.FadingConfig{Model: "rayleigh", ScattererMps: 10}
		}
		places := make([][2]float64, 4)
		for i := range places {
			places[i] = [2]float64{80 * rng.Float64(), 80 * rng.Float64()}
		}
		what := fmt.Sprintf("seed %d, %s", seed, h.radio)
		sink := newInOrder(t, what)
		c := mustCore(t, cfg, func(node int, _ time.Duration) (float64, float64) {
			return places[node][0], places[node][1]
		}, sink)
		number := map[[2]int]int{}
		sent := 0
		for c.Now() < time.Second {
			for range rng.IntN(60) {
				f := [2]int{rng.IntN(4), rng.IntN(4)}
				if f[0] == f[1] || c.QueueRoom(f[0]) == 0 {
					continue
				}
				number[f]++
				sent++
				c.Enqueue(f[0], ethernet(f[0], f[1], number[f], 46+rng.IntN(1454)))
			}
			c.Advance(c.Now() + time.Duration(rng.IntN(3000))*time.Microsecond)
		}
		c.Advance(time.Minute)
		delivered, ended := 0, uint64(0)
		for _, n := range sink.count {
			delivered += n
		}
		for i := range 4 {
			k := c.Counters(i)
			ended += k.Lost.Total()
			lost, again, duplicates = lost+k.Lost.Total(), again+k.Retries, duplicates+k.Duplicate
			if k.Enqueued == 0 || k.Attempts < k.Retries {
				t.Errorf("%s: counters %+v", what, k)
			}
		}
		if uint64(delivered)+ended != uint64(sent) {
			t.Errorf("%s: %d frames sent, %d delivered and %d lost", what, sent, delivered, ended)
		}
		gaveUp += sink.gaveUp
		for _, s := range c.stations {
			if len(s.again) > 0 || s.head != nil || s.queue.Len() > 0 {
				t.Errorf("%s: frames are left at node %d after a minute", what, s.index)
			}
		}
	}
	t.Logf("%d frames lost, %d given up, %d sent again, %d came twice", lost, gaveUp, again, duplicates)
	if gaveUp == 0 || again == 0 || duplicates == 0 {
		t.Error("nothing was lost: the test does not test")
	}
}

// Each frame of an A-MPDU is lost by itself, as often as one that long is at that SNR, and only what was lost is sent
// again.
func TestFramesOfAnAMPDUAreLostByThemselves(t *testing.T) {
	h := htSets()[1]
	for _, lost := range []float64{0.02, 0.1, 0.3} {
		cfg := h.config(t, 7, 2)
		cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
		cfg.ShortRetryLimit = math.MaxInt
		sink := newRecorder(2)
		// The power at which so many of the subframes are lost, at 10 m.
		probe := mustCore(t, cfg, line(10), sink)
		_, snrDb := probe.Strength(0, 1)
		m := &probe.phy.Modes[probe.phy.FirstData+7]
		bits := float64(8 * (4 + 1538))
		low, high := 0.0, 40.0
		for high-low > 1e-6 {
			mid := (low + high) / 2
			if phy.LostShare(m.LogSuccess(propagation.DbToRatio(mid), bits)) > lost {
				low = mid
			} else {
				high = mid
			}
		}
		for i := range cfg.Nodes {
			cfg.Nodes[i].TxPowerDbm += high - snrDb
		}
		c := mustCore(t, cfg, line(10), sink)
		saturate(c, 1500, 20*time.Second, flow{0, 1})
		k := c.Counters(0)
		got := float64(k.AttemptsFailed[ChannelError]) / float64(k.Attempts)
		t.Logf("%.4f of the frames lost, theory %.4f; %d attempts, %d again", got, lost, k.Attempts, k.Retries)
		within(t, "share of lost frames", got, lost, 0.04)
		if k.Lost.Total() != 0 || k.AttemptsFailed.Total() != k.AttemptsFailed[ChannelError] {
			t.Errorf("lost %v, failed %v", k.Lost, k.AttemptsFailed)
		}
		// What arrives is what was sent and not lost.
		arrived := float64(sink.bytes[1]) / 1514
		within(t, "arrived", arrived, float64(k.Attempts)-float64(k.AttemptsFailed.Total()), 0.005)
	}
}

// Two that do not hear each other collide in the middle: whole A-MPDUs are lost when their preambles
// are, and RTS, with which only the short ones collide, brings most of it back.
func TestHiddenAMPDUsCollide(t *testing.T) {
	h := htSets()[1]
	carried := func(rts int) float64 {
		cfg := h.config(t, 3, 3)
		cfg.Propagation = propagation.Config{Model: "disc", RangeM: 100, CarrierSenseM: 120}
		cfg.RTSThresholdBytes = rts
		sink := newRecorder(3)
		lost := 0
		cfg.Trace = func(e Trace) {
			if e.Event == "rx_fail" && e.Node == 1 && e.Cause == Collision {
				lost++
			}
		}
		c := mustCore(t, cfg, line(90), sink)
		saturate(c, 1500, 5*time.Second, flow{0, 1}, flow{2, 1})
		var k CauseCounts
		for _, i := range []int{0, 2} {
			for cause, n := range c.Counters(i).AttemptsFailed {
				k[cause] += n
			}
		}
		if k.Total() != k[Collision] || lost == 0 && rts == 0 && k[Collision] == 0 {
			t.Errorf("attempts failed: %v; lost in collisions: %d", k, lost)
		}
		return float64(sink.bytes[1]) * 8 / 5e6
	}
	bare, rts := carried(0), carried(1000)
	alone, _ := h.saturationMbps(3, 1500)
	t.Logf("hidden senders of A-MPDUs: %.2f Mbit/s, with RTS %.2f, one alone %.2f", bare, rts, alone)
	if bare > 0.3*alone || rts < 0.5*alone || rts > alone {
		t.Errorf("hidden senders carry %g Mbit/s, with RTS %g, one alone %g", bare, rts, alone)
	}
}

// Behind a frame that was given up the others wait for the sender's request, which follows at once, and
// not for the 100 ms: with one try for each frame all that was not lost arrives, and soon.
func TestARequestFollowsWhatIsGivenUp(t *testing.T) {
	h := htSets()[1]
	cfg := h.config(t, 7, 2)
	cfg.ShortRetryLimit = 1
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.2, BurstFrames: 1}
	requests := 0
	cfg.Trace = func(e Trace) { requests += boolToInt(e.Event == "tx" && e.Kind == "block_ack_request") }
	sink := newInOrder(t, "requests")
	c := mustCore(t, cfg, line(1), sink)
	number := 0
	for c.Now() < 2*time.Second {
		for c.QueueRoom(0) > 0 {
			number++
			c.Enqueue(0, ethernet(0, 1, number, 1500))
		}
		c.Advance(c.Now() + time.Millisecond)
	}
	k, alone := c.Counters(0), 0.0
	alone, _ = h.saturationMbps(7, 1500)
	got := float64(sink.count[[2]int{0, 1}]) * 8 * 1500 / 2e6
	t.Logf("%d of %d frames given up, %d requests, %.2f Mbit/s, without losses %.2f, longest silence %s",
		k.Lost[ChannelError], k.Attempts, requests, got, alone, sink.longest)
	if k.Retries != 0 || requests < 100 || got < 0.7*alone || sink.longest > 20*time.Millisecond {
		t.Error("the others waited, or there was nothing to wait for")
	}
}

// A frame that begins while an A-MPDU is on the air breaks those of its frames that it covers, and one
// that covers the preamble breaks all.
func TestACollisionBreaksWhatItCovers(t *testing.T) {
	h := htSets()[1]
	const frames, mcs = 10, 3
	air, _ := h.ppduUs(mcs, frames, 1538)
	for _, v := range []struct {
		fromUs float64 // when the other begins, from the A-MPDU's start on
		want   int     // frames that come through at once
	}{{-20, 0}, {10, 0}, {air / 2, frames / 2}, {air + 1, frames}} {
		cfg := h.config(t, mcs, 4)
		cfg.Propagation = propagation.Config{Model: "disc", RangeM: 100, CarrierSenseM: 100}
		causes := map[Cause]int{}
		cfg.Trace = func(e Trace) {
			if e.Event == "rx_fail" && e.Node == 1 {
				causes[e.Cause]++
			}
		}
		sink := newRecorder(4)
		c := mustCore(t, cfg, func(node int, _ time.Duration) (float64, float64) {
			return []float64{0, 90, 180, 270}[node], 0
		}, sink)
		const start = 10 * time.Millisecond // the channel has been idle, so both go at once
		other := func() { c.Enqueue(2, ethernet(2, -1, 99, 2000)) }
		at := start + time.Duration(v.fromUs*1000)
		if at < start {
			c.Advance(at)
			other()
		}
		c.Advance(start)
		for i := range frames {
			c.Enqueue(0, ethernet(0, 1, i, 1500))
		}
		if at >= start {
			c.Advance(at)
			other()
		}
		c.Advance(start + time.Duration(air*1000) + time.Microsecond)
		got := 0
		for i := range frames {
			got += sink.delivered[[2]int{1, i}]
		}
		t.Logf("the other begins at %.0f of %.0f µs: %d of %d frames came through; %v", v.fromUs, air, got, frames,
			causes)
		if got < v.want-1 || got > v.want || causes[ChannelError] > 0 ||
			got > 0 && causes[Collision] != frames-got {
			t.Errorf("the other begins at %g µs: %d frames came through, want %d; %v", v.fromUs, got, v.want, causes)
		}
	}
}

// Frames for two receivers each go in A-MPDUs of their own, and neither waits for the other's to be repeated.
func TestAMPDUsAreForOneReceiver(t *testing.T) {
	h := htSets()[1]
	cfg := h.config(t, 7, 4)
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 100}
	sink := newInOrder(t, "two receivers")
	longest := 0
	c := mustCore(t, cfg, func(node int, _ time.Duration) (float64, float64) {
		return []float64{0, 10, 20, 1000}[node], 0 // the last is out of range
	}, sink)
	number := 0
	for end := c.Now() + 4*time.Second; c.Now() < end; c.Advance(c.Now() + time.Millisecond) {
		for c.QueueRoom(0) > 0 {
			number++
			c.Enqueue(0, ethernet(0, 1+number%3, number, 1500))
		}
		for _, s := range c.stations {
			longest = max(longest, len(s.burst))
			for _, f := range s.burst {
				if f.to != s.burst[0].to {
					t.Fatalf("one A-MPDU for %d and %d", f.to, s.burst[0].to)
				}
			}
		}
	}
	near, far := sink.count[[2]int{0, 1}], sink.count[[2]int{0, 2}]
	t.Logf("%d and %d frames, %d given up, up to %d in one A-MPDU", near, far, sink.gaveUp, longest)
	if longest < 20 || sink.gaveUp == 0 || sink.count[[2]int{0, 3}] != 0 {
		t.Error("the A-MPDUs are short, or nothing was given up")
	}
	within(t, "the two receivers", float64(near), float64(far), 0.02)
}

// A broadcast goes once, at the lowest basic rate, by itself; a single frame has an ACK, several have a
// block acknowledgement.
func TestWhatGoesInAnAMPDU(t *testing.T) {
	for _, h := range htSets() {
		var kinds []string
		cfg := h.config(t, 0, 2)
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" {
				kinds = append(kinds, fmt.Sprintf("%s %g", e.Kind, e.RateMbps))
			}
		}
		c := mustCore(t, cfg, line(1), newRecorder(2))
		rate := c.RatesMbps()[0]
		say := func(to, n int, want ...string) {
			t.Helper()
			kinds = nil
			for i := range n {
				c.Enqueue(0, ethernet(0, to, i+1, 100))
			}
			c.Advance(c.Now() + 100*time.Millisecond)
			if !slices.Equal(kinds, want) {
				t.Errorf("%s: %d frames to %d went as %v, want %v", h.radio, n, to, kinds, want)
			}
		}
		data := fmt.Sprintf("data %g", rate)
		say(-1, 2, "data 6", "data 6")
		say(1, 1, data, "ack 6")
		say(1, 5, data, "block_ack 6")
	}
}

// The standard's least sensitivity of each rate (19.3.19.2, 21.3.18.1): at most 10 % of 4096 bytes are
// lost there. Faster rates need more.
func TestHTRadiosAreAsSensitiveAsTheStandardWants(t *testing.T) {
	for _, h := range htSets() {
		p, err := phy.New(phy.Config{Standard: h.standard, Radio: h.radio, Channel: h.channel})
		if err != nil {
			t.Fatal(err)
		}
		widerDb := map[string]float64{phy.RadioHT20: 0, phy.RadioHT40: 3, phy.RadioVHT80: 6}[h.radio]
		noiseFigureDb, _ := phy.RadioDefaults(h.radio)
		last := math.Inf(-1)
		for mcs, dbm := range []float64{-82, -79, -77, -74, -70, -66, -65, -64, -59, -57}[:h.mcs] {
			m := &p.Modes[p.FirstData+mcs]
			needs := -120.0
			for phy.LostShare(m.LogSuccess(propagation.DbToRatio(needs)/p.NoiseMw(noiseFigureDb), 22+8*4096)) > 0.1 {
				needs += 0.01
			}
			t.Logf("%s MCS %d: %.1f dBm, the standard %.0f", h.radio, mcs, needs, dbm+widerDb)
			if needs > dbm+widerDb || needs < dbm+widerDb-14 || needs <= last {
				t.Errorf("%s MCS %d needs %.1f dBm, the standard wants %.0f, the rate below needs %.1f", h.radio, mcs,
					needs, dbm+widerDb, last)
			}
			last = needs
		}
	}
}

// A request for an acknowledgement goes at no rate that is chosen. Where even it is preceded
// by RTS and fails, nothing is counted for any.
func TestARequestBehindAFailedRTSCountsForNoRate(t *testing.T) {
	cfg := htSets()[1].config(t, 7, 2)
	cfg.RateMbps, cfg.RateControl, cfg.RTSThresholdBytes = 0, rateControlMinstrel, 1
	cfg.Propagation = propagation.Config{Model: "log_distance", Exponent: 3}
	c := mustCore(t, cfg, func(n int, at time.Duration) (float64, float64) {
		if n == 1 && at > time.Second {
			return 100_000, 0 // out of reach, with frames under way
		}
		return float64(n) * 10, 0
	}, newRecorder(2))
	saturate(c, 1500, 2*time.Second, flow{0, 1})
	if k := c.Counters(0); k.TxFailed == 0 {
		t.Errorf("no frame was given up: %+v", k)
	}
}

// A frame that comes after its receiver has stopped waiting for it is lost, and no duplicate.
func TestALateFrameIsNoDuplicate(t *testing.T) {
	const senders = 12
	cfg := htSets()[1].config(t, 7, senders+1)
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.3, BurstFrames: 3}
	late, lostACKs := 0, 0
	cfg.FrameLost = func(l FrameLoss) {
		if !l.RetryLimit {
			late++
		}
	}
	cfg.Trace = func(e Trace) {
		if e.Event == "rx_fail" && (e.Kind == "block_ack" || e.Kind == "ack") {
			lostACKs++
		}
	}
	c := mustCore(t, cfg, line(1), newRecorder(senders+1))
	var flows []flow
	for i := range senders {
		flows = append(flows, flow{i + 1, 0})
	}
	saturate(c, 1500, 6*time.Second, flows...)
	if n := c.Counters(0).Duplicate; late == 0 || lostACKs > 0 || n > 0 {
		t.Errorf("%d frames came late, %d acknowledgements were lost, %d duplicates are counted", late, lostACKs, n)
	}
}
