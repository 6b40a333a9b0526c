package metrics

import (
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
