//go:build e2e || guest

package tcp

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/testnet"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// The least round trip of the scripts. A program of the test plays the peer and
// makes the queue by waiting; what the machine adds is measured, and is small
// beside this.
const scriptTrip = 200 * time.Millisecond

// scriptWindow is the connections' first window. A small one makes a segment
// long: a round trip divided by the window.
const scriptWindow = 4

// between is a time that lies between two that were measured: when the kernel
// looks at its clock while a packet is given to it is not seen.
type between struct{ low, high time.Duration }

func (b between) least(c between) between { return between{min(b.low, c.low), min(b.high, c.high)} }

// turn is what Vegas did with one round trip of a connection.
type turn struct {
	before, after uint32 // cwnd at the ACK with which a round ends, and after it
	end, ssthresh uint32 // cwnd and ssthresh when all of the turn was acknowledged
	// Segments queued, by Vegas's rule from the round trips of this round, at
	// least and at most.
	low, high float64
}

// vegas is one connection of the script.
type vegas struct {
	c     *played
	sent  map[uint32][2]time.Time // before and after it went, by the byte at which a segment ends
	base  between
	least between       // of this round
	gap   time.Duration // between the last burst of ACKs and this one: no round trip is shorter
	turns []turn
}

// acknowledge gives one ACK, or the same again, and notes when what it let go was sent.
func (v *vegas) acknowledge(t *testing.T, p *peer, upTo uint32) {
	t.Helper()
	sent, known := v.sent[upTo]
	fresh := upTo > v.c.acked
	v.c.acked = upTo
	from, to := v.sends(t, p, func() { p.give(t, p.ack(v.c, upTo)) })
	if known && fresh {
		trip := between{max(from.Sub(sent[1]), v.gap), to.Sub(sent[0])}
		v.least, v.base = v.least.least(trip), v.base.least(trip)
	}
}

// sends does what has the connection send, and notes when it did.
func (v *vegas) sends(t *testing.T, p *peer, do func()) (from, to time.Time) {
	t.Helper()
	was := v.c.sent
	from = time.Now()
	do()
	to = time.Now()
	p.drain(t)
	for end := was + mss; end <= v.c.sent; end += mss {
		v.sent[end] = [2]time.Time{from, to}
	}
	return from, to
}

// endRound gives the ACK with which a round ends, and works the round out.
func (v *vegas) endRound(t *testing.T, p *peer) {
	t.Helper()
	before := p.info(t, v.c).Snd_cwnd
	v.acknowledge(t, p, v.c.acked+mss)
	// The round's samples end with this ACK's; the next round's begin after it.
	queued := func(least, base time.Duration) float64 {
		return max(float64(before)*float64(least-base)/float64(base), 0)
	}
	v.turns = append(v.turns, turn{before: before, after: p.info(t, v.c).Snd_cwnd,
		low: queued(v.least.low, v.base.high), high: queued(v.least.high, v.base.low)})
	v.least = forever
}

var forever = between{time.Hour, time.Hour}

// playVegas takes connections through the same round trips: at each turn all
// that is in flight is acknowledged, segment by segment and in turns, after a
// round trip that would be that of the given number of segments queued. At the
// turn "loss" the first segment in flight is lost.
func playVegas(t *testing.T, p *peer, names []string, queued []float64, loss int) []*vegas {
	t.Helper()
	var all []*vegas
	for _, name := range names {
		v := &vegas{c: p.dial(t, name, scriptTrip), sent: map[uint32][2]time.Time{}, base: forever, least: forever}
		all = append(all, v)
	}
	for _, v := range all {
		v.sends(t, p, func() { v.c.write(t, scriptWindow) })
	}
	ended := time.Now()
	for _, v := range all {
		v.c.write(t, 40*len(queued)) // the window is never without something to send
		p.drain(t)
	}
	for i, q := range queued {
		window := float64(p.info(t, all[0].c).Snd_cwnd)
		time.Sleep(time.Duration(float64(scriptTrip) * (1 + q/window)))
		upTo, gap := make([]uint32, len(all)), time.Since(ended)
		for k, v := range all {
			v.gap = gap
			if upTo[k] = v.c.sent; i == loss {
				for range (v.c.sent-v.c.acked)/mss - 1 {
					v.acknowledge(t, p, v.c.acked)
				}
				upTo[k] = v.c.acked
				v.turns = append(v.turns, turn{high: math.Inf(1)})
			} else {
				v.endRound(t, p)
			}
		}
		for more := true; more; {
			more = false
			for k, v := range all {
				if v.c.acked < upTo[k] {
					v.acknowledge(t, p, v.c.acked+mss)
					more = true
				}
			}
		}
		ended = time.Now()
		for _, v := range all {
			info := p.info(t, v.c)
			v.turns[i].end, v.turns[i].ssthresh = info.Snd_cwnd, info.Snd_ssthresh
		}
	}
	return all
}

