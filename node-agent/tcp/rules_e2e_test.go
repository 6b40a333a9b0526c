//go:build e2e || guest

package tcp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The least round trip of the scripts. A program of the test plays the peer and
// makes the queue by waiting; what the machine adds is measured, and is small
// beside this.
const scriptTrip = 400 * time.Millisecond

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
	// written are the segments that it was given to send.
	written int
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
	if v.c.acked >= v.c.sent {
		t.Fatalf("%s has nothing in flight\n%s", v.c.congestion, v)
	}
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

// vegasPlay takes connections through the same round trips.
type vegasPlay struct {
	p     *peer
	all   []*vegas
	ended time.Time     // of the last burst of ACKs
	burst time.Duration // that it took
}

func playVegas(t *testing.T, names []string) *vegasPlay {
	t.Helper()
	s := &vegasPlay{p: newPeer(t, false)}
	s.p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
		senderAddr, "initcwnd", strconv.Itoa(scriptWindow))
	for _, name := range names {
		s.all = append(s.all, &vegas{c: s.p.dial(t, name, scriptTrip), sent: map[uint32][2]time.Time{}, base: forever,
			least: forever})
	}
	for _, v := range s.all {
		v.sends(t, s.p, func() { v.c.write(t, scriptWindow) })
		v.written = scriptWindow
	}
	s.ended = time.Now()
	return s
}

// wait lets pass what makes a round trip that of so many segments queued, as
// far as the machine lets: a round trip is a pause and a burst of ACKs, and the
// least that there was is the path without a queue. For no queue it goes a
// little below that, so that the least is one that is known well.
func (s *vegasPlay) wait(t *testing.T, queued float64) {
	t.Helper()
	first, pause := s.all[0], scriptTrip
	window := float64(s.p.info(t, first.c).Snd_cwnd)
	switch {
	case first.base == forever:
	case queued == 0:
		pause = time.Duration(0.98*float64(first.base.low)) - s.burst
	default:
		pause = time.Duration(float64(first.base.high)*(1+queued/window)) - s.burst
	}
	pause = max(pause, scriptTrip/2)
	time.Sleep(pause)
	gap := time.Since(s.ended)
	for _, v := range s.all {
		v.gap = gap
	}
}

// turn acknowledges all that is in flight, segment by segment and in turns, and
// sees to it that the window is never without something to send.
func (s *vegasPlay) turn(t *testing.T, queued float64) {
	t.Helper()
	for _, v := range s.all {
		window := int(s.p.info(t, v.c).Snd_cwnd)
		if more := 4*window - (v.written - int(v.c.sent)/mss); more > 0 {
			v.c.write(t, more)
			v.written += more
		}
	}
	s.wait(t, queued)
	began := time.Now()
	upTo := make([]uint32, len(s.all))
	for k, v := range s.all {
		upTo[k] = v.c.sent
		v.endRound(t, s.p)
	}
	for more := true; more; {
		more = false
		for k, v := range s.all {
			if v.c.acked < upTo[k] {
				v.acknowledge(t, s.p, v.c.acked+mss)
				more = true
			}
		}
	}
	s.end(t, began)
}

// lose has the first segment in flight be lost, and all the others arrive.
func (s *vegasPlay) lose(t *testing.T, queued float64) {
	t.Helper()
	s.wait(t, queued)
	began := time.Now()
	for _, v := range s.all {
		for n := int(v.c.sent-v.c.acked)/mss - 1; n > 0; n-- {
			v.acknowledge(t, s.p, v.c.acked)
		}
		v.turns = append(v.turns, turn{high: math.Inf(1)})
	}
	s.end(t, began)
}

func (s *vegasPlay) end(t *testing.T, began time.Time) {
	t.Helper()
	s.ended = time.Now()
	s.burst = s.ended.Sub(began)
	for _, v := range s.all {
		info, last := s.p.info(t, v.c), &v.turns[len(v.turns)-1]
		last.end, last.ssthresh = info.Snd_cwnd, info.Snd_ssthresh
	}
}

func (s *vegasPlay) slowStart() bool {
	return slices.ContainsFunc(s.all, func(v *vegas) bool { return v.turns[len(v.turns)-1].ssthresh >= math.MaxInt32 })
}

