//go:build e2e || guest

package tcp

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// The least round trip of the scripts. A program of the test plays the peer and
// makes the queue by waiting; what the machine adds is measured, and is small
// beside this.
const scriptTrip = 200 * time.Millisecond

// turn is what Vegas did with one round trip of a connection.
type turn struct {
	before, after uint32  // cwnd at the ACK with which a round ends, and after it
	end, ssthresh uint32  // cwnd and ssthresh when all of the turn was acknowledged
	queued        float64 // segments, by Vegas's rule from the round trips of this turn
	doubt         float64 // segments: how far what was measured here may be off
}

// vegas is one connection of the script.
type vegas struct {
	c     *played
	sent  map[uint32]time.Time // by the byte at which a segment ends
	base  time.Duration
	least time.Duration // of this round
	// The longest that giving a packet took, which is how far a round trip may
	// be off at either end: in this round, in the last, at the least of all.
	late, lateBefore, lateBase time.Duration
	turns                      []turn
}

// acknowledge gives one ACK, or the same again, and notes when what it let go was sent.
func (v *vegas) acknowledge(t *testing.T, p *peer, upTo uint32) {
	t.Helper()
	was, at := v.c.sent, time.Now()
	p.give(t, p.ack(v.c, upTo))
	v.late = max(v.late, time.Since(at))
	if sent, known := v.sent[upTo]; known && upTo > v.c.acked {
		v.least = min(v.least, at.Sub(sent))
		if v.least < v.base {
			v.base, v.lateBase = v.least, max(v.late, v.lateBefore)
		}
	}
	v.c.acked = upTo
	p.drain(t)
	for end := was + mss; end <= v.c.sent; end += mss {
		v.sent[end] = at
	}
}

// endRound gives the ACK with which a round ends, and judges the round.
func (v *vegas) endRound(t *testing.T, p *peer) {
	t.Helper()
	before := p.info(t, v.c)
	v.acknowledge(t, p, v.c.acked+mss)
	// The round's samples end with this ACK's; the next round's begin after it.
	queued := float64(before.Snd_cwnd) * float64(v.least-v.base) / float64(v.base)
	v.turns = append(v.turns, turn{before: before.Snd_cwnd, after: p.info(t, v.c).Snd_cwnd,
		queued: queued, doubt: float64(before.Snd_cwnd) * float64(v.late+v.lateBefore+v.lateBase) / float64(v.base)})
	v.least, v.late, v.lateBefore = time.Hour, 0, v.late
}

// playVegas takes connections through the same round trips: at each turn all
// that is in flight is acknowledged, segment by segment and in turns, after a
// round trip that would be that of the given number of segments queued. At the
// turn "loss" the first segment in flight is lost.
func playVegas(t *testing.T, p *peer, names []string, queued []float64, loss int) []*vegas {
	t.Helper()
	var all []*vegas
	for _, name := range names {
		v := &vegas{c: p.dial(t, name, scriptTrip), sent: map[uint32]time.Time{}, base: time.Hour, least: time.Hour}
		all = append(all, v)
	}
	for _, v := range all {
		began := time.Now()
		v.c.write(t, 40*len(queued)) // the window is never without something to send
		v.late = time.Since(began)
		p.drain(t)
		for end := uint32(mss); end <= v.c.sent; end += mss {
			v.sent[end] = began
		}
	}
	for i, q := range queued {
		window := float64(p.info(t, all[0].c).Snd_cwnd)
		time.Sleep(time.Duration(float64(scriptTrip) * (1 + q/window)))
		upTo := make([]uint32, len(all))
		for k, v := range all {
			if upTo[k] = v.c.sent; i == loss {
				for range (v.c.sent-v.c.acked)/mss - 1 {
					v.acknowledge(t, p, v.c.acked)
				}
				upTo[k] = v.c.acked
				v.turns = append(v.turns, turn{doubt: math.Inf(1)})
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
	}{{0, 2}, {8, 2}, {0.5, 7}, {3.5, 5}, {8, 7}, {3.5, 3}} {
		for range phase.turns {
			queued = append(queued, phase.queued)
		}
	}
	loss = len(queued)
	return append(queued, 0.5, 0.5, 0.5, 0.5, 0.5), loss
}

// playedVegas plays the script to connections that begin with a small window:
// what a segment is in time is a round trip divided by the window.
func playedVegas(t *testing.T, names []string) (all []*vegas, loss int) {
	t.Helper()
	p := newPeer(t)
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src", senderAddr, "initcwnd", "4")
	queued, loss := vegasScript()
	return playVegas(t, p, names, queued, loss), loss
}

// vegasMoves is the rule of Brakmo and Peterson 1995, section 4, in the terms
// of Linux's module: between alpha and beta, both whole segments, cwnd stays.
func vegasMoves(queued float64) int {
	const alpha, beta = 2, 4 // vegas.bpf.c
	switch {
	case queued < alpha:
		return 1
	case queued >= beta+1:
		return -1
	}
	return 0
}

// check holds a connection's turns in congestion avoidance, and before its loss,
// to the rule. A turn in which what was measured lies as near to a bound as
// the measuring may be off says nothing.
func (v *vegas) check(t *testing.T, loss int) {
	t.Helper()
	moved := map[int]int{}
	for i, turn := range v.turns[:loss] {
		if i == 0 || turn.before < v.turns[i-1].ssthresh {
			continue // slow start
		}
		low, high := vegasMoves(turn.queued-turn.doubt), vegasMoves(turn.queued+turn.doubt)
		if low != high {
			continue
		}
		moved[low]++
		if got := int(turn.after) - int(turn.before); got != low || turn.end != turn.after {
			t.Errorf("%s: at turn %d cwnd went from %d to %d and then %d, with %.2f segments queued (off by %.2f at most); want a change by %d",
				v.c.congestion, i, turn.before, turn.after, turn.end, turn.queued, turn.doubt, low)
		}
	}
	if moved[1] < 3 || moved[0] < 3 || moved[-1] < 3 {
		t.Errorf("%s: too few turns that say anything, by what the rule wants: %v\n%s", v.c.congestion, moved, v)
	}
}

func (v *vegas) String() (s string) {
	for i, turn := range v.turns {
		s += fmt.Sprintf("%2d cwnd %d to %d, %d at the end, ssthresh %d, queued %.2f ± %.2f\n", i, turn.before, turn.after, turn.end, turn.ssthresh, turn.queued, turn.doubt)
	}
	return s
}

// Brakmo and Peterson 1995, section 4: once a round trip cwnd is moved by one
// segment, or not at all, by how many are queued.
func TestVegasMovesByItsRule(t *testing.T) {
	all, loss := playedVegas(t, []string{register(t, tcpcc.Vegas).Name})
	all[0].check(t, loss)
	t.Logf("\n%s", all[0])
}
