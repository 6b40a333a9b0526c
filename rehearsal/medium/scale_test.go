package medium

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// randomField is a field of random places, some of them drifting.
func randomField(rng *rand.Rand, nodes int, sideM float64) Locate {
	type course struct{ x, y, vx, vy float64 }
	courses := make([]course, nodes)
	for i := range courses {
		courses[i] = course{x: rng.Float64() * sideM, y: rng.Float64() * sideM}
		if rng.IntN(3) == 0 {
			courses[i].vx, courses[i].vy = 40*rng.Float64()-20, 40*rng.Float64()-20
		}
	}
	return func(n int, at time.Duration) (float64, float64) {
		c, s := courses[n], at.Seconds()
		return c.x + c.vx*s, c.y + c.vy*s
	}
}

// randomConfig is any radio that the package has.
func randomConfig(rng *rand.Rand, seed uint64, nodes int) Config {
	standard := []string{phy.Standard80211a, phy.Standard80211b, phy.Standard80211g}[rng.IntN(3)]
	cfg := testConfig(standard, 0, nodes)
	cfg.Seed = seed
	cfg.RTSThresholdBytes = []int{0, 400}[rng.IntN(2)]
	cfg.RateControl = []string{"", rateControlSNR, rateControlMinstrel}[rng.IntN(3)]
	cfg.QueueFrames = 1 + rng.IntN(50)
	cfg.Propagation = []propagation.Config{
		{Model: "free_space"}, {Model: "log_distance", Exponent: 3}, {Model: "two_ray_ground"},
		{Model: "disc", RangeM: 200}, {Model: "disc", RangeM: 250, CarrierSenseM: 250},
	}[rng.IntN(5)]
	if cfg.Propagation.Model != "disc" {
		cfg.Shadowing = []propagation.ShadowingConfig{{}, {SigmaDb: 6, DecorrelationM: 20}}[rng.IntN(2)]
		cfg.Fading = []propagation.FadingConfig{{}, {Model: "rayleigh"}, {Model: "rician", KFactorDb: 6}}[rng.IntN(3)]
	}
	if standard == phy.Standard80211b && rng.IntN(2) == 0 {
		cfg.Radio, cfg.Propagation = phy.RadioNS2WaveLAN, propagation.Config{}
		cfg.Shadowing, cfg.Fading = propagation.ShadowingConfig{}, propagation.FadingConfig{}
	}
	errors := []propagation.ChannelErrorConfig{{}, {Mean: 0.1, BurstFrames: 3}, {Mean: 0.1, BurstS: 0.02}}
	cfg.ChannelError = errors[rng.IntN(len(errors))]
	for i := range cfg.Nodes {
		cfg.Nodes[i].TxPowerDbm += float64(rng.IntN(7)) - 3
		cfg.Nodes[i].NoiseFigureDb += float64(rng.IntN(4))
		if standard != phy.Standard80211a && rng.IntN(4) == 0 {
			cfg.Nodes[i].Channel = 11
		}
	}
	if cfg.Radio == "" && rng.IntN(4) == 0 {
		h := htSets()[rng.IntN(len(htSets()))]
		cfg.Standard, cfg.Radio, cfg.Channel = h.standard, h.radio, h.channel
		for i := range cfg.Nodes {
			if cfg.Nodes[i].Channel != 0 && h.channel == 36 {
				cfg.Nodes[i].Channel = 149
			}
		}
	}
	return cfg
}

// onAir is a transmission as the trace shows it.
type onAir struct {
	start, end time.Duration
	node       int
	free       bool // sent a SIFS after a frame: it asks nobody for the channel
}

// airWatch checks each start of a frame against what is on the air.
type airWatch struct {
	t       *testing.T
	seed    uint64
	c       *Core
	live    []onAir
	cts     map[int]time.Duration // when a node got a CTS last
	checked int
	overlap int
}

func (w *airWatch) see(e Trace) {
	if e.Event == "rx" && e.Kind == "cts" {
		w.cts[e.Node] = e.At
	}
	if e.Event != "tx" {
		return
	}
	w.live = slices.DeleteFunc(w.live, func(o onAir) bool { return o.end <= e.At })
	got, any := w.cts[e.Node]
	free := slices.Contains([]string{"ack", "block_ack", "cts"}, e.Kind) ||
		e.Kind == "data" && any && e.At == got+w.c.phy.SIFS
	for _, o := range w.live {
		if o.node == e.Node {
			w.t.Errorf("seed %d: node %d sends twice at %s", w.seed, e.Node, e.At)
		}
		w.checked++
		if free || o.start == e.At || !w.senses(e.Node, o.node) {
			continue // an answer, a collision in the same instant, or out of earshot
		}
		w.overlap++
		w.t.Errorf("seed %d: node %d sends %s at %s over node %d, which it hears since %s", w.seed, e.Node, e.Kind,
			e.At, o.node, o.start)
	}
	w.live = append(w.live, onAir{start: e.At, end: w.endOf(e), node: e.Node, free: free})
}