// playedVegas has connections leave slow start, their windows grow, stay and
// shrink until each was seen often enough, and then one segment of each be lost.
// It ends with the round that repairs the loss: in the rounds after it Vegas may have
// too few samples, and then it moves as Reno does.
// Each number of segments queued is more than a segment away from where the
// rule changes.
func playedVegas(t *testing.T, names []string) (all []*vegas, loss int) {
	t.Helper()
	s := playVegas(t, names)
	for s.turn(t, 0); s.slowStart(); s.turn(t, 8) {
		if len(s.all[0].turns) > 8 {
			t.Fatalf("a queue of 8 segments does not end slow start\n%s", s.all[0])
		}
	}
	const small = 6 // a window that Vegas has samples enough of
	for len(s.all[0].turns) < 60 {
		window := s.p.info(t, s.all[0].c).Snd_cwnd
		if s.lacks(1) || window < small {
			s.turn(t, 0)
		} else if s.lacks(0) {
			s.turn(t, 3.5)
		} else if s.lacks(-1) {
			s.turn(t, 8)
		} else {
			break
		}
	}
	loss = len(s.all[0].turns)
	s.lose(t, 0.5)
	s.turn(t, 0.5)
	return s.all, loss
}

// enough is how often each move is to be seen.
const enough = 4

// lacks says that a move was not yet seen often enough of every connection.
func (s *vegasPlay) lacks(move int) bool {
	return slices.ContainsFunc(s.all, func(v *vegas) bool { return v.told()[move] < enough })
}

// vegasRule is that of Brakmo and Peterson 1995, in the terms of
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
		return max(before-1, 2)
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

// few are the samples of a round after which Vegas is Reno for a round.
const few = 2

// avoids says that a turn was in congestion avoidance and Vegas's.
func (v *vegas) avoids(i int) bool {
	return i > 0 && v.turns[i].before >= v.turns[i-1].ssthresh && v.turns[i].before > few+1 &&
		!math.IsInf(v.turns[i].high, 1)
}

// told counts the turns in congestion avoidance for which the rule knows but
// one move, by the move.
func (v *vegas) told() map[int]int {
	moves := map[int]int{}
	for i, turn := range v.turns {
		if least, largest := v.may(i, turn.low, turn.high); v.avoids(i) && least == largest {
			moves[int(least)-int(turn.before)]++
		}
	}
	return moves
}

// check holds a connection's turns to the rule until its loss, and the loss to
// Reno's. Where a turn's round trips may lie on either side of a bound,
// either is right.
func (v *vegas) check(t *testing.T, loss int) {
	t.Helper()
	for i, turn := range v.turns[:loss] {
		least, largest := v.may(i, turn.low, turn.high)
		if turn.before > few+1 && (turn.after < least || turn.after > largest) {
			t.Errorf("%s: at turn %d cwnd went from %d to %d with %.2f to %.2f segments queued, want %d to %d",
				v.c.congestion, i, turn.before, turn.after, turn.low, turn.high, least, largest)
		}
		if v.avoids(i) && turn.end != turn.after {
			t.Errorf("%s: at turn %d cwnd went on from %d to %d within a round", v.c.congestion, i, turn.after,
				turn.end)
		}
	}
	if moves := v.told(); moves[1] < enough || moves[0] < enough || moves[-1] < enough {
		t.Errorf("%s: too few turns that tell anything, by what the rule wants: %v\n%s", v.c.congestion, moves, v)
	}
	if half, got := max(v.turns[loss-1].end/2, 2), v.turns[loss+1]; got.ssthresh != half || got.end != half {
		t.Errorf("%s: after the loss ssthresh is %d and cwnd %d, want half the window, %d\n%s", v.c.congestion,
			got.ssthresh, got.end, half, v)
	}
}

func (v *vegas) String() (s string) {
	for i, turn := range v.turns {
		s += fmt.Sprintf("%2d cwnd %d to %d, %d at the end, ssthresh %d, queued %.2f to %.2f\n", i, turn.before,
			turn.after, turn.end, turn.ssthresh, turn.low, turn.high)
	}
	return s
}

// Brakmo and Peterson 1995: once a round trip cwnd is moved by one
// segment, or not at all, by how many are queued.
func TestVegasMovesByItsRule(t *testing.T) {
	testnet.Need(t)
	t.Parallel() // it sleeps
	all, loss := playedVegas(t, []string{register(t, tcpcc.Vegas).Name})
	all[0].check(t, loss)
	t.Logf("\n%s", all[0])
}
