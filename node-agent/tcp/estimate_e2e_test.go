//go:build e2e || guest

package tcp

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A bottleneck of 4 Mbit/s and 50 ms: with 1000-byte segments (1040 on the
// wire) 24 of them fill the path without a queue.
const (
	bottleneckBps = 4e6
	bottleneckWay = 25 * time.Millisecond
	pathSegments  = bottleneckBps * 2 * 0.025 / (8 * 1040)
)

// bottleneck is a long transfer over it.
func bottleneck(congestion string, segments int, drop func(testnet.Segment) bool) experiment {
	return experiment{congestion: congestion, segments: segments, patience: 30 * time.Second,
		path: testnet.PathConfig{Delay: bottleneckWay, RateBps: bottleneckBps, Drop: drop}}
}

// Brakmo and Peterson 1995: cwnd is moved by one segment a round
// trip to keep between alpha and beta segments queued; so a Vegas connection
// alone holds a backlog of that, where Reno's grows until something is lost.
func TestVegasKeepsItsBacklogBetweenAlphaAndBeta(t *testing.T) {
	testnet.Need(t)
	t.Parallel()             // it sleeps
	const alpha, beta = 2, 4 // vegas.bpf.c
	backlog := func(tr trace) []int {
		var out []int
		for _, s := range tr.sent[len(tr.sent)*2/3:] { // slow start's queue has gone by then
			out = append(out, s.Backlog)
		}
		slices.Sort(out)
		return out
	}
	// A segment takes 40 ms here, and the path five of them without a queue: by
	// that a machine's being late for some milliseconds, which Vegas takes for a
	// queue, is a small part of a segment.
	slow := func(congestion string, segments int) trace {
		x := bottleneck(congestion, segments, nil)
		x.path.RateBps, x.path.Delay = bottleneckBps/20, 4*bottleneckWay
		x.patience = time.Minute
		return x.run(t)
	}
	vegas := slow(register(t, tcpcc.Vegas).Name, 300)
	queued := backlog(vegas)
	low, high := queued[len(queued)/20], queued[len(queued)*19/20]
	t.Logf("backlog: median %d, %d to %d in nine of ten; %d timeouts", queued[len(queued)/2], low, high,
		vegas.timeouts())
	// One segment on either side: the queue is seen when a segment comes to it,
	// and cwnd is a whole number.
	if low < alpha-1 || high > beta+1 {
		t.Errorf("the backlog is %d to %d segments in nine of ten, want between alpha, %d, and beta, %d", low, high,
			alpha, beta)
	}
	reno := backlog(slow("reno", 150))
	if reno[len(reno)/2] < 3*beta {
		t.Errorf("Reno's median backlog is %d: the path would not tell Vegas from it", reno[len(reno)/2])
	}
}

// Mascolo and others 2004: after a loss ssthresh = bandwidth x least
// round trip, which is what fills the path, whatever the window had become;
// Reno's is half of the flight.
func TestWestwoodSetsSsthreshFromItsBandwidthEstimate(t *testing.T) {
	// The receiver's buffer holds the flight at several times what fills the
	// path, and the loss comes after some twenty samples of bandwidth.
	const lossAt = 2200
	x := bottleneck(register(t, tcpcc.Westwood).Name, 2700, losing(lossAt))
	x.receiver = map[string]string{"tcp_rmem": "4096 300000 300000"}
	tr := x.run(t)
	entry := tr.into(t, stateRecovery, 0)
	end := tr.into(t, stateOpen, entry)
	before, after := tr.points[entry-1], tr.points[end]
	t.Logf("flight %d before the loss, ssthresh %d after it, path %.0f", before.unacked, after.ssthresh, pathSegments)
	// The estimate is a filtered one, and on a busy machine the least round
	// trip is longer than the path's: a third below to a half above.
	from := tr.points[entry/2]
	carried := float64(before.ack-from.ack) / before.at.Sub(from.at).Seconds() * 2 * bottleneckWay.Seconds()
	if s := float64(after.ssthresh); s < 0.66*min(pathSegments, carried) || s > 1.5*pathSegments {
		t.Errorf("ssthresh is %d after a loss, want about %.0f segments, bandwidth x least round trip", after.ssthresh,
			pathSegments)
	}
	if float64(before.unacked) < 3.2*pathSegments {
		t.Errorf("the flight was %d segments: half of it would not be distinguished from the estimate", before.unacked)
	}
	if after.cwnd > after.ssthresh+1 {
		t.Errorf("cwnd is %d after recovery, ssthresh %d", after.cwnd, after.ssthresh)
	}
}
