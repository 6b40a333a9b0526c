package medium

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// stack is what nodes' own stacks of 802.11 hear and are told.
type stack struct {
	heard []hearing
	sent  []ending
}

type hearing struct {
	node int
	at   time.Duration
	Reception
}

type ending struct {
	node int
	at   time.Duration
	Outcome
}

func (s *stack) Deliver(int, time.Duration, []byte) bool  { panic("Ethernet") }
func (s *stack) TxFailed(int, time.Duration, MAC, []byte) {}
func (s *stack) Heard(node int, at time.Duration, r Reception) bool {
	r.Frame = bytes.Clone(r.Frame)
	s.heard = append(s.heard, hearing{node, at, r})
	return true
}
func (s *stack) Sent(node int, at time.Duration, o Outcome) {
	s.sent = append(s.sent, ending{node, at, o})
}

func mpduCore(t *testing.T, standard string, nodes int, at Locate, change func(*Config)) (*Core, *stack) {
	t.Helper()
	cfg := testConfig(standard, 0, nodes)
	cfg.MPDUs = true
	if change != nil {
		change(&cfg)
	}
	s := &stack{}
	return mustCore(t, cfg, at, s), s
}

const bssid = "\x02\x0a\x5e\x00\x00\x06"

// data80211 is a data frame of an ad hoc cell around the payload of an Ethernet frame.
func data80211(ethernet []byte) []byte {
	out := append([]byte{0x08, 0, 0, 0}, ethernet[:12]...)
	out = append(append(out, bssid...), 0, 0)
	return append(append(out, 0xaa, 0xaa, 3, 0, 0, 0), ethernet[12:]...)
}

