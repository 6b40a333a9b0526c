//go:build e2e

package tcp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// measured is a connection whose ACKs the test spaces, with the paper's
// estimate beside it.
type measured struct {
	*played
	paper
	began       time.Time
	burst       time.Time     // when the burst went
	trip        time.Duration // the least, of the burst's first segment; the handshake's is not counted
	interrupted bool          // the burst went, or an ACK was taken in, later than its stamp says
}

// stampWithin is how long after its stamp a burst may go, or an ACK be taken in. An
// estimate over half a second changes by a hundredth with one that is so late.
const stampWithin = 5 * time.Millisecond

// playMeasured dials a connection, has it send a burst, which arrives after trip,
// and plays its ACKs. It does so again where one was interrupted, as by a busy
// machine: the estimate beside it would be of other times than the kernel's.
func playMeasured(t *testing.T, p *peer, segments int, trip time.Duration, play func(*measured)) *measured {
	t.Helper()
	program := register(t, tcpcc.Westwood2001).Name
	for range burstTries {
		m := &measured{played: p.dial(t, program, trip), began: time.Now()}
		m.burst = time.Now()
		m.write(t, segments)
		m.interrupted = time.Since(m.burst) > stampWithin
		p.drain(t)
		if int(m.sent) < segments*mss {
			t.Fatalf("%d bytes went of a burst of %d segments", m.sent, segments)
		}
		time.Sleep(trip)
		if play(m); !m.interrupted {
			return m
		}
		p.hangUp(t, m.played)
	}
	t.Fatalf("it was interrupted %d times in a row", burstTries)
	return nil
}

func (m *measured) now() float64 { return time.Since(m.began).Seconds() }

// gives acknowledges a segment after a pause, or the same once more.
func (m *measured) gives(t *testing.T, p *peer, pause time.Duration, again bool) {
	t.Helper()
	time.Sleep(pause)
	if !again {
		m.acked += mss
	}
	ack, stamp := p.ack(m.played, m.acked), time.Now()
	m.paper.ack(stamp.Sub(m.began).Seconds(), mss)
	if m.trip == 0 {
		m.trip = stamp.Sub(m.burst)
	}
	p.give(t, ack)
	m.interrupted = m.interrupted || time.Since(stamp) > stampWithin
	p.drain(t)
}

// segments is bandwidth x least round trip.
func (m *measured) segments() float64 { return m.filtered * m.trip.Seconds() / mss }

const (
	spacing      = 20 * time.Millisecond
	measuredTrip = 400 * time.Millisecond
)

// Mascolo and others 2001, section 3.1: at the third duplicate ACK ssthresh =
// bandwidth x least round trip, to which each duplicate counts as a segment
// (section 2.3), and cwnd becomes that if it was more.
func TestWestwood2001SetsSsthreshFromItsEstimate(t *testing.T) {
	p := newPeer(t, false)
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
		senderAddr, "initcwnd", "60")
	var before, after *unix.TCPInfo
	m := playMeasured(t, p, 60, measuredTrip, func(m *measured) {
		for range 50 {
			m.gives(t, p, spacing, false)
		}
		before = p.info(t, m.played)
		for range 3 {
			m.gives(t, p, spacing, true)
		}
		after = p.info(t, m.played)
	})
	t.Logf("cwnd %d before; ssthresh %d, estimate %.2f segments", before.Snd_cwnd, after.Snd_ssthresh, m.segments())
	if after.Ca_state != stateRecovery || m.again != 1 {
		t.Fatalf("state %d and %d retransmissions after three duplicates", after.Ca_state, m.again)
	}
	if d := float64(after.Snd_ssthresh) - m.segments(); d < -1.5 || d > 0.5 {
		t.Errorf("ssthresh is %d, want what the estimate gives, %.2f segments", after.Snd_ssthresh, m.segments())
	}
	if half := float64(before.Unacked) / 2; m.segments() < half+4 {
		t.Errorf("half of the flight is %.0f, which would not be distinguished from %.2f", half, m.segments())
	}
	m.acked = m.sent
	m.gives(t, p, spacing, true)
	m.write(t, 1)
	p.drain(t)
	m.acked = m.sent
	m.gives(t, p, spacing, true) // without SACK, what comes after the loss ends recovery
	end := p.info(t, m.played)
	if end.Ca_state != stateOpen || end.Snd_cwnd > after.Snd_ssthresh+1 || end.Snd_ssthresh != after.Snd_ssthresh {
		t.Errorf("after recovery state %d, cwnd %d and ssthresh %d, want open and %d of both", end.Ca_state,
			end.Snd_cwnd, end.Snd_ssthresh, after.Snd_ssthresh)
	}
}

