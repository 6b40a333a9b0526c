//go:build e2e

package tcp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// causes is a connection of the reference TCP that is told why its segments are lost.
type causes struct {
	*played
	p     *peer
	ideal *Congestion
}

// newCauses has 19 segments in flight, after the first was acknowledged.
func newCauses(t *testing.T, held bool) *causes {
	t.Helper()
	p := newPeer(t, false)
	setSysctls(t, p.ns, map[string]string{"tcp_rto_min_us": referenceMinUs})
	startsWith(t, p, "20")
	c := &causes{p: p, ideal: register(t, tcpcc.Reference)}
	if held {
		p.ns.Do(t, func() error { hold(t, c.ideal)(cookieHere(t)); return nil })
	}
	c.played = p.dial(t, c.ideal.Name, 50*time.Millisecond)
	c.write(t, 20)
	p.drain(t)
	time.Sleep(50 * time.Millisecond)
	c.arrived(t)
	return c
}

// arrived acknowledges the next segment.
func (c *causes) arrived(t *testing.T) {
	t.Helper()
	c.acked += mss
	c.p.give(t, c.p.ack(c.played, c.acked))
	c.p.drain(t)
}

// lost tells why the first segment that is not acknowledged is lost.
func (c *causes) lost(t *testing.T, why Cause) {
	t.Helper()
	if err := c.ideal.Lost(c.port, 5000, c.isn+1+c.acked, why); err != nil {
		t.Fatal(err)
	}
}

// timeout waits for so many in a row.
func (p *peer) timeout(t *testing.T, c *played, inRow uint8) *unix.TCPInfo {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		p.drain(t)
		info := p.info(t, c)
		if info.Ca_state == stateLoss && info.Retransmits >= inRow {
			return info
		}
		if time.Now().After(until) {
			t.Fatalf("timeout %d does not come: %+v", inRow, *info)
		}
	}
}

const noThreshold = 1<<31 - 1

// Fu, Meng and Lu 2002, figure 1: the cause is asked for at each timeout, and slowstart() is the same after congestion
// and after a route change, whatever was the cause of the loss before.
func TestReferenceReducesAtATimeoutByItsOwnCause(t *testing.T) {
	for name, c := range map[string]struct {
		duplicates, first, second Cause
		ssthresh                  uint32
		slow                      bool
	}{
		"channel error and congestion":  {CauseChannelError, CauseCongestion, 0, 9, true},
		"route change and congestion":   {CauseRouteChange, CauseCongestion, 0, 2, true}, // of the window of one
		"congestion twice":              {CauseCongestion, CauseCongestion, 0, 9, true},
		"disconnection and congestion":  {0, CauseDisconnection, CauseCongestion, 9, true},
		"congestion and disconnection":  {0, CauseCongestion, CauseDisconnection, 9, true},
		"route change":                  {0, CauseRouteChange, 0, 9, true},
		"route change twice":            {0, CauseRouteChange, CauseRouteChange, 9, true},
		"channel error at each timeout": {0, CauseChannelError, CauseChannelError, noThreshold, false},
	} {
		t.Run(name, func(t *testing.T) {
			timesOut(t, func(t *testing.T) (over bool) {
				r := newCauses(t, false)
				if c.duplicates != 0 {
					r.lost(t, c.duplicates)
					for range 3 {
						r.p.give(t, r.p.ack(r.played, r.acked))
					}
					r.p.drain(t)
					if state := r.p.info(t, r.played).Ca_state; state != stateRecovery {
						t.Fatalf("state %d after three duplicates", state)
					}
				}
				r.lost(t, c.first)
				info := r.p.timeout(t, r.played, 1)
				if c.second != 0 {
					r.lost(t, c.second)
					info = r.p.timeout(t, r.played, 2)
				}
				if info.Snd_ssthresh != noThreshold && passedOver(t, info) {
					return true
				}
				r.arrived(t)
				cwnd := r.p.info(t, r.played).Snd_cwnd
				if slow := cwnd <= 2; info.Snd_ssthresh != c.ssthresh || slow != c.slow {
					t.Errorf("ssthresh %d, and cwnd %d after the next ACK; want %d, and slow start: %t",
						info.Snd_ssthresh, cwnd, c.ssthresh, c.slow)
				}
				return false
			})
		})
	}
}

// A bit error is one transmission's. Why the next was lost is told again, or it counts as congestion. That there was no
// way stays true until something else is told.
func TestReferenceForgetsAChannelErrorWhenTheSegmentGoesAgain(t *testing.T) {
	needTimer(t)
	for name, c := range map[string]struct {
		why            Cause
		again, reduces bool
	}{
		"channel error":       {CauseChannelError, false, true},
		"channel error again": {CauseChannelError, true, false},
		"disconnection":       {CauseDisconnection, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			timesOut(t, func(t *testing.T) (over bool) {
				r := newCauses(t, true)
				r.lost(t, c.why)
				first := r.p.timeout(t, r.played, 1)
				if first.Snd_ssthresh != noThreshold {
					t.Fatalf("ssthresh is %d after a timeout by cause %d", first.Snd_ssthresh, c.why)
				}
				if c.again {
					r.lost(t, c.why)
				}
				second := r.p.timeout(t, r.played, 2)
				if second.Snd_ssthresh != noThreshold && passedOver(t, second) {
					return true
				}
				reduced, backsOff := second.Snd_ssthresh == 9, second.Rto > first.Rto*3/2
				if reduced != c.reduces || backsOff != c.reduces {
					t.Errorf("at the second timeout ssthresh is %d, and the RTO %d µs after %d; want both by "+
						"congestion: %t", second.Snd_ssthresh, second.Rto, first.Rto, c.reduces)
				}
				return false
			})
		})
	}
}