// vegasScript leaves slow start, has the window grow, stay and shrink, and then
// loses a segment: the segments queued in each round trip. Each is more than a
// segment away from where the rule changes.
func vegasScript() (queued []float64, loss int) {
	for _, phase := range []struct {
		queued float64
		turns  int
	}{{0, 1}, {8, 2}, {0.5, 7}, {3.5, 5}, {8, 7}, {3.5, 3}} {
		for range phase.turns {
			queued = append(queued, phase.queued)
		}
	}
	loss = len(queued)
	return append(queued, 0.5, 0.5, 0.5, 0.5, 0.5), loss
}

// playedVegas plays the script to connections.
func playedVegas(t *testing.T, names []string) (all []*vegas, loss int) {
	t.Helper()
	p := newPeer(t, false)
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src", senderAddr, "initcwnd", strconv.Itoa(scriptWindow))
	queued, loss := vegasScript()
	return playVegas(t, p, names, queued, loss), loss
}

// vegasRule is that of Brakmo and Peterson 1995, section 4, in the terms of
// Linux's module: what the window is after a round, by how many segments were
// queued. Between alpha and beta, both whole segments, it stays; in slow start
// it grows until more than gamma are queued, and then becomes what fills the
// path, and one.
func vegasRule(before, ssthresh uint32, queued float64) uint32 {
	const alpha, beta, gamma = 2, 4, 1 // vegas.bpf.c
	whole := math.Floor(queued)
	switch {
	case before < ssthresh && whole > gamma:
		return uint32(float64(before)*float64(before)/(float64(before)+queued)) + 1
	case before < ssthresh, whole < alpha:
		return before + 1
	case whole > beta:
		return before - 1
	}
	return before
}

// may is the least and the largest window that the rule gives a connection
// after a round in which so many segments were queued, at least and at most.
func (v *vegas) may(i int, low, high float64) (least, largest uint32) {
	ssthresh := uint32(math.MaxInt32)
	if i > 0 {
		ssthresh = v.turns[i-1].ssthresh
	}
	before := v.turns[i].before
	return vegasRule(before, ssthresh, high), vegasRule(before, ssthresh, low)
}

// check holds a connection's turns to the rule until its loss, and the loss to
// Reno's. Where a turn's round trips may lie on either side of a bound,
// either is right.
func (v *vegas) check(t *testing.T, loss int) {
	t.Helper()
	moved := map[int]int{}
	for i, turn := range v.turns[:loss] {
		least, largest := v.may(i, turn.low, turn.high)
		if turn.after < least || turn.after > largest {
			t.Errorf("%s: at turn %d cwnd went from %d to %d with %.2f to %.2f segments queued, want %d to %d",
				v.c.congestion, i, turn.before, turn.after, turn.low, turn.high, least, largest)
		}
		if i == 0 || turn.before < v.turns[i-1].ssthresh {
			continue // slow start
		}
		if turn.end != turn.after {
			t.Errorf("%s: at turn %d cwnd went on from %d to %d within a round", v.c.congestion, i, turn.after, turn.end)
		}
		if least == largest {
			moved[int(least)-int(turn.before)]++
		}
	}
	if moved[1] < 3 || moved[0] < 3 || moved[-1] < 3 {
		t.Errorf("%s: too few turns that tell anything, by what the rule wants: %v\n%s", v.c.congestion, moved, v)
	}
	if half, got := v.turns[loss-1].end/2, v.turns[loss+1]; got.ssthresh != half || got.end != half {
		t.Errorf("%s: after the loss ssthresh is %d and cwnd %d, want half the window, %d\n%s", v.c.congestion, got.ssthresh, got.end, half, v)
	}
}

func (v *vegas) String() (s string) {
	for i, turn := range v.turns {
		s += fmt.Sprintf("%2d cwnd %d to %d, %d at the end, ssthresh %d, queued %.2f to %.2f\n", i, turn.before, turn.after, turn.end, turn.ssthresh, turn.low, turn.high)
	}
	return s
}

// Brakmo and Peterson 1995, section 4: once a round trip cwnd is moved by one
// segment, or not at all, by how many are queued.
func TestVegasMovesByItsRule(t *testing.T) {
	testnet.Need(t)
	t.Parallel() // it sleeps
	all, loss := playedVegas(t, []string{register(t, tcpcc.Vegas).Name})
	all[0].check(t, loss)
	t.Logf("\n%s", all[0])
}
