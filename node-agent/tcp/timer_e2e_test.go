//go:build e2e

package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const oneWay = 10 * time.Millisecond

// Least RTOs, in µs, from which the timers are constant.
const fixedMinUs, referenceMinUs = "500000", "1000000"

// outage loses everything from a segment on, for a time that begins with it.
type outage struct {
	from  int
	lasts time.Duration
	began time.Time
	told  func(testnet.Segment)
}

func (o *outage) drop(s testnet.Segment) bool {
	if o.began.IsZero() && s.Index == o.from {
		o.began = s.At
	}
	lost := !o.began.IsZero() && s.At.Sub(o.began) < o.lasts
	if lost && o.told != nil {
		o.told(s)
	}
	return lost
}

// gaps are the times between transmissions of the first segment of the outage.
func (o *outage) gaps(tr trace) []time.Duration {
	var out []time.Duration
	var last time.Time
	for _, s := range tr.sent {
		if s.Index != o.from {
			continue
		}
		if !last.IsZero() {
			out = append(out, s.At.Sub(last))
		}
		last = s.At
	}
	return out
}

// near tells a constant gap from a doubled one on a machine that may be busy:
// a packet that is seen late makes one gap longer and the next shorter.
func near(got, want time.Duration) bool {
	return got > want*6/10 && got < want*14/10+200*time.Millisecond
}

func hold(t *testing.T, reference *Congestion) func(uint64) {
	return func(cookie uint64) {
		h, err := HoldRTO(Timer{Of: Of{cookie, netip.MustParsePrefix("10.55.0.0/24")}, Reference: reference})
		if err != nil {
			t.Fatal(err)
		}
		testnet.CloseAtEnd(t, h)
	}
}

// needTimer skips where the kernel cannot bound the RTO.
func needTimer(t *testing.T) {
	t.Helper()
	testnet.Need(t)
	m, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	if err := tryTimer(m); err != nil {
		t.Skip(err)
	}
}

// Dyer and Boppana 2001, section 3: the RTO is not doubled on the second timeout
// in a row nor on any later one. 22 s are six of the doublings that the timer
// would otherwise make from half a second on, and more than the 15 s after
// which a connection with the usual number of retries would die.
func TestFixedRTOThroughAnOutage(t *testing.T) {
	needTimer(t)
	t.Parallel() // it sleeps
	o := &outage{from: 30, lasts: 22 * time.Second}
	x := experiment{congestion: "reno", segments: 120, patience: 60 * time.Second,
		path:    testnet.PathConfig{Delay: oneWay, Drop: o.drop},
		sysctls: map[string]string{"tcp_rto_min_us": fixedMinUs, "tcp_retries2": "255"}, before: hold(t, nil)}
	gaps := o.gaps(x.run(t)) // that all arrives, run checks
	if len(gaps) < 12 {
		t.Fatalf("%d retransmissions in 22 s: %v", len(gaps), gaps)
	}
	fixed := 2 * gaps[0]
	for i, gap := range gaps[1 : len(gaps)-1] {
		if !near(gap, fixed) {
			t.Errorf("gap %d is %s, want twice the first RTO, %s, and no more: %v", i+2, gap, fixed, gaps)
		}
	}
}

// The kernel counts time-outs in a row in eight bits: after 256 it tells the first again, and the RTO stays what it is.
func TestAFixedRTOThroughMoreThan256Timeouts(t *testing.T) {
	needTimer(t)
	t.Parallel() // it sleeps
	o := &outage{from: 30, lasts: 300 * time.Second}
	x := experiment{congestion: "reno", segments: 60, patience: 5 * time.Minute,
		path:    testnet.PathConfig{Delay: oneWay, Drop: o.drop},
		sysctls: map[string]string{"tcp_rto_min_us": fixedMinUs, "tcp_retries2": "255"}, before: hold(t, nil)}
	gaps := o.gaps(x.run(t))
	if len(gaps) < 262 {
		t.Fatalf("%d retransmissions in 300 s: %v", len(gaps), gaps)
	}
	for i, gap := range gaps[256 : len(gaps)-1] {
		if !near(gap, 2*gaps[0]) {
			t.Errorf("gap %d is %s, want twice the first RTO, %s: %v", i+257, gap, 2*gaps[0], gaps[250:])
		}
	}
}

// The first packet of the paper's simulator has this timer too: a SYN that nobody answers goes again after 1 s, and
// then every 2 s. Another's waits double.
func TestAFixedRTOHoldsTheSYN(t *testing.T) {
	needTimer(t)
	for name, want := range map[string][]time.Duration{
		"fixed": {time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
		"usual": {time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it sleeps
			var before func(uint64)
			if name == "fixed" {
				before = hold(t, nil)
			}
			gaps := unanswered(t, 16*time.Second, before)
			if len(gaps) < len(want) {
				t.Fatalf("the SYN went again after %v", gaps)
			}
			for i, gap := range want {
				if !near(gaps[i], gap) {
					t.Errorf("gap %d is %s, want %s: %v", i+1, gaps[i], gap, gaps)
				}
			}
		})
	}
}