// senses reports whether one node's carrier sense must notice another: by the power
// at its antenna, worked out from the trace's places and nothing that the MAC knows.
func (w *airWatch) senses(node, other int) bool {
	for _, tx := range w.c.air {
		if a := &tx.at[node]; tx.from == other && a.meanMw > 0 {
			return a.sensed || a.powerMw*w.c.interferes >= w.c.stations[node].energyMw
		}
	}
	return false
}

func (w *airWatch) endOf(e Trace) time.Duration {
	bytes := phy.ACKBytes
	switch e.Kind {
	case "rts":
		bytes = dot11.RTSBytes
	case "data":
		bytes = w.c.stations[e.Node].airBytes()
	case "block_ack":
		bytes = 32
	case "block_ack_request":
		bytes = 24
	}
	p, modes := w.c.phy, w.c.phy.Modes[w.c.phy.FirstData:]
	if p.FirstData > 0 && (e.Kind != "data" || e.Peer == toAll) {
		modes = p.Modes[:p.FirstData]
	}
	i := slices.IndexFunc(modes, func(m phy.Mode) bool { return m.RateMbps == e.RateMbps })
	return e.At + p.Airtime(&modes[i], bytes)
}

// Random fields with every kind of radio: each frame ends once, with a cause
// that the monitor tells too, and nobody talks over whom he hears.
func TestRandomFields(t *testing.T) { checkRandomFields(t, 0, 60) }

func checkRandomFields(t *testing.T, from, to uint64) {
	t.Helper()
	var checked int
	for seed := from; seed < to; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		nodes := 2 + rng.IntN(14)
		cfg := randomConfig(rng, seed, nodes)
		watch := &airWatch{t: t, seed: seed, cts: map[int]time.Duration{}}
		cfg.Trace = watch.see
		var told, queueFull uint64
		cfg.FrameLost = func(l FrameLoss) {
			told++
			if l.Cause == QueueFull {
				queueFull++
			}
			if l.Cause == NotLost || l.Cause.String() == "unknown" {
				t.Errorf("seed %d: a loss without a cause: %+v", seed, l)
			}
		}
		sink := newRecorder(nodes)
		c := mustCore(t, cfg, randomField(rng, nodes, 100+700*rng.Float64()), sink)
		watch.c = c
		sent := drive(c, rng, sink, nodes)
		checkEveryFrameEnded(t, seed, c, sink, sent, nodes)
		checked += watch.checked
		var unicastLost, full uint64
		for i := range nodes {
			n := c.Counters(i)
			full += n.Lost[QueueFull]
			unicastLost += n.Lost.Total()
		}
		if queueFull != full || told > unicastLost {
			t.Errorf("seed %d: the monitor told %d losses (%d for the queue), counted are %d (%d)", seed, told,
				queueFull, unicastLost, full)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d pairs of frames were on the air together", checked)
	}
}

// The list of hearers holds everybody whose mean power is above the floor, and
// nobody far below it, at every moment of a field that moves.
func TestHearersAgainstAllPairs(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		const nodes = 40
		cfg := randomConfig(rng, seed, nodes)
		locate := randomField(rng, nodes, 3000)
		c := mustCore(t, cfg, locate, newRecorder(nodes))
		var heard, pairs int
		for range 20 {
			c.Advance(c.Now() + time.Duration(rng.IntN(500))*time.Millisecond)
			if rng.IntN(4) == 0 {
				c.SetTxPower(rng.IntN(nodes), 10*rng.Float64()+10)
			}
			for i := range nodes {
				list := c.links.hearers(i)
				for j := range nodes {
					if j == i {
						continue
					}
					pairs++
					want := c.stations[i].channel == c.stations[j].channel && audible(c, locate, i, j)
					if got := slices.Contains(list, int32(j)); got != want {
						t.Fatalf("seed %d, %+v, %s: node %d is among the hearers of %d: %v, want %v", seed,
							cfg.Propagation, c.Now(), j, i, got, want)
					}
					if want {
						heard++
					}
				}
			}
		}
		t.Logf("seed %d: %s: %d of %d pairs hear each other", seed, cfg.Propagation.Model, heard, pairs)
	}
}

