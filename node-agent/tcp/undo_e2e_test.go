//go:build e2e

package tcp

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// A fast retransmit that was a false alarm, as a D-SACK tells (RFC 2883), leaves the window and ssthresh as it
// reduced them: classic TCP knows of none. The stack by itself puts the former ssthresh back, which is infinite here.
func TestAFalseAlarmStaysReduced(t *testing.T) {
	for _, program := range []string{tcpcc.Tahoe, tcpcc.Reno, tcpcc.NewReno, tcpcc.Fack, tcpcc.Reference,
		tcpcc.Vegas1995, tcpcc.Westwood2001} {
		t.Run(program, func(t *testing.T) {
			p := newPeer(t, true)
			startsWith(t, p, "20")
			const trip = 200 * time.Millisecond
			c := p.dial(t, register(t, program).Name, trip)
			c.write(t, 20)
			p.drain(t)
			time.Sleep(trip)
			for k := uint32(1); k <= 3; k++ {
				p.give(t, p.ack(c, 0, [2]uint32{mss, (1 + k) * mss}))
				p.drain(t)
			}
			alarm := p.info(t, c)
			if alarm.Ca_state != stateRecovery || alarm.Snd_ssthresh > 15 {
				t.Fatalf("state %d and ssthresh %d after three SACKs", alarm.Ca_state, alarm.Snd_ssthresh)
			}
			p.give(t, p.ack(c, 10*mss))                    // the first was late only
			p.give(t, p.ack(c, 10*mss, [2]uint32{0, mss})) // and came twice
			p.drain(t)
			told := p.info(t, c)
			if told.Ca_state != stateOpen {
				t.Fatalf("the stack has not taken recovery back: it is in state %d", told.Ca_state)
			}
			if told.Snd_cwnd > alarm.Snd_ssthresh+1 || told.Snd_ssthresh > alarm.Snd_ssthresh {
				t.Errorf("after the D-SACK cwnd is %d and ssthresh %d, want no more than the reduced %d", told.Snd_cwnd,
					told.Snd_ssthresh, alarm.Snd_ssthresh)
			}
		})
	}
}
