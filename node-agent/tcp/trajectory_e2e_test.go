//go:build e2e

package tcp

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// lossy runs a program against a receiver that loses chosen segments of the
// first windows; what the window does then is a matter of ACKs, not of time.
func lossy(t *testing.T, program string, sack bool, lost ...int) trace {
	t.Helper()
	return playLosses(t, register(t, program).Name, sack, 200, losing(lost...))
}

// halving checks the step into recovery: ssthresh is half of the flight, of
// which limited transmit's is no part (RFC 5681, equation 4 and section 3.2).
func (tr trace) halving(t *testing.T) (entry int) {
	t.Helper()
	entry = tr.into(t, stateRecovery, 0)
	if want := min(tr.points[entry-1].cwnd, tr.points[entry-1].unacked) / 2; tr.points[entry].ssthresh != want {
		t.Errorf("ssthresh is %d at the third duplicate ACK, want half the flight, %d\n%s", tr.points[entry].ssthresh,
			want, tr.around(entry-4, entry+3))
	}
	return entry
}

// Jacobson 1988, appendix; RFC 2001, section 3 without its fast recovery.
func TestTahoeFallsToOneSegment(t *testing.T) {
	tr := lossy(t, tcpcc.Tahoe, false, 40)
	entry := tr.halving(t)
	end := tr.into(t, stateOpen, entry)
	ssthresh := tr.points[entry].ssthresh
	for i := entry + 1; tr.points[i].ack == tr.points[entry].ack; i++ {
		if tr.points[i].cwnd != 1 {
			t.Fatalf("cwnd is %d, want 1 until the retransmission is acknowledged\n%s", tr.points[i].cwnd,
				tr.around(entry-2, i+2))
		}
	}
	// Slow start from one segment: each ACK of new data adds one, until ssthresh.
	for i := end; tr.points[i].cwnd < ssthresh; i++ {
		if tr.points[i+1].cwnd != tr.points[i].cwnd+1 {
			t.Fatalf("slow start goes from %d to %d at an ACK\n%s", tr.points[i].cwnd, tr.points[i+1].cwnd,
				tr.around(i-2, i+4))
		}
	}
	if tr.timeouts() != 0 {
		t.Errorf("%d timeouts", tr.timeouts())
	}
}

// RFC 2581, section 3.2: fast retransmit, then fast recovery at half the window.
func TestRenoHalves(t *testing.T) {
	tr := lossy(t, tcpcc.Reno, false, 40)
	entry := tr.halving(t)
	for i := entry + 1; i < len(tr.points) && tr.points[i].ack < 91; i++ {
		if p := tr.points[i]; p.cwnd != p.ssthresh {
			t.Fatalf("cwnd is %d in fast recovery, want ssthresh, %d\n%s", p.cwnd, p.ssthresh, tr.around(entry-2, i+2))
		}
	}
	if tr.timeouts() != 0 {
		t.Errorf("%d timeouts after one loss", tr.timeouts())
	}
}

// RFC 2581, section 3.2: the first new ACK ends fast recovery, so each further
// hole of a window costs another halving, and a timeout where fewer than three
// duplicates follow (Fall and Floyd 1996, section 3).
func TestRenoPaysForEachLossOfAWindow(t *testing.T) {
	large := lossy(t, tcpcc.Reno, false, 40, 43, 46)
	entry := large.halving(t)
	seen := []uint32{}
	for _, p := range large.points[entry:] {
		if len(seen) == 0 || seen[len(seen)-1] != p.ssthresh {
			seen = append(seen, p.ssthresh)
		}
	}
	first := large.points[entry].ssthresh
	if want := []uint32{first, first / 2, first / 4}; !slices.Equal(seen, want) || large.timeouts() > 0 {
		t.Errorf("three losses of one window took ssthresh through %v with %d timeouts, want %v and none", seen,
			large.timeouts(), want)
	}
	small := lossy(t, tcpcc.Reno, false, 10, 12, 14, 16)
	if small.timeouts() == 0 {
		t.Errorf("Reno came through four losses of a small window without a timeout\n%s", small.around(0, 80))
	}
	entry = small.into(t, stateRecovery, 0)
	loss := small.into(t, stateLoss, entry)
	if p := small.points[loss-1]; p.lost <= p.retrans {
		t.Errorf("before the timeout no hole was left unrepaired: %s", p)
	}
}

// RFC 6582, section 3.2: a partial ACK keeps recovery going and retransmits the
// next hole; one halving and no timeout for any number of losses of a window.
func TestNewRenoRepairsEachHoleByPartialACK(t *testing.T) {
	repairsInOneRecovery(t, tcpcc.NewReno, false)
}