// unanswered gives the gaps between the SYNs of a connection that nobody answers.
func unanswered(t *testing.T, lasts time.Duration, before func(cookie uint64)) []time.Duration {
	t.Helper()
	a, b := testnet.NewNS(t, "snd"), testnet.NewNS(t, "rcv")
	setSysctls(t, a, map[string]string{"tcp_syn_linear_timeouts": "0", "tcp_rto_min_us": fixedMinUs})
	if before != nil {
		a.Do(t, func() error { before(cookieHere(t)); return nil })
	}
	var gaps []time.Duration
	t.Run("path", func(t *testing.T) { // its end stops the path, so that the gaps are complete
		var last time.Time
		testnet.NewPath(t, a, senderAddr+"/24", b, receiverAddr+"/24", testnet.PathConfig{
			Control: func(s testnet.Segment) bool {
				if !last.IsZero() {
					gaps = append(gaps, s.At.Sub(last))
				}
				last = s.At
				return true
			}})
		a.Do(t, func() error {
			conn, err := (&net.Dialer{Timeout: lasts}).DialContext(context.Background(), "tcp4", receiverAddr+":5000")
			if err == nil {
				return errors.Join(errors.New("somebody answered"), conn.Close())
			}
			return nil
		})
	})
	return gaps
}

// A connection whose SYN's timer was held has a timer of its own for data: its first RTO, of 3 s where no round trip is
// known (RFC 6298, 5.7), doubles once.
func TestDataAfterAHeldSYNHasItsOwnTimer(t *testing.T) {
	needTimer(t)
	t.Parallel() // it sleeps
	o := &outage{from: 30, lasts: 7 * time.Second}
	x := experiment{congestion: "reno", segments: 60, patience: 30 * time.Second,
		path: testnet.PathConfig{Delay: oneWay, Drop: o.drop,
			Control: func(s testnet.Segment) bool { return s.Times < 4 }},
		sysctls: map[string]string{"tcp_rto_min_us": fixedMinUs, "tcp_syn_linear_timeouts": "0", "tcp_timestamps": "0"},
		before:  hold(t, nil)}
	gaps := o.gaps(x.run(t))
	if len(gaps) < 5 || !near(gaps[2], 2*gaps[0]) || !near(gaps[3], 2*gaps[0]) {
		t.Errorf("retransmissions in 7 s: %v", gaps)
	}
}

// The kernel reckons when to give a connection up by the bound that holds its timer: at 3 retransmissions after 2.5 s
// here, as at 255 after five minutes. A held connection lives on all the same.
func TestAHeldTimerGivesNoConnectionUp(t *testing.T) {
	needTimer(t)
	t.Parallel() // it sleeps
	o := &outage{from: 30, lasts: 7 * time.Second}
	x := experiment{congestion: "reno", segments: 60, patience: 30 * time.Second,
		path:    testnet.PathConfig{Delay: oneWay, Drop: o.drop},
		sysctls: map[string]string{"tcp_rto_min_us": fixedMinUs, "tcp_retries2": "3"}, before: hold(t, nil)}
	if gaps := o.gaps(x.run(t)); len(gaps) < 5 { // that all arrives, run checks
		t.Errorf("retransmissions in 7 s: %v", gaps)
	}
}

// Timeouts in a row double the RTO to the largest one and no further: ns-2's ends
// at 60 s (maxrto_ in tcl/lib/ns-default.tcl), Linux's at 120 s.
func TestRTODoublesToTheLargest(t *testing.T) {
	testnet.Need(t)
	if err := hasSysctl("rto_max_ms", tcpcc.RTOMaxKey, rtoMaxOption); err != nil {
		t.Skip(err)
	}
	t.Parallel() // it sleeps
	for most, doubles := range map[string]bool{"1000": false, "120000": true} {
		t.Run(most, func(t *testing.T) {
			t.Parallel()
			o := &outage{from: 30, lasts: 7 * time.Second}
			x := experiment{congestion: "reno", segments: 60, patience: 30 * time.Second,
				path:    testnet.PathConfig{Delay: oneWay, Drop: o.drop},
				sysctls: map[string]string{"tcp_rto_min_us": "200000", "tcp_rto_max_ms": most}}
			// 230 ms, doubled, reach 7 s at the fifth gap; doubled to 1 s, at the ninth.
			gaps := o.gaps(x.run(t))
			if len(gaps) < 4 || (len(gaps) < 7) != doubles {
				t.Errorf("%d gaps, doubled to the end: %t: %v", len(gaps), doubles, gaps)
			}
		})
	}
}

// Another namespace, and peers outside of the prefix, keep the usual timer.
func TestFixedRTOIsForItsOwnConnectionsOnly(t *testing.T) {
	needTimer(t)
	t.Parallel()
	o := &outage{from: 30, lasts: 6 * time.Second}
	x := experiment{congestion: "reno", segments: 60, patience: 30 * time.Second,
		path:    testnet.PathConfig{Delay: oneWay, Drop: o.drop},
		sysctls: map[string]string{"tcp_rto_min_us": fixedMinUs},
		before:  func(cookie uint64) { hold(t, nil)(cookie + 1) }}
	gaps := o.gaps(x.run(t))
	if len(gaps) < 3 || !near(gaps[2], 4*gaps[0]) {
		t.Errorf("the timer of another namespace's connection does not back off: %v", gaps)
	}
}

