//go:build e2e || guest

package tcp

import (
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The script for Westwood: what is sent is acknowledged after a round trip, and
// between two bursts of ACKs there is more than that, so that each burst
// closes one sample of bandwidth. Both are long beside the jiffy in which the
// kernel's module counts.
const (
	westwoodTrip  = 400 * time.Millisecond
	westwoodPause = 100 * time.Millisecond
	westwoodTurns = 14
	westwoodBurst = 30 // segments, less than the window: no rule but the estimate's is at work
	jiffy         = 4 * time.Millisecond
)

// estimate is Westwood+'s of the bandwidth (Mascolo and others 2004, with Linux's
// two filters of whole numbers), worked out from what the test acknowledged.
type estimate struct {
	began            time.Time
	narrow, filtered int // bytes a jiffy
	bytes            int
	least            time.Duration
}

// burst closes the sample of the last burst with the first ACK of this one.
func (e *estimate) burst(at time.Time, bytes int) {
	rate := int(time.Duration(e.bytes) * jiffy / at.Sub(e.began))
	if e.narrow == 0 {
		e.narrow, e.filtered = rate, rate
	} else {
		e.narrow = (7*e.narrow + rate) / 8
		e.filtered = (7*e.filtered + e.narrow) / 8
	}
	e.began, e.bytes = at, bytes
}

// segments is bandwidth x least round trip.
func (e *estimate) segments() float64 {
	return float64(e.filtered) * float64(e.least) / float64(jiffy) / mss
}

// westwood is one connection of the script.
type westwood struct {
	c *played
	estimate
	wrote                  time.Time
	before, ssthresh, cwnd uint32 // cwnd at the loss; both when recovery is over
	want                   float64
}

func (w *westwood) write(t *testing.T, p *peer, segments int) {
	t.Helper()
	w.wrote = time.Now()
	w.c.write(t, segments)
	p.drain(t)
}

// playWestwood takes connections through the same bursts, and a loss in the last.
func playWestwood(t *testing.T, names []string) []*westwood {
	t.Helper()
	p := newPeer(t, false)
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
		senderAddr,
		"initcwnd", strconv.Itoa(westwoodBurst+10))
	var all []*westwood
	for _, name := range names {
		all = append(all, &westwood{c: p.dial(t, name, westwoodTrip), estimate: estimate{least: time.Hour,
			began: time.Now()}})
	}
	each := func(pause time.Duration, f func(w *westwood)) {
		time.Sleep(pause)
		for _, w := range all {
			f(w)
		}
	}
	for i := range westwoodTurns {
		segments := westwoodBurst
		if i == 0 {
			segments = 1 // with its round trip samples begin
		}
		each(westwoodPause, func(w *westwood) { w.write(t, p, segments) })
		each(westwoodTrip, func(w *westwood) {
			at := time.Now()
			w.least = min(w.least, at.Sub(w.wrote))
			w.burst(at, segments*mss)
			for range segments {
				w.c.acked += mss
				p.give(t, p.ack(w.c, w.c.acked))
			}
		})
	}
	each(westwoodPause, func(w *westwood) {
		w.before = p.info(t, w.c).Snd_cwnd
		w.write(t, p, westwoodBurst)
	})
	each(westwoodTrip, func(w *westwood) { // the first of the burst is lost
		w.burst(time.Now(), (westwoodBurst-1)*mss)
		for range westwoodBurst - 1 {
			p.give(t, p.ack(w.c, w.c.acked))
		}
		if p.drain(t); w.c.again != 1 {
			t.Fatalf("%s: %d segments were retransmitted, want the lost one", w.c.congestion, w.c.again)
		}
	})
	each(westwoodTrip+westwoodPause, func(w *westwood) { // and now arrives
		w.burst(time.Now(), mss)
		w.c.acked = w.c.sent
		p.give(t, p.ack(w.c, w.c.acked))
	})
	each(westwoodPause, func(w *westwood) { w.write(t, p, 1) })
	each(westwoodTrip, func(w *westwood) { // without SACK, what comes after the loss ends recovery
		w.burst(time.Now(), mss)
		w.c.acked = w.c.sent
		p.give(t, p.ack(w.c, w.c.acked))
		info := p.info(t, w.c)
		w.ssthresh, w.cwnd, w.want = info.Snd_ssthresh, info.Snd_cwnd, w.segments()
		if info.Ca_state != stateOpen {
			t.Errorf("%s: state %d after recovery", w.c.congestion, info.Ca_state)
		}
	})
	return all
}

// mayDiffer is by how many segments two estimates may differ that count in
// microseconds and in jiffies: each time is one off at most at either end, and
// the result is cut to whole segments.
func mayDiffer(segments float64) float64 {
	return 1 + segments*float64(jiffy)*(2/float64(westwoodTrip)+1/float64(westwoodTrip+westwoodPause))
}

// check holds ssthresh after the loss to the estimate.
func (w *westwood) check(t *testing.T) {
	t.Helper()
	t.Logf("%s: cwnd %d at the loss, then ssthresh %d and cwnd %d; the estimate is %.2f segments, other than by %.2f "+
		"is wrong",
		w.c.congestion, w.before, w.ssthresh, w.cwnd, w.want, mayDiffer(w.want))
	if d := float64(w.ssthresh) - w.want; d > mayDiffer(w.want) || -d > mayDiffer(w.want) {
		t.Errorf("%s: ssthresh is %d after the loss, want bandwidth x least round trip, %.2f segments", w.c.congestion,
			w.ssthresh, w.want)
	}
	w.checkHalf(t)
}

// checkHalf holds half of the window, which other variants take, to lie far from the estimate.
func (w *westwood) checkHalf(t *testing.T) {
	t.Helper()
	if half := float64(w.before) / 2; half < w.want+2*mayDiffer(w.want) {
		t.Errorf("%s: half of the window was %.0f segments, which would not be distinguished from the estimate",
			w.c.congestion,
			half)
	}
}

// Mascolo and others 2004: after a loss ssthresh = bandwidth x least
// round trip, whatever the window had become.
func TestWestwoodEstimatesByItsRule(t *testing.T) {
	testnet.Need(t)
	t.Parallel() // it sleeps
	playWestwood(t, []string{register(t, tcpcc.Westwood).Name})[0].check(t)
}
