//go:build guest

//guest:kernel 6.12

package tcp

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// Our vegas and westwood stand in for the kernel's own: taken side by side
// through the same ACKs at the same moments, their windows are the same.
func TestGuestProgramsFollowTheKernelsModules(t *testing.T) {
	needTun(t)
	for _, program := range []string{tcpcc.Vegas, tcpcc.Westwood} {
		hwsim.Modprobe(t, "tcp_"+program)
	}
	t.Run(tcpcc.Vegas, vegasLikeTheModule)
	t.Run(tcpcc.Westwood, westwoodLikeTheModule)
}

// vegasLikeTheModule compares window and ssthresh after every round trip, in
// slow start, congestion avoidance and after a loss. Where the round trips that
// the two had lie on either side of one of the rule's bounds, their windows may
// part; each is then still held to the rule, by what it has itself, and the two are
// compared again when they have met.
func vegasLikeTheModule(t *testing.T) {
	all, loss := playedVegas(t, []string{tcpcc.Vegas, register(t, tcpcc.Vegas).Name})
	theirs, ours := all[0], all[1]
	theirs.check(t, loss)
	ours.check(t, loss)
	apart, same, parted := 0, 0, false
	for i := range theirs.turns {
		a, b := theirs.turns[i], ours.turns[i]
		if a.end == b.end && a.ssthresh == b.ssthresh {
			same++
		}
		was, before := apart, parted
		parted = a.end != b.end || a.ssthresh != b.ssthresh
		if apart = int(b.end) - int(a.end); apart == was && (apart != 0 || a.ssthresh == b.ssthresh) {
			continue
		}
		if i >= loss { // half of windows that had parted before
			if i > loss && b.end-b.ssthresh != a.end-a.ssthresh {
				t.Errorf("at turn %d, after the loss, the kernel's window is %d with ssthresh %d, ours %d with %d", i,
					a.end, a.ssthresh, b.end, b.ssthresh)
			}
			continue
		}
		if before {
			continue
		}
		if least, largest := theirs.may(i, min(a.low, b.low), max(a.high, b.high)); least == largest {
			t.Errorf("at turn %d the kernel's window is %d with ssthresh %d, ours %d with %d", i, a.end, a.ssthresh,
				b.end, b.ssthresh)
		}
	}
	t.Logf("the same after %d of %d turns\nthe kernel's:\n%s\nours:\n%s", same, len(theirs.turns), theirs, ours)
}

// westwoodLikeTheModule compares what a loss makes of the window, to the
// jiffies in which the module counts and we do not. What the estimate has to be
// TestWestwoodEstimatesByItsRule says, whose clock is not a slow guest's.
func westwoodLikeTheModule(t *testing.T) {
	all := playWestwood(t, []string{tcpcc.Westwood, register(t, tcpcc.Westwood).Name})
	theirs, ours := all[0], all[1]
	theirs.checkHalf(t)
	ours.checkHalf(t)
	if d := float64(max(theirs.ssthresh, ours.ssthresh) - min(theirs.ssthresh, ours.ssthresh)); d >
		mayDiffer(ours.want) || theirs.before != ours.before || theirs.cwnd != theirs.ssthresh ||
		ours.cwnd != ours.ssthresh {
		t.Errorf("the kernel's window goes from %d to %d with ssthresh %d, ours from %d to %d with %d",
			theirs.before, theirs.cwnd, theirs.ssthresh, ours.before, ours.cwnd, ours.ssthresh)
	}
}

func needTun(t *testing.T) {
	t.Helper()
	hwsim.NeedGuest(t)
	hwsim.Modprobe(t, "tun")
	if err := os.MkdirAll("/dev/net", 0o755); err != nil {
		t.Fatal(err)
	}
	// There is no udev; 10, 200 is the kernel's number for it (devices.txt).
	if err := unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))); err != nil &&
		!errors.Is(err, unix.EEXIST) {
		t.Fatal(err)
	}
}

// Every program is taken by this kernel too, grows its window in slow start by
// one for each ACK, and halves the flight at the third duplicate, but for those
// whose authors have it otherwise.
func TestGuestEveryProgramRuns(t *testing.T) {
	needTun(t)
	p := newPeer(t, false)
	const roundTrip, first = 50 * time.Millisecond, 10 // RFC 6928
	for _, program := range tcpcc.Programs() {
		grows, ssthresh := uint32(2*first), uint32(first)
		switch program {
		case tcpcc.Vegas1995: // grows in every other round trip, and loses a quarter
			grows, ssthresh = first, first-first/4
		case tcpcc.Westwood2001: // what its estimate gives
			ssthresh = 0
		}
		c := p.dial(t, register(t, program).Name, roundTrip)
		c.write(t, first)
		p.drain(t)
		time.Sleep(roundTrip)
		for range first {
			c.acked += mss
			p.give(t, p.ack(c, c.acked))
		}
		grown := p.info(t, c)
		if grown.Snd_cwnd != grows {
			t.Errorf("%s: cwnd is %d after %d ACKs in slow start, want %d", program, grown.Snd_cwnd, first, grows)
		}
		c.write(t, 2*first)
		p.drain(t)
		for range 3 {
			p.give(t, p.ack(c, c.acked))
		}
		p.drain(t)
		if lost := p.info(t, c); lost.Ca_state != stateRecovery || c.again != 1 ||
			ssthresh != 0 && lost.Snd_ssthresh != ssthresh {
			t.Errorf("%s: state %d, ssthresh %d and %d retransmissions at the third duplicate ACK, want recovery, "+
				"%d and 1",
				program, lost.Ca_state, lost.Snd_ssthresh, c.again, ssthresh)
		}
	}
}

// The probe finds the kernel's own modules, and what this kernel cannot do.
func TestGuestProbeNamesTheKernelThatCan(t *testing.T) {
	hwsim.NeedGuest(t)
	got := map[string]wire.Ability{}
	for _, a := range Probe(false) {
		got[a.Feature] = a
	}
	for feature, want := range map[string]wire.Ability{
		"variant vegas":    {How: "native"},
		"variant westwood": {How: "native"},
		"variant tahoe":    {How: "bpf"},
		"fixed_rto":        {How: "none", Needs: "Linux " + rtoMaxOption.String()},
	} {
		if a := got[feature]; a.How != want.How || a.Needs != want.Needs || (a.How == "none") != (a.Reason != "") {
			t.Errorf("%s: %+v, want %+v", feature, a, want)
		}
	}
}