// Section 3.1: a window that is smaller than what the estimate gives is left as it is.
func TestWestwood2001LeavesASmallerWindow(t *testing.T) {
	p := newPeer(t, false)
	var before uint32
	m := playMeasured(t, p, 10, measuredTrip, func(m *measured) {
		for range 5 { // at once: samples of much bandwidth
			m.gives(t, p, 0, false)
		}
		before = p.info(t, m.played).Snd_cwnd
		m.gives(t, p, measuredTrip/4, true)
		for range 2 {
			m.gives(t, p, 0, true)
		}
	})
	after := p.info(t, m.played)
	t.Logf("cwnd %d, ssthresh %d", after.Snd_cwnd, after.Snd_ssthresh)
	if after.Ca_state != stateRecovery || after.Snd_ssthresh < 2*before {
		t.Fatalf("state %d and ssthresh %d after three duplicates, which tell nothing", after.Ca_state,
			after.Snd_ssthresh)
	}
	m.acked = m.sent
	m.gives(t, p, 0, true)
	if end := p.info(t, m.played); end.Snd_cwnd != before {
		t.Errorf("cwnd is %d after recovery, want %d as before", end.Snd_cwnd, before)
	}
}

// Section 3.2: after a timeout cwnd = 1, and ssthresh by the estimate, which the
// silence has lowered, but not below two segments.
func TestWestwood2001AfterATimeout(t *testing.T) { timesOut(t, westwood2001TimesOut) }

// westwood2001TimesOut reports whether the kernel passed over the program.
func westwood2001TimesOut(t *testing.T) (over bool) {
	p := newPeer(t, false)
	setSysctls(t, p.ns, map[string]string{"tcp_rto_min_us": "300000"})
	p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
		senderAddr, "initcwnd", "60")
	m := playMeasured(t, p, 60, measuredTrip/4, func(m *measured) {
		for range 50 {
			m.gives(t, p, spacing/4, false)
		}
	})
	highest := m.segments()
	from, to := m.now(), 0.0
	for until := time.Now().Add(10 * time.Second); p.info(t, m.played).Ca_state != stateLoss; from = to {
		if time.Sleep(time.Millisecond); time.Now().After(until) {
			t.Fatal("the timer did not go off")
		}
		to = m.now()
	}
	after := p.info(t, m.played)
	if passedOver(t, after) {
		return true
	}
	early, late := m.paper, m.paper
	early.until(max(from-0.02, 0))
	late.until(m.now())
	m.paper = early
	most := max(m.segments(), 2)
	m.paper = late
	least := max(m.segments(), 2)
	t.Logf("estimate %.2f segments, %.2f to %.2f at the timeout; ssthresh %d", highest, least, most, after.Snd_ssthresh)
	if after.Snd_cwnd != 1 || float64(after.Snd_ssthresh) > most+1 || float64(after.Snd_ssthresh) < least-1.5 {
		t.Errorf("after a timeout cwnd is %d and ssthresh %d, want 1 and %.2f to %.2f: %+v", after.Snd_cwnd,
			after.Snd_ssthresh, least, most, *after)
	}
	if highest < most+2 {
		t.Errorf("the silence made %.2f segments of %.2f, which tells nothing of it", most, highest)
	}
	return false
}

// ssthresh is reckoned again at each timeout, also where a recovery or another timeout was before: the silence has
// lowered the estimate further.
func TestWestwood2001ReckonsAtEachTimeout(t *testing.T) {
	for name, duplicates := range map[string]int{"in recovery": 3, "outside": 0} {
		t.Run(name, func(t *testing.T) {
			timesOut(t, func(t *testing.T) (over bool) {
				p := newPeer(t, false)
				setSysctls(t, p.ns, map[string]string{"tcp_rto_min_us": "1000000"})
				startsWith(t, p, "60")
				m := playMeasured(t, p, 60, measuredTrip/4, func(m *measured) {
					for range 40 {
						m.gives(t, p, spacing/4, false)
					}
					for range duplicates {
						m.gives(t, p, spacing/4, true)
					}
				})
				before := m.segments()
				for n := uint8(1); n <= 2; n++ {
					info := p.timeout(t, m.played, n)
					if passedOver(t, info) {
						return true
					}
					m.paper.until(m.now())
					want := max(m.segments(), 2)
					if info.Snd_cwnd != 1 || float64(info.Snd_ssthresh) > want+0.5 {
						t.Errorf("at timeout %d cwnd is %d and ssthresh %d, want 1 and %.2f: %.2f before", n,
							info.Snd_cwnd, info.Snd_ssthresh, want, before)
					}
				}
				if before < 3.5 {
					t.Errorf("%.2f segments before the silence, which tells nothing of it", before)
				}
				return false
			})
		})
	}
}