// referenceRun runs the reference TCP over a path, told about each loss.
func referenceRun(t *testing.T, why Cause, drop func(testnet.Segment) bool, held bool) trace {
	t.Helper()
	c := register(t, tcpcc.Reference)
	x := experiment{congestion: c.Name, segments: 200, patience: 30 * time.Second,
		path: testnet.PathConfig{Delay: oneWay, Drop: func(s testnet.Segment) bool {
			lost := drop(s)
			if lost {
				if err := c.Lost(s.FromPort, s.ToPort, s.Seq, why); err != nil {
					t.Error(err)
				}
			}
			return lost
		}}}
	if held {
		x.sysctls = map[string]string{"tcp_rto_min_us": referenceMinUs, "tcp_retries2": "255"}
		x.before = hold(t, c)
	}
	return x.run(t)
}

// Fu, Meng and Lu 2002: what the third duplicate ACK does is the cause's to say.
func TestReferenceOnDuplicateACKs(t *testing.T) {
	t.Run("channel error", func(t *testing.T) { // retransmit, no slowing down
		tr := referenceRun(t, CauseChannelError, losing(40, 43, 46), false)
		entry := tr.into(t, stateRecovery, 0)
		before := tr.points[entry-1]
		for i, p := range tr.points[entry:] {
			if p.cwnd < before.cwnd-3 || p.ssthresh != before.ssthresh {
				t.Fatalf("cwnd %d ssthresh %d after a channel error, before: %s\n%s", p.cwnd, p.ssthresh, before,
					tr.around(entry-2, entry+i+2))
			}
		}
		if tr.timeouts() != 0 {
			t.Errorf("%d timeouts", tr.timeouts())
		}
	})
	t.Run("route change", func(t *testing.T) { // slow start, no back-off
		tr := referenceRun(t, CauseRouteChange, losing(40), false)
		entry := tr.into(t, stateRecovery, 0)
		if p := tr.points[entry+1]; p.cwnd != 1 || p.ssthresh != tr.points[0].ssthresh {
			t.Errorf("cwnd %d ssthresh %d after a route change, want 1 and %d", p.cwnd, p.ssthresh,
				tr.points[0].ssthresh)
		}
	})
	for name, why := range map[string]Cause{ // NewReno
		"congestion": CauseCongestion, "unknown": 0, "disconnection": CauseDisconnection} {
		t.Run(name, func(t *testing.T) {
			got := referenceRun(t, why, losing(40, 43, 46), false)
			want := lossy(t, tcpcc.NewReno, false, 40, 43, 46)
			if a, b := got.rules(t), want.rules(t); a != b {
				t.Errorf("the window went through %+v, NewReno's through %+v", a, b)
			}
		})
	}
}

// rules are what does not hang on time: the window in recovery and after it,
// beyond ssthresh, and the timeouts. That ssthresh is half of the flight is for
// halving to check: how much was in flight is a matter of the moment.
type rules struct {
	inside, after int
	timeouts      uint32
}

func (tr trace) rules(t *testing.T) rules {
	entry := tr.halving(t)
	end := tr.into(t, stateOpen, entry)
	beyond := func(p point) int { return int(p.cwnd) - int(tr.points[entry].ssthresh) }
	return rules{beyond(tr.points[entry+2]), beyond(tr.points[end]), tr.timeouts()}
}

// Disconnection: the segment is tried at a fixed interval, and afterwards the
// window is what it was; congestion: the interval doubles, and slow start.
func TestReferenceOnTimeout(t *testing.T) {
	needTimer(t)
	for name, c := range map[string]struct {
		why   Cause
		grows bool
	}{"disconnection": {CauseDisconnection, false}, "congestion": {CauseCongestion, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outage{from: 40, lasts: 6500 * time.Millisecond}
			tr := referenceRun(t, c.why, o.drop, true)
			gaps := o.gaps(tr)
			if len(gaps) < 3 {
				t.Fatalf("gaps %v", gaps)
			}
			for i, gap := range gaps[1:] {
				want := gaps[0]
				if c.grows {
					want <<= i + 1
				}
				if !near(gap, want) {
					t.Errorf("gap %d is %s, want %s: %v", i+2, gap, want, gaps)
				}
			}
			last := 0 // ACK before the outage
			for i, p := range tr.points {
				if p.ack <= 40 {
					last = i
				}
			}
			before, after := tr.points[last], tr.points[last+1]
			if kept := after.cwnd >= before.cwnd; kept == c.grows {
				t.Errorf("cwnd %d before and %d after the outage\n%s", before.cwnd, after.cwnd,
					tr.around(last-2, last+4))
			}
		})
	}
}