// RFC 6675: with SACK, Reno repairs any number of losses of a window in one recovery, by the kernel's scoreboard.
func TestRenoWithSACKRepairsAWindowAtOnce(t *testing.T) {
	repairsInOneRecovery(t, tcpcc.Reno, true)
}

func repairsInOneRecovery(t *testing.T, program string, sack bool) {
	t.Helper()
	for name, lost := range map[string][]int{"large": {40, 43, 46}, "small": {10, 12, 14, 16}} {
		tr := lossy(t, program, sack, lost...)
		entry := tr.halving(t)
		ssthresh := tr.points[entry].ssthresh
		for i, p := range tr.points[entry+1:] {
			if p.ssthresh != ssthresh || p.state == stateRecovery && p.cwnd > max(ssthresh, p.unacked-p.sacked-p.lost+
				p.retrans) {
				t.Fatalf("%s: cwnd %d ssthresh %d in a recovery that began with ssthresh %d\n%s", name, p.cwnd,
					p.ssthresh, ssthresh, tr.around(entry-2, entry+i+4))
			}
		}
		if tr.timeouts() != 0 {
			t.Errorf("%s: %d timeouts", name, tr.timeouts())
		}
		again := 0
		for _, s := range tr.sent {
			if s.Times > 1 {
				again++
			}
		}
		if again != len(lost) {
			t.Errorf("%s: %d retransmissions of %d lost segments", name, again, len(lost))
		}
	}
}

// Mathis and Mahdavi 1996: in recovery a segment goes when awnd =
// snd.nxt - snd.fack + retran_data is below cwnd, and then one does.
func TestFackSendsByForwardMostSACK(t *testing.T) {
	tr := lossy(t, tcpcc.Fack, true, 40, 41, 42, 43, 50, 51, 52, 53)
	entry := tr.halving(t)
	ssthresh := tr.points[entry].ssthresh
	awnd := func(p point) uint32 { return p.unacked - (p.highest - p.ack) + p.retrans }
	for i := entry + 1; i < len(tr.points) && tr.points[i].state == stateRecovery; i++ {
		now, was := awnd(tr.points[i]), awnd(tr.points[i-1])
		if now > max(ssthresh, was) {
			t.Fatalf("awnd went from %d to %d, cwnd is %d\n%s", was, now, ssthresh, tr.around(entry-2, i+2))
		}
		if was < ssthresh && now < ssthresh-1 {
			t.Fatalf("awnd is %d, and nothing went though cwnd is %d\n%s", now, ssthresh, tr.around(entry-2, i+2))
		}
	}
	if tr.timeouts() != 0 || tr.points[len(tr.points)-1].ssthresh != ssthresh {
		t.Errorf("%d timeouts, ssthresh %d at the end, %d after one halving", tr.timeouts(),
			tr.points[len(tr.points)-1].ssthresh, ssthresh)
	}
	fewest := ^uint32(0)
	for _, p := range tr.points[entry:] {
		fewest = min(fewest, p.cwnd)
	}
	if fewest < ssthresh {
		t.Errorf("cwnd fell to %d, below ssthresh %d", fewest, ssthresh)
	}
}

// Mathis and Mahdavi 1996: FACK would begin recovery at once where
// snd.fack - snd.una is more than three segments, as it is at the first SACK
// after four losses in a row. When it begins is the kernel's to decide: at the
// third segment that was SACKed. What is said of FACK says so.
func TestFackBeginsRecoveryWhenTheKernelDoes(t *testing.T) {
	p := newPeer(t, true)
	startsWith(t, p, "40")
	const trip = 200 * time.Millisecond // a quarter of it is RACK's patience (RFC 8985, section 7.1)
	c := p.dial(t, register(t, tcpcc.Fack).Name, trip)
	c.write(t, 40)
	p.drain(t)
	time.Sleep(trip)
	const lost = 4 // the first ones
	for sacked := uint32(1); sacked <= 3; sacked++ {
		p.give(t, p.ack(c, 0, [2]uint32{lost * mss, (lost + sacked) * mss}))
		p.drain(t)
		info := p.info(t, c)
		if recovers := info.Ca_state == stateRecovery; recovers != (sacked == 3) {
			t.Errorf("with snd.fack %d segments beyond snd.una and %d of them SACKed, recovery: %t",
				lost+sacked, sacked, recovers)
		}
	}
	if c.again == 0 {
		t.Error("nothing was retransmitted")
	}
}
