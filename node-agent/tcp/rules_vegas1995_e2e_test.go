//go:build e2e

package tcp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// paced is a connection that always has something to send, and all of whose
// flight is acknowledged at once, segment by segment, a pause after it went: so
// that pause is the round trip of all.
type paced struct {
	*played
	p       *peer
	written int
}

// vegasTrip is the round trip without a queue. What the machine adds is small
// beside it.
const vegasTrip = 200 * time.Millisecond

func newPaced(t *testing.T, p *peer, congestion string) *paced {
	t.Helper()
	c := &paced{played: p.dial(t, congestion, vegasTrip), p: p}
	c.fill(t)
	return c
}

// fill has more to send than the window takes.
func (c *paced) fill(t *testing.T) {
	t.Helper()
	if more := 3*int(c.p.info(t, c.played).Snd_cwnd) - (c.written - int(c.sent)/mss); more > 0 {
		c.write(t, more)
		c.written += more
	}
	c.p.drain(t)
}

// ack acknowledges the next segment, or the last one again.
func (c *paced) ack(t *testing.T, again bool) {
	t.Helper()
	if !again {
		c.acked += mss
	}
	c.p.give(t, c.p.ack(c.played, c.acked))
	c.p.drain(t)
}

// turn lets a round trip pass, in which so much of it was a queue, and returns
// the window after the first ACK, which ends a round of Vegas's, and after all.
func (c *paced) turn(t *testing.T, trips float64) (first, end uint32) {
	t.Helper()
	c.fill(t)
	time.Sleep(time.Duration(trips * float64(vegasTrip)))
	upTo := c.sent
	c.ack(t, false)
	first = c.p.info(t, c.played).Snd_cwnd
	for c.acked < upTo {
		c.ack(t, false)
	}
	return first, c.p.info(t, c.played).Snd_cwnd
}

func startsWith(t *testing.T, p *peer, segments string) {
	t.Helper()
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
		senderAddr, "initcwnd", segments)
}

// Brakmo and Peterson 1995, with ns-2's alpha 1, beta 3 and
// gamma 1. A turn's round trips are those of the window before; so each
// length is kept for two, and the second counts.
func TestVegas1995MovesByItsRule(t *testing.T) {
	p := newPeer(t, false)
	startsWith(t, p, "4")
	c := newPaced(t, p, register(t, tcpcc.Vegas1995).Name)
	var ends []uint32
	for range 4 {
		_, end := c.turn(t, 1)
		ends = append(ends, end)
	}
	if want := []uint32{4, 8, 8, 16}; !slices.Equal(ends, want) {
		t.Errorf("slow start without a queue goes through %v, want %v: doubled in every other round trip", ends, want)
	}
	c.turn(t, 2)
	first, end := c.turn(t, 2) // 15 in flight, of which 8 fill the path
	if ssthresh := p.info(t, c.played).Snd_ssthresh; first != 14 || end != 14 || ssthresh != 2 {
		t.Errorf("a queue of more than gamma ends slow start with %d, %d and ssthresh %d, want 14, an eighth less, "+
			"and 2", first, end, ssthresh)
	}
	for range 3 { // 13, 12 and 11 in flight, of which half fill the path
		before := end
		if first, end = c.turn(t, 2); first != before-1 || end != first {
			t.Errorf("with more than beta queued cwnd goes from %d to %d and %d, want one less", before, first, end)
		}
	}
	c.turn(t, 1.25)
	window := p.info(t, c.played).Snd_cwnd
	// ns-2 counts the segment that ends the round with what is in flight: alpha is below one
	// segment queued, and beta above three.
	for _, trips := range []float64{1.25, 1.1} { // two of eleven are queued, and one
		for range 3 {
			if first, end = c.turn(t, trips); first != window || end != window {
				t.Errorf("with a trip of %g cwnd goes from %d to %d and %d, between alpha and beta", trips, window,
					first, end)
			}
		}
	}
	c.turn(t, 1)
	_, end = c.turn(t, 1)
	for range 3 {
		before := end
		if _, end = c.turn(t, 1); end != before+1 {
			t.Errorf("without a queue cwnd goes from %d to %d, want one more", before, end)
		}
	}
	c.fill(t)
	time.Sleep(2 * vegasTrip) // more than the fine-grained timer of any segment
	flight := int(c.sent-c.acked) / mss
	for n := range 3 {
		if c.ack(t, true); n < 2 && c.again > 0 {
			t.Errorf("a retransmission went at duplicate %d: then the sources of the variant say what is not so", n+1)
		}
	}
	info := p.info(t, c.played)
	if want := end - end/4; c.again != 1 || info.Ca_state != stateRecovery || info.Snd_ssthresh != want {
		t.Errorf("at the third duplicate %d retransmissions, state %d and ssthresh %d, want 1, recovery and %d: a "+
			"quarter less of %d", c.again, info.Ca_state, info.Snd_ssthresh, want, end)
	}
	for range flight - 4 {
		c.ack(t, true)
	}
	was := end
	c.acked = c.sent
	p.give(t, p.ack(c.played, c.acked))
	p.drain(t)
	if info := p.info(t, c.played); info.Snd_cwnd != was-was/4 || info.Snd_ssthresh != 2 {
		t.Errorf("recovery ends with cwnd %d and ssthresh %d, want %d and 2", info.Snd_cwnd, info.Snd_ssthresh,
			was-was/4)
	}
}