func beacon80211(from int) []byte {
	out := []byte{0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	src, _ := ParseMAC(nodeMAC(from))
	out = append(append(append(out, src[:]...), bssid...), 0, 0)
	out = append(out, make([]byte, 8)...) // timestamp
	return append(out, 100, 0, 2, 0)      // interval, capabilities: of an ad hoc cell
}

// A frame of a stack takes the air as the same frame of Ethernet does.
func TestMPDUsSaturateALinkAsEthernetDoes(t *testing.T) {
	for _, c := range []struct {
		standard string
		rate     float64
	}{{phy.Standard80211a, 54}, {phy.Standard80211a, 6}, {phy.Standard80211b, 11}, {phy.Standard80211g, 54},
		{phy.Standard80211g, 24}} {
		cfg := testConfig(c.standard, c.rate, 2)
		sink := newRecorder(2)
		wired := mustCore(t, cfg, line(5), sink)
		saturate(wired, 1400, time.Second, flow{0, 1})

		core, s := mpduCore(t, c.standard, 2, line(5), nil)
		frame := data80211(ethernet(0, 1, 0, 1400))
		for id := uint64(1); core.Now() < time.Second; core.Advance(core.Now() + time.Millisecond) {
			for ; core.QueueRoom(0) > 0; id++ {
				core.Transmit(0, MPDU{Frame: frame, Tries: []Try{{RateMbps: c.rate, Times: 7}}, ID: id})
			}
		}
		want, got := wired.Counters(1).Delivered, core.Counters(1).Delivered
		if want < 300 || got != want || uint64(len(s.heard)) != got {
			t.Errorf("%s at %g Mbit/s: %d frames of a stack, %d heard, %d of Ethernet", c.standard, c.rate, got,
				len(s.heard), want)
		}
		for i, e := range s.sent {
			if e.node != 0 || e.ID != uint64(i+1) || !e.ACK || e.Tried != 1 || e.Refused {
				t.Fatalf("%s: outcome %d is %+v", c.standard, i, e)
			}
		}
	}
}

// A frame goes through its rates in their order, each as often as it says.
func TestAnMPDUGoesThroughItsRates(t *testing.T) {
	// At 70 m with the exponent 3 there is too little for 54 Mbit/s, and enough for 6.
	core, s := mpduCore(t, phy.Standard80211a, 2, line(70), nil)
	tries := []Try{{RateMbps: 54, Times: 2}, {RateMbps: 6, Times: 4}}
	frame := data80211(ethernet(0, 1, 7, 600))
	core.Transmit(0, MPDU{Frame: frame, Tries: tries, ID: 5})
	core.Advance(time.Second)
	if len(s.sent) != 1 || len(s.heard) != 1 {
		t.Fatalf("%d outcomes, %d heard, want one of each", len(s.sent), len(s.heard))
	}
	signalDbm, _ := core.Strength(0, 1)
	e, h := s.sent[0], s.heard[0]
	if e.ID != 5 || e.Tried != 3 || !e.ACK || math.Abs(e.SignalDbm-signalDbm) > 1e-6 {
		t.Errorf("the outcome is %+v, want the third try acknowledged at %g dBm", e, signalDbm)
	}
	want := bytes.Clone(frame)
	dot11.SetRetry(want)
	if h.node != 1 || h.RateMbps != 6 || math.Abs(h.SignalDbm-signalDbm) > 1e-6 || !bytes.Equal(h.Frame, want) {
		t.Errorf("heard by node %d at %g Mbit/s and %g dBm: %x", h.node, h.RateMbps, h.SignalDbm, h.Frame)
	}

	// Out of reach it is given up when the rates are used up.
	core, s = mpduCore(t, phy.Standard80211a, 2, line(1e5), nil)
	core.Transmit(0, MPDU{Frame: frame, Tries: tries, ID: 6})
	core.Advance(time.Second)
	if len(s.sent) != 1 || s.sent[0].Tried != 6 || s.sent[0].ACK || core.Counters(0).Lost[OutOfRange] != 1 {
		t.Errorf("out of reach: %+v, lost %v", s.sent, core.Counters(0).Lost)
	}
}

// A radio of 802.11g with the rates of 802.11b keeps to the times of both, and answers
// each in its own modulation (IEEE 802.11-2020, 16.2.2.2, 16.3.4, 17.4.3, 10.6.6.5.2). An RTS begins an
// exchange, and goes at a basic rate of either (10.6.6.2).
func TestTheRatesOf80211bAnd80211gInOneCell(t *testing.T) {
	us := func(f float64) time.Duration { return time.Duration(f * 1000) }
	dsss := func(rate, bytes float64) float64 { return 192 + math.Ceil(8*bytes/rate) }
	ofdm := func(rate, bytes float64) float64 { return 20 + 4*math.Ceil((22+8*bytes)/(4*rate)) + 6 }
	frame := data80211(ethernet(0, 1, 0, 1000))
	bytes := float64(len(frame) + dot11.FCSBytes)
	for _, c := range []struct {
		rate float64
		rts  bool
		want float64 // RTS, SIFS, CTS, SIFS, data, SIFS, ACK
	}{
		{1, false, dsss(1, bytes) + 10 + dsss(1, 14)},
		{11, false, dsss(11, bytes) + 10 + dsss(11, 14)},
		{6, false, ofdm(6, bytes) + 10 + ofdm(6, 14)},
		{54, false, ofdm(54, bytes) + 10 + ofdm(24, 14)},
		{6, true, dsss(5.5, 20) + 10 + dsss(5.5, 14) + 10 + ofdm(6, bytes) + 10 + ofdm(6, 14)},
		{54, true, dsss(11, 20) + 10 + dsss(11, 14) + 10 + ofdm(54, bytes) + 10 + ofdm(24, 14)},
	} {
		core, s := mpduCore(t, phy.Standard80211g, 2, line(5), func(cfg *Config) {
			cfg.BasicRatesMbps, cfg.LongSlot = []float64{1, 2, 5.5, 11}, true
		})
		core.Advance(time.Second)
		core.Transmit(0, MPDU{Frame: frame, Tries: []Try{{RateMbps: c.rate, Times: 1, RTS: c.rts}}})
		core.Advance(2 * time.Second)
		if len(s.sent) != 1 || !s.sent[0].ACK || s.sent[0].at != time.Second+us(c.want) {
			t.Errorf("at %g Mbit/s, RTS %v: %+v, want an ACK after %g µs", c.rate, c.rts, s.sent, c.want)
		}
	}
	// A CTS that does not come is given up when its preamble and header would have been over.
	core, s := mpduCore(t, phy.Standard80211g, 2, line(5), func(cfg *Config) {
		cfg.BasicRatesMbps, cfg.LongSlot = []float64{1, 2, 5.5, 11}, true
	})
	core.Advance(time.Second)
	unheard := data80211(ethernet(0, 77, 0, 1000))
	core.Transmit(0, MPDU{Frame: unheard, Tries: []Try{{RateMbps: 54, Times: 1, RTS: true}}})
	core.Advance(2 * time.Second)
	if want := dsss(11, 20) + 10 + 20 + 192; len(s.sent) != 1 || s.sent[0].ACK || s.sent[0].at != time.Second+us(want) {
		t.Errorf("no CTS: %+v, want it given up after %g µs", s.sent, want)
	}
}

// All stations of an ad hoc cell have a beacon due at once. Each waits for a random
// time, and who hears another's first keeps its own back.
func TestOneBeaconOfACellAtATime(t *testing.T) {
	const nodes, intervals = 5, 400
	core, s := mpduCore(t, phy.Standard80211g, nodes, line(5), func(cfg *Config) { cfg.LongSlot = true })
	senders, heard := map[int]int{}, 0
	for i := range intervals {
		core.Advance(time.Duration(i) * 100 * time.Millisecond)
		for n := range nodes {
			core.Transmit(n, MPDU{Frame: beacon80211(n), NoACK: true, Tries: []Try{{RateMbps: 1, Times: 1}}})
		}
	}
	core.Advance(core.Now() + 100*time.Millisecond)
	for _, e := range s.sent {
		if e.Tried > 0 {
			senders[e.node]++
		}
	}
	heard = len(s.heard)
	if len(s.sent) != nodes*intervals {
		t.Fatalf("%d outcomes of %d beacons", len(s.sent), nodes*intervals)
	}
	sent := 0
	for n := range nodes {
		// A fair share is a fifth; seven standard deviations of a binomial are 56.
		if senders[n] < intervals/nodes-56 {
			t.Errorf("node %d sent %d of %d beacons", n, senders[n], intervals)
		}
		sent += senders[n]
	}
	// Two draw the same of 31 slots, and are the first, in about a tenth of the intervals.
	if sent > intervals*13/10 || heard < intervals*(nodes-1)*7/10 {
		t.Errorf("%d beacons in %d intervals, heard %d times", sent, intervals, heard)
	}
	if c := core.Counters(0); c.Attempts != 0 || c.Lost.Total() != 0 || c.Delivered != 0 || c.OnAir[Management] == 0 {
		t.Errorf("beacons count as data: %+v", c)
	}
}

// The stations of a mesh and an access point have a beacon time each, though their stacks
// hand all beacons over in one instant. It stays the same, the beacon goes before the data
// that wait, and it bears the time at which it goes out.
func TestBeaconsOfAStationsOwnHaveTheirOwnTime(t *testing.T) {
	const nodes, intervals, interval = 5, 50, 100 * dot11.TimeUnit
	core, s := mpduCore(t, phy.Standard80211a, nodes, line(5), func(cfg *Config) { cfg.QueueFrames = 50 })
	mesh := func(from int) []byte {
		b := beacon80211(from)
		b[len(b)-2] = 0 // not of an ad hoc cell
		return append(b, 0)
	}
	for i := range intervals {
		core.Advance(time.Duration(i) * interval)
		for n := range nodes {
			m := MPDU{Frame: mesh(n), NoACK: true, Tries: []Try{{RateMbps: 6, Times: 1}}, ID: uint64(n)}
			binary.LittleEndian.PutUint64(m.Frame[dot11.HeaderBytes:], uint64(core.Now().Microseconds()))
			core.Transmit(n, m)
		}
		for core.QueueRoom(0) > 0 {
			core.Transmit(0, MPDU{Frame: data80211(ethernet(0, 1, 0, 1000)), ID: nodes,
				Tries: []Try{{RateMbps: 6, Times: 7}}})
		}
	}
	core.Advance(intervals * interval)
	sent, first := make([]int, nodes), make([]time.Duration, nodes)
	for _, e := range s.sent {
		if e.ID == nodes || e.Tried == 0 {
			continue
		}
		at := e.at % interval
		if sent[e.node]++; sent[e.node] == 1 {
			first[e.node] = at
		}
		// A frame of 1000 bytes, with its ACK, takes 1.5 ms at 6 Mbit/s, and a beacon may lose to some.
		if off := (at - first[e.node]).Abs(); min(off, interval-off) > 10*time.Millisecond {
			t.Errorf("node %d: a beacon %s after its stack's, the first %s", e.node, at, first[e.node])
		}
	}
	for n := range nodes {
		if sent[n] < intervals-1 {
			t.Errorf("node %d sent %d of %d beacons", n, sent[n], intervals)
		}
		for other := range n {
			if first[n] == first[other] {
				t.Errorf("nodes %d and %d have their beacons at once", n, other)
			}
		}
	}
	beacons := 0
	for _, h := range s.heard {
		if dot11.BeaconOf(h.Frame) != dot11.OwnBeacon {
			continue
		}
		beacons++
		onAir := core.phy.Airtime(&core.phy.Modes[0], len(h.Frame)+dot11.FCSBytes)
		stamp := time.Duration(binary.LittleEndian.Uint64(h.Frame[dot11.HeaderBytes:])) * time.Microsecond
		if late := h.at - onAir - stamp; late < 0 || late > time.Microsecond {
			t.Fatalf("a beacon that was heard at %s says %s", h.at, stamp)
		}
	}
	if beacons < intervals*nodes*(nodes-1)*9/10 {
		t.Errorf("%d beacons heard", beacons)
	}
	core.Transmit(1, MPDU{Frame: mesh(1), NoACK: true, Tries: []Try{{RateMbps: 6, Times: 1}}, ID: 99})
	core.Abandon()
	if last := s.sent[len(s.sent)-1]; !slices.ContainsFunc(s.sent, func(e ending) bool {
		return e.ID == 99 && e.Refused
	}) {
		t.Errorf("a beacon that waits for its time has no end: %+v", last)
	}
}

// What the radio has no room or no rate for comes back at once, and what it has left
// when it is abandoned, then.
func TestEveryMPDUHasItsEnd(t *testing.T) {
	core, s := mpduCore(t, phy.Standard80211a, 2, line(5), func(cfg *Config) { cfg.QueueFrames = 2 })
	frame, tries := data80211(ethernet(0, 1, 0, 100)), []Try{{RateMbps: 6, Times: 1}}
	for id := range uint64(5) { // one in service, two that wait
		core.Transmit(0, MPDU{Frame: frame, Tries: tries, ID: id})
	}
	if len(s.sent) != 2 || s.sent[0].ID != 3 || !s.sent[0].Refused || s.sent[0].Tried != 0 ||
		core.Counters(0).Lost[QueueFull] != 2 {
		t.Errorf("a full queue: %+v", s.sent)
	}
	core.Transmit(1, MPDU{Frame: frame, Tries: []Try{{RateMbps: 11, Times: 1}}, ID: 9})
	core.Transmit(1, MPDU{Frame: frame[:8], Tries: tries, ID: 10})
	core.Transmit(1, MPDU{Frame: frame, ID: 11})
	if len(s.sent) != 5 || !s.sent[2].Refused || !s.sent[4].Refused {
		t.Errorf("a rate that 802.11a has not, a stump, and no rate: %+v", s.sent[2:])
	}
	core.Abandon()
	ends := map[uint64]bool{}
	for _, e := range s.sent {
		ends[e.ID] = true
	}
	if len(s.sent) != 8 || len(ends) != 8 {
		t.Errorf("%d outcomes of 8 frames: %+v", len(s.sent), s.sent)
	}
}

// What is in a frame of 802.11 is what the frame of Ethernet is for.
func TestClassOfAnMPDU(t *testing.T) {
	wire := ethernet(0, 1, 3, 40)
	wire[12], wire[13] = 0x08, 0x06
	if got := classOf(dot11.AppendEthernet(nil, data80211(wire))); got != ARP {
		t.Errorf("an ARP in a frame of 802.11 is of class %s", got)
	}
}

func FuzzTransmit(f *testing.F) {
	f.Add(data80211(ethernet(0, 1, 0, 40)), true)
	f.Add(beacon80211(1), false)
	f.Add([]byte{0x88, 0x03}, false)
	fuzz.Run(f, func(t *testing.T, frame []byte, noACK bool) {
		core, s := mpduCore(t, phy.Standard80211g, 2, line(5), nil)
		core.Transmit(0, MPDU{Frame: frame, NoACK: noACK, Tries: []Try{{RateMbps: 54, Times: 2}}})
		core.Advance(time.Second)
		if len(s.sent) != 1 {
			t.Errorf("%d outcomes", len(s.sent))
		}
	})
}
