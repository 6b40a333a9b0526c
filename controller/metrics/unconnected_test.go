package metrics

import (
	"math"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// While a socket waits for its connection the kernel's first window stands there, of which nothing is sent. It is in
// no mean, trace or timeline.
func TestAWindowIsThatOfAConnection(t *testing.T) {
	trial := wire.Trial{Sender: "a", Receiver: "b",
		Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Streams: 2}}}
	sample := func(stream int, s float64, state string, cwnd uint32, acked uint64) wire.Record {
		return told("a", s, &wire.TCPSample{Flow: "bulk", Stream: &stream, Cookie: uint64(1 + stream), State: state,
			CwndSegments: cwnd, BytesAcked: acked})
	}
	at := measured(trial, sample(0, 1, "SYN_SENT", 10, 0), sample(0, 2, "SYN_SENT", 1, 0),
		sample(1, 2, "SYN_SENT", 1, 0), // of a connection that never comes about
		sample(0, 3, "ESTABLISHED", 8, 1000), sample(0, 4, "CLOSE", 6, 2000), sample(1, 4, "CLOSE", 1, 0),
		told("a", 11, &wire.TrialState{State: "restoring"}), told("b", 11, &wire.TrialState{State: "restoring"}))
	if v := Value(at.Rows(), "bulk", cwndMean.name); v == nil || *v != 7 {
		t.Errorf("the mean window is %v, want 7", v)
	}
	if v := MovingCwnd(at.Traces(), []float64{2.5, 4.5}); v[0] != nil || v[1] == nil || *v[1] != 7 {
		t.Errorf("the moving mean is %v, want none and 7", v)
	}
	points := at.Timeline()
	if v := points[2*TickHz].CwndSegments; v != nil {
		t.Errorf("before the connection the window is %g", *v)
	}
	if v := points[3*TickHz].CwndSegments; v == nil || *v != 8 {
		t.Errorf("the connection's window is %v, want 8", v)
	}
}

// A receiver's samples count from its sockets' first moment to their end, connected or not: no throughput is drawn
// before the connection, and a socket that ended without a byte leaves that of the others.
func TestAReceiverHasNothingBeforeItsConnection(t *testing.T) {
	flow := wire.Flow{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Streams: 2}
	samples := func(stream int, from, to float64, state string, bytes float64) (out []wire.Record) {
		for s := from; s < to+0.05; s += 1.0 / TickHz {
			out = append(out, told("b", s, &wire.TCPSample{Flow: "bulk", Stream: &stream, Cookie: uint64(1 + stream),
				State: state, BytesReceived: uint64(bytes * s)}))
		}
		return out
	}
	throughput := func(s float64, records ...[]wire.Record) *float64 {
		at := measured(wire.Trial{Sender: "a", Receiver: "b", Traffic: []wire.Flow{flow}}, slices.Concat(records...)...)
		return at.Timeline()[int(s*TickHz)].ThroughputBps
	}
	asks := throughput(2.5, samples(0, 2, 2.9, "SYN_SENT", 0), samples(0, 3, 10, "ESTABLISHED", 1e5))
	if asks == nil || *asks != 0 {
		t.Errorf("before the connection the throughput is %v, want 0", asks)
	}
	ended := throughput(5, samples(0, 0, 10, "ESTABLISHED", 1000), samples(1, 1, 3, "ESTABLISHED", 0),
		samples(1, 3.1, 3.1, "CLOSE", 0))
	if ended == nil || math.Abs(*ended-8000) > 1 {
		t.Errorf("beside a socket that ended without a byte the throughput is %v, want 8000", ended)
	}
}
