package medium

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// starts runs a channel and returns when each node began to send data or RTS.
func starts(t *testing.T, cfg Config, locate Locate, nodes int, until time.Duration, do func(*Core)) [][]time.Duration {
	t.Helper()
	out := make([][]time.Duration, nodes)
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" && (e.Kind == "data" || e.Kind == "rts") {
			out[e.Node] = append(out[e.Node], e.At)
		}
	}
	c := mustCore(t, cfg, locate, newRecorder(nodes))
	do(c)
	c.Advance(until)
	return out
}

// After a frame that a station notices and cannot read it waits EIFS, and DIFS
// after one that it reads (10.3.2.3.7): node 2 is in the outer ring of node 0 first,
// then in its range.
func TestEIFSFollowsAFrameThatCannotBeRead(t *testing.T) {
	const us = time.Microsecond
	air := 192*us + 4*(500+36)*us // 2 Mbit/s
	for _, v := range []struct {
		x    float64
		want time.Duration
	}{
		{400, (10 + 304 + 50) * us}, // SIFS + ACK at 1 Mbit/s + DIFS
		{240, 50 * us},
	} {
		// The least of many backoffs is none; broadcasts, so that no ACK comes.
		least := time.Hour
		for seed := range uint64(200) {
			cfg := disc(testConfig(phy.Standard80211b, 2, 3), 550)
			cfg.Seed = seed
			cfg.Propagation.RangeM = 250
			sent := starts(t, cfg, func(n int, _ time.Duration) (float64, float64) {
				return []float64{0, 1, v.x}[n], 0
			}, 3, time.Second, func(c *Core) {
				c.Advance(time.Millisecond)
				c.Enqueue(0, ethernet(0, 77, 0, 500)) // nobody answers
				c.Advance(2 * time.Millisecond)
				c.Enqueue(2, ethernet(2, -1, 0, 100))
			})
			end := sent[0][0] + air
			least = min(least, sent[2][0]-end)
		}
		if v.x == 240 {
			// Node 2 read the frame: its NAV covers SIFS and the ACK at 2 Mbit/s.
			v.want += (10 + 192 + 56) * us
		}
		if least != v.want {
			t.Errorf("at %g m the earliest frame comes %s after another's end, want %s", v.x, least, v.want)
		}
	}
}

// leastWait is how long after the end of another's frame of 500 bytes at 11 Mbit/s, to
// nobody, the last node begins a broadcast at the earliest: the least backoff is none.
func leastWait(t *testing.T, places []float64, senseDbm float64, at time.Duration, do func(*Core)) time.Duration {
	t.Helper()
	const us = time.Microsecond
	last := len(places) - 1
	least := time.Hour
	for seed := range uint64(200) {
		cfg := testConfig(phy.Standard80211b, 11, len(places))
		cfg.Seed, cfg.ShortRetryLimit = seed, 1
		cfg.CarrierSenseDbm, cfg.EnergyDetectDbm = &senseDbm, &senseDbm
		sent := starts(t, cfg, func(n int, _ time.Duration) (float64, float64) { return places[n], 0 }, len(places),
			time.Second, func(c *Core) {
				do(c)
				c.Advance(at + 300*us)
				c.Enqueue(last, ethernet(last, -1, 0, 100))
			})
		least = min(least, sent[last][0]-(at+192*us+390*us))
	}
	return least
}

// EIFS follows the busy period in which a frame could not be read, and not the next:
// node 2 cannot read node 0, whose header it hears, and does not notice node 1, whose
// power makes its channel busy.
func TestEIFSDoesNotOutliveTheNextBusyPeriod(t *testing.T) {
	const us = time.Microsecond
	places := []float64{-300, 700, 0} // -1 and -12 dB of SNR at node 2
	send := func(froms ...int) func(*Core) {
		return func(c *Core) {
			for i, from := range froms {
				c.Advance(time.Duration(i+1) * 10 * time.Millisecond)
				c.Enqueue(from, ethernet(from, 77, 0, 500))
			}
		}
	}
	if got, want := leastWait(t, places, -110, 10*time.Millisecond, send(0)), 364*us; got != want {
		t.Errorf("%s pass after a frame that could not be read, want %s (EIFS)", got, want)
	}
	if got, want := leastWait(t, places, -110, 20*time.Millisecond, send(0, 1)), 50*us; got != want {
		t.Errorf("%s pass after mere power that came later, want %s (DIFS)", got, want)
	}
}

// Two frames of one slot, equally strong: a bystander reads neither, and waits EIFS.
func TestEIFSFollowsACollisionInOneSlot(t *testing.T) {
	const at = 10 * time.Millisecond
	got := leastWait(t, []float64{-10, 10, 0}, -82, at, func(c *Core) {
		c.Advance(at)
		c.Enqueue(0, ethernet(0, 77, 0, 500))
		c.Enqueue(1, ethernet(1, 77, 0, 500))
	})
	if want := 364 * time.Microsecond; got != want {
		t.Errorf("%s pass after a collision, want %s (EIFS)", got, want)
	}
}

// An RTS that no CTS follows holds its hearers until a CTS and the data's start
// would have been noticed, and no longer (10.3.2.4); one that succeeds holds
// them for the whole exchange.
func TestNAVAfterRTS(t *testing.T) {
	const us = time.Microsecond
	const rts, cts, ack, plcp = (192 + 80) * us, (192 + 56) * us, (192 + 56) * us, 192 * us
	data := plcp + 4*(1000+36)*us
	for _, v := range []struct {
		to   int
		want time.Duration // of the earliest frame of a bystander, after the RTS
	}{
		{77, 2*10*us + cts + plcp + 2*20*us + 50*us},
		{1, 10*us + cts + 10*us + data + 10*us + ack + 50*us},
	} {
		least := time.Hour
		for seed := range uint64(200) {
			cfg := testConfig(phy.Standard80211b, 2, 3)
			cfg.Seed, cfg.RTSThresholdBytes = seed, 500
			sent := starts(t, cfg, line(5), 3, time.Second, func(c *Core) {
				c.Advance(time.Millisecond)
				c.Enqueue(0, ethernet(0, v.to, 0, 1000))
				c.Advance(c.Now() + 100*us)
				c.Enqueue(2, ethernet(2, -1, 0, 100))
			})
			least = min(least, sent[2][0]-(sent[0][0]+rts))
		}
		if least != v.want {
			t.Errorf("RTS to %d: a bystander sends %s after its end at the earliest, want %s", v.to, least, v.want)
		}
	}
}

// Retry limits are the standard's unless set.
func TestRetryLimitsCanBeSet(t *testing.T) {
	for _, limit := range []int{1, 3, 12} {
		cfg := testConfig(phy.Standard80211b, 11, 2)
		cfg.ShortRetryLimit = limit
		sent := starts(t, cfg, line(5), 2, 10*time.Second, func(c *Core) { c.Enqueue(0, ethernet(0, 77, 0, 100)) })
		if len(sent[0]) != limit || !slices.IsSorted(sent[0]) {
			t.Errorf("limit %d: sent %d times", limit, len(sent[0]))
		}
	}
}
