package medium

import (
	"cmp"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// ns2Config is nodes with ns-2's radio.
func ns2Config(rateMbps float64, nodes int) Config {
	cfg := testConfig(phy.Standard80211b, rateMbps, nodes)
	cfg.Radio, cfg.Propagation = phy.RadioNS2WaveLAN, propagation.Config{}
	for i := range cfg.Nodes {
		cfg.Nodes[i].TxPowerDbm, cfg.Nodes[i].HeightM = phy.NS2TxPowerDbm, NS2AntennaHeightM
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
	p, err := phy.New(ns2Config(11, 2).phy())
	if err != nil {
		t.Fatal(err)
	}
	for mode := range p.Modes {
		if got := p.Modes[p.ResponseMode(mode)].RateMbps; got != 1 {
			t.Errorf("a frame at %g Mbit/s is answered at %g", p.Modes[mode].RateMbps, got)
		}
	}
	other := ns2Config(11, 2)
	other.BasicRatesMbps = []float64{1, 2}
	if p, err = phy.New(other.phy()); err != nil {
		t.Fatal(err)
	}
	if got := p.Modes[p.ResponseMode(len(p.Modes)-1)].RateMbps; got != 2 {
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
		{400, 3, 1}, {400, 1000, 1}, {400, -3, 0}, {400, -1000, 0},
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
			s := c.stations[from]
			s.count.Enqueued++
			s.head, s.mode, s.state = c.newFrame(ethernet(from, -1, from, 500)), 1, macSending // without its backoff
			s.sendData()
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

// ns2Trace collects what goes on the air.
func ns2Trace(cfg *Config) *[]Trace {
	var all []Trace
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" {
			all = append(all, e)
		}
	}
	return &all
}

// A frame that finds the channel idle draws a backoff, too, of 0 to 30 slots after DIFS.
func TestNS2BacksOffFromAnIdleChannel(t *testing.T) {
	slots := map[time.Duration]bool{}
	for seed := range uint64(300) {
		cfg := ns2Config(2, 2)
		cfg.Seed = seed
		sent := ns2Trace(&cfg)
		c := mustCore(t, cfg, line(200), newRecorder(2))
		const at = time.Second
		c.Advance(at)
		c.Enqueue(0, ethernet(0, -1, 1, 500))
		c.Advance(2 * time.Second)
		slots[((*sent)[0].At-at-50*time.Microsecond)/(20*time.Microsecond)] = true
	}
	if len(slots) != 31 || !slots[0] || !slots[30] {
		t.Errorf("the first frame waits for %d different numbers of slots, want 0 to 30: %v", len(slots), slots)
	}
}

// Node 1 hears that 0 sends and cannot read it: EIFS passes after the frame, and then DIFS.
// One that it can read is followed by DIFS alone.
func TestNS2WaitsForEIFSAndDIFS(t *testing.T) {
	for _, v := range []struct {
		distanceM float64
		wait      time.Duration
	}{{200, 50 * time.Microsecond}, {400, (364 + 50) * time.Microsecond}} {
		least := time.Hour
		for seed := range uint64(300) {
			cfg := ns2Config(2, 2)
			cfg.Seed = seed
			sent := ns2Trace(&cfg)
			c := mustCore(t, cfg, line(v.distanceM), newRecorder(2))
			c.Enqueue(0, ethernet(0, -1, 0, 500))
			for len(*sent) == 0 {
				c.Advance(c.Now() + 10*time.Microsecond)
			}
			end := c.stations[0].tx.end
			c.Enqueue(1, ethernet(1, -1, 1, 500))
			c.Advance(time.Second)
			least = min(least, (*sent)[1].At-end)
		}
		if least != v.wait {
			t.Errorf("at %g m the next frame begins %v after the first at the soonest, want %v", v.distanceM, least,
				v.wait)
		}
	}
}

// Nobody answers node 0. Its RTS silences 1 for the whole exchange that it announces, and its
// next comes after the time of a CTS, 4 µs, DIFS and a backoff.
func TestNS2RTSThatComesToNothingSilencesForTheWholeExchange(t *testing.T) {
	leastOther, leastAgain := time.Hour, time.Hour
	for seed := range uint64(1000) {
		cfg := ns2Config(2, 2)
		cfg.Seed, cfg.RTSThresholdBytes = seed, 1
		sent := ns2Trace(&cfg)
		c := mustCore(t, cfg, line(200), newRecorder(2))
		c.Enqueue(0, append([]byte{2, 0, 0, 0, 9, 9}, ethernet(0, 1, 0, 500)[6:]...)) // to somebody who is not there
		for len(*sent) == 0 {
			c.Advance(c.Now() + 10*time.Microsecond)
		}
		end := (*sent)[0].At + 352*time.Microsecond
		c.Advance(end)
		if seed%2 == 0 {
			c.Enqueue(1, ethernet(1, -1, 1, 10))
			c.SetDead(true) // so that no further RTS of 0's is heard
		}
		c.Advance(end + 10*time.Millisecond)
		for _, e := range (*sent)[1:] {
			if e.Node == 1 {
				leastOther = min(leastOther, e.At-end)
			} else if seed%2 == 1 {
				leastAgain = min(leastAgain, e.At-end)
				break
			}
		}
	}
	// 500 bytes at 2 Mbit/s with 36 more: 2336 µs; CTS and ACK of 304 µs, three SIFS.
	if want := (3*10+304+2336+304)*time.Microsecond + 50*time.Microsecond; leastOther != want {
		t.Errorf("another begins %v after the RTS at the soonest, want %v", leastOther, want)
	}
	if want := (10 + 304 + 4 + 50) * time.Microsecond; leastAgain != want {
		t.Errorf("the RTS goes again after %v at the soonest, want %v", leastAgain, want)
	}
}

// A frame that is given up for lack of ACKs or of CTS counts as ns-2 counts: 4 and 7. What
// failed for lack of an ACK before 7 RTS were in vain counts for the next frame, too.
func TestNS2CountsRetriesPerStation(t *testing.T) {
	cfg := ns2Config(2, 2)
	cfg.RTSThresholdBytes = 1
	c := mustCore(t, cfg, line(200), newRecorder(2))
	s := c.stations[0]
	s.retries[1] = 1
	c.Enqueue(0, append([]byte{2, 0, 0, 0, 9, 9}, ethernet(0, 1, 0, 500)[6:]...))
	c.Advance(time.Second)
	if got := c.Counters(0); got.TxFailed != 1 || got.AttemptsFailed[OutOfRange] != 7 {
		t.Errorf("%d frames were given up after %d RTS, want 1 after 7", got.TxFailed, got.AttemptsFailed[OutOfRange])
	}
	if s.retries != [2]int{0, 1} || s.cw != 31 || s.slots != noBackoff {
		t.Errorf("then its counts are %v, its window %d, its backoff %d; want 0 and 1, 31, none", s.retries, s.cw,
			s.slots)
	}
	c.Enqueue(0, ethernet(0, 1, 0, 500))
	c.Advance(2 * time.Second)
	if s.retries != [2]int{} {
		t.Errorf("after an ACK its counts are %v", s.retries)
	}
}

// Who captures a frame over a weaker one sends no CTS until EIFS after the weaker one's end.
func TestNS2SendsNoCTSAfterACapture(t *testing.T) {
	for _, interfered := range []bool{false, true} {
		cfg := ns2Config(2, 3)
		cfg.RTSThresholdBytes = 1
		sent := ns2Trace(&cfg)
		c := mustCore(t, cfg, func(n int, _ time.Duration) (float64, float64) {
			return []float64{0, 200, 600}[n], 0
		}, newRecorder(3))
		c.Enqueue(0, ethernet(0, 1, 0, 500))
		for len(*sent) == 0 {
			c.Advance(c.Now() + 10*time.Microsecond)
		}
		if interfered {
			s := c.stations[2]
			s.count.Enqueued++
			s.head, s.mode, s.state = c.newFrame(ethernet(2, -1, 2, 20)), 0, macSending
			s.sendData()
		}
		c.Advance((*sent)[0].At + 370*time.Microsecond)
		answered := false
		for _, e := range *sent {
			answered = answered || e.Kind == "cts"
		}
		if answered == interfered {
			t.Errorf("with a weaker frame beside the RTS: %v; CTS: %v", interfered, answered)
		}
	}
}

// What a radio receives goes by where it is, and not by where it came from.
func TestNS2sReachHasNoMemory(t *testing.T) {
	const sent, arrived = 1000, 500
	for _, v := range []struct{ fromM, toM float64 }{{249.9, 250.2}, {250.2, 250.2}, {250.3, 249.95},
		{249.95, 249.95}} {
		sink := newRecorder(2)
		c := mustCore(t, ns2Config(2, 2), func(n int, at time.Duration) (float64, float64) {
			return float64(n) * (v.fromM + min(1, at.Seconds()/5)*(v.toM-v.fromM)), 0 // and there it stands
		}, sink)
		for i := range sent {
			c.Enqueue(0, ethernet(0, -1, i, 500))
			c.Advance(c.Now() + 10*time.Millisecond)
		}
		got, want := 0, 0
		for k := range sink.delivered {
			if k[1] >= arrived {
				got++
			}
		}
		if v.toM < 250 {
			want = sent - arrived
		}
		if got != want {
			t.Errorf("%g m, from %g m: %d frames received, want %d", v.toM, v.fromM, got, want)
		}
	}
}