// A bound of the window (ns-2's wnd_) bounds what a loss takes a quarter of: the
// window does not grow beyond it unseen.
func TestVegas1995DoesNotGrowBeyondABound(t *testing.T) {
	p := newPeer(t, false)
	const bound = 8
	p.ns.Do(t, func() error {
		c, err := ClampWindow(Clamp{Of: Of{Cookie: cookieHere(t), Peers: netip.MustParsePrefix("10.55.0.0/24")},
			Segments: bound})
		if err == nil {
			testnet.CloseAtEnd(t, c)
		}
		return err
	})
	c := newPaced(t, p, register(t, tcpcc.Vegas1995).Name)
	for range 6 { // twice the bound and more, if nothing held it
		c.turn(t, 1)
	}
	for range 3 {
		c.ack(t, true)
	}
	if info := p.info(t, c.played); info.Ca_state != stateRecovery || info.Snd_ssthresh != bound-bound/4 {
		t.Errorf("at the third duplicate state %d and ssthresh %d, want recovery and a quarter less of %d",
			info.Ca_state, info.Snd_ssthresh, bound)
	}
}

// After a timeout slow start begins with two segments, up to half of the flight
// (ns-2's Vegas; Brakmo and Peterson 1995 leave it to Reno, but for the two).
func TestVegas1995AfterATimeout(t *testing.T) { timesOut(t, vegas1995TimesOut) }

// timesOut plays a timeout until the kernel runs the program at it. One that passes
// over programs on top of process 1 (decision 011) may do so with this timer, but not
// three times.
func timesOut(t *testing.T, play func(t *testing.T) (over bool)) {
	t.Helper()
	for range 3 {
		over := false
		if t.Run("timeout", func(t *testing.T) { over = play(t) }); !over {
			return
		}
	}
	t.Error("the kernel passes over the program, three times")
}

// passedOver reports whether no program gave a threshold: theirs have two segments at
// least, and are windows that can be.
func passedOver(t *testing.T, info *unix.TCPInfo) bool {
	t.Helper()
	over := info.Snd_ssthresh < 2 || info.Snd_ssthresh > 1<<20
	if over {
		t.Logf("ssthresh is %d", info.Snd_ssthresh)
	}
	return over
}

// vegas1995TimesOut reports whether the kernel passed over the program.
func vegas1995TimesOut(t *testing.T) (over bool) {
	p := newPeer(t, false)
	startsWith(t, p, "4")
	setSysctls(t, p.ns, map[string]string{"tcp_rto_min_us": "300000"})
	c := newPaced(t, p, register(t, tcpcc.Vegas1995).Name)
	for range 3 {
		c.turn(t, 1)
	}
	time.Sleep(vegasTrip)
	for range 2 { // the first ends a round, and begins one in which the window grows
		c.ack(t, false)
	}
	flight := p.info(t, c.played).Unacked
	for until := time.Now().Add(10 * time.Second); p.info(t, c.played).Ca_state != stateLoss; {
		if time.Sleep(time.Millisecond); time.Now().After(until) {
			t.Fatal("the timer did not go off")
		}
	}
	info := p.info(t, c.played)
	if passedOver(t, info) {
		return true
	}
	if info.Snd_cwnd != 2 || info.Snd_ssthresh != flight/2 {
		t.Errorf("after a timeout with %d in flight cwnd is %d and ssthresh %d, want 2 and half of that", flight,
			info.Snd_cwnd, info.Snd_ssthresh)
	}
	c.ack(t, false) // within the round that the timeout cut short: ns-2's leaves v_incr_, so that the window grows
	if info := p.info(t, c.played); info.Snd_cwnd != 3 {
		t.Errorf("after the first acknowledgement cwnd is %d, want 3", info.Snd_cwnd)
	}
	return false
}

// Linux's module begins a round with the first segment after nothing was under
// way (CA_EVENT_TX_START), so that round trips from before count no more. From
// Linux 7.1 a program does not get that event.
func TestVegasBeginsARoundAfterAnIdleTime(t *testing.T) {
	p := newPeer(t, false)
	startsWith(t, p, "12")
	c := newPaced(t, p, register(t, tcpcc.Vegas).Name)
	for turns := 0; p.info(t, c.played).Snd_ssthresh > 1000; turns++ { // a queue ends slow start
		if c.turn(t, 1+float64(min(turns, 1))); turns > 10 {
			t.Fatal("slow start does not end")
		}
	}
	for int(c.sent)/mss < c.written { // all that was written
		c.ack(t, false)
	}
	for c.acked < c.sent {
		c.ack(t, false)
	}
	before := p.info(t, c.played)
	if before.Unacked != 0 || before.Ca_state != stateOpen || before.Snd_cwnd < 8 {
		t.Fatalf("%d unacknowledged in state %d with cwnd %d: it is not idle", before.Unacked, before.Ca_state,
			before.Snd_cwnd)
	}
	// The round that is over had its samples, without a queue; one ACK alone is too few.
	time.Sleep(vegasTrip)
	c.fill(t)
	time.Sleep(vegasTrip)
	c.ack(t, false)
	if cwnd := p.info(t, c.played).Snd_cwnd; cwnd != before.Snd_cwnd {
		t.Errorf("cwnd went from %d to %d at the first ACK after an idle time: by round trips from before it",
			before.Snd_cwnd, cwnd)
	}
}