// audible works a pair out from the formulas, at the places of now.
func audible(c *Core, locate Locate, i, j int) bool {
	xi, yi := locate(i, c.now)
	xj, yj := locate(j, c.now)
	d := math.Hypot(xi-xj, yi-yj)
	if disc := c.links.disc; disc != nil {
		return d <= disc.CarrierSenseM
	}
	a, b := c.cfg.Nodes[i], c.cfg.Nodes[j]
	dbm := c.stations[i].txPowerDbm + a.AntennaGainDbi + b.AntennaGainDbi - c.links.props[i].LossDb(d, a.HeightM,
		b.HeightM)
	if c.links.shadow != nil {
		x, y := min(i, j), max(i, j)
		px, py := locate(x, c.now)
		qx, qy := locate(y, c.now)
		dbm += c.links.shadow.AtDb(x, y, c.links.shadow.Cell(px, py),
			c.links.shadow.Cell(qx, qy))
	}
	if c.cfg.Radio == phy.RadioNS2WaveLAN {
		return dbm >= propagation.RatioToDb(1.559e-8)
	}
	floorDbm := math.Min(propagation.RatioToDb(c.stations[j].noiseMw), -82) - 13.0103
	if c.cfg.Fading.Model != "" { // a fade upwards lets it be noticed
		floorDbm = math.Min(floorDbm, propagation.RatioToDb(c.stations[j].noiseMw*c.phy.LockSNR)-10)
	}
	return dbm >= floorDbm
}

// What goes on on one channel changes nothing on another.
func TestChannelsAreIndependent(t *testing.T) {
	log := func(other bool) []byte {
		cfg := testConfig(phy.Standard80211g, 0, 6)
		var out bytes.Buffer
		cfg.Trace = func(e Trace) {
			if e.Node < 3 {
				e.Frame = 0 // counted over all channels
				fmt.Fprintln(&out, e)
			}
		}
		for i := 3; i < 6; i++ {
			cfg.Nodes[i].Channel = 1
		}
		sink := newRecorder(6)
		c := mustCore(t, cfg, line(30), sink)
		for i := range 2000 {
			c.Enqueue(i%3, ethernet(i%3, (i+1)%3, i, 700))
			if other {
				c.Enqueue(3+i%3, ethernet(3+i%3, 3+(i+1)%3, i, 1200))
				c.Enqueue(3, ethernet(3, 1, 100_000+i, 100)) // to one who is elsewhere
			}
			c.Advance(c.Now() + 300*time.Microsecond)
		}
		for key := range sink.delivered {
			if key[1] >= 100_000 {
				t.Fatalf("a frame crossed from channel 1 to channel 6")
			}
		}
		if other && c.Counters(3).Lost[OutOfRange] == 0 {
			t.Error("a frame to a node on another channel is not out of range")
		}
		if caps := c.Caps(3); caps.Channel != 1 || c.Caps(0).Channel != 6 {
			t.Errorf("caps say channels %d and %d", caps.Channel, c.Caps(0).Channel)
		}
		return out.Bytes()
	}
	if alone, both := log(false), log(true); !bytes.Equal(alone, both) || len(alone) == 0 {
		t.Error("traffic on channel 1 changed the events of channel 6")
	}
}

// Two pairs far apart do not pay for each other: each carries what one does.
func TestSpatialReuse(t *testing.T) {
	cfg := testConfig(phy.Standard80211g, 54, 20)
	var flows []flow
	for i := 0; i < 20; i += 2 {
		flows = append(flows, flow{i, i + 1})
	}
	got := goodputs(t, cfg, func(n int, _ time.Duration) (float64, float64) {
		return float64(n/2) * 5000, float64(n%2) * 5
	}, 1472, flows...)
	within(t, "ten pairs out of earshot", sum(got), 10*theoreticalMbps(phy.Standard80211g, 54, 1472, false), 0.02)
}

// The same seed gives the same events with everything switched on, and another
// seed others.
func TestSameSeedSameEventsOfEveryModel(t *testing.T) {
	log := func(seed, draws uint64) []byte {
		var out bytes.Buffer
		rng := rand.New(rand.NewPCG(draws, 4))
		cfg := randomConfig(rng, seed, 12)
		cfg.Trace = func(e Trace) { fmt.Fprintln(&out, e) }
		cfg.FrameLost = func(l FrameLoss) { fmt.Fprintln(&out, l) }
		sink := newRecorder(12)
		c := mustCore(t, cfg, randomField(rng, 12, 400), sink)
		drive(c, rng, sink, 12)
		return out.Bytes()
	}
	for draws := range uint64(6) {
		first := log(1, draws)
		if !bytes.Equal(first, log(1, draws)) {
			t.Errorf("field %d: the same seed gave two event logs", draws)
		}
		if bytes.Equal(first, log(2, draws)) {
			t.Errorf("field %d: two seeds gave one event log", draws)
		}
	}
}
