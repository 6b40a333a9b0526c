package metrics

import (
	"math"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestTracesAreOfTheSendersConnections(t *testing.T) {
	const open = 1_000_000_000_000
	at := Attempt{trial: wire.Trial{Sender: "car", Receiver: "roadside",
		Traffic: []wire.Flow{{Name: "main", From: "car", To: "roadside"},
			{Name: "cross", From: "car", Background: true}, {Name: "back", From: "roadside", To: "car"}}}}
	add := func(node string, s float64, b wire.Body) {
		at.records = append(at.records, wire.Record{Header: wire.Header{Node: node, TBootNs: open + int64(s*1e9)},
			Body: b})
	}
	sample := func(flow string, stream int, cwnd uint32) *wire.TCPSample {
		return &wire.TCPSample{Flow: flow, Stream: &stream, Cookie: uint64(10 + stream), CwndSegments: cwnd,
			RTTUs: 2000, BytesAcked: 3_000_000}
	}
	add("car", 0, &wire.Window{OpenBootNs: open, CloseBootNs: open + 10e9})
	add("car", 1, sample("main", 1, 20))
	add("car", 1, sample("main", 0, 10))
	add("car", 2, &wire.TCPEvent{Flow: "main", Stream: new(0), Cookie: 10, Event: "rto", Count: 2,
		FromBootNs: new(int64(open + 1.5e9))})
	add("car", -1, sample("main", 0, 99)) // before the window
	add("car", 11, sample("main", 0, 99)) // after it
	add("roadside", 2, sample("main", 0, 99))
	add("car", 2, sample("cross", 5, 99))
	add("car", 2, sample("back", 7, 99)) // a socket that receives: its window says nothing
	got := at.Traces()
	if len(got) != 2 || got[0].Stream != 0 || got[1].Stream != 1 || len(got[0].Points) != 1 || len(got[0].Marks) != 1 {
		t.Fatalf("%+v", got)
	}
	p, m := got[0].Points[0], got[0].Marks[0]
	if p.S != 1 || p.CwndSegments != 10 || *p.RTTMs != 2 || p.AckedMB != 3 || p.SsthreshSegments != nil {
		t.Errorf("%+v", p)
	}
	if m.S != 2 || *m.FromS != 1.5 || m.Event != "rto" || m.Count != 2 {
		t.Errorf("%+v", m)
	}
	if (Attempt{trial: at.trial}).Traces() != nil {
		t.Error("traces without a window")
	}
}

func TestMovingCwndIsTheMeanOfFiveSeconds(t *testing.T) {
	var trace Trace
	for i := range 100 { // 10 Hz; 10 segments for 4 s, then 20
		v := 10.0
		if i >= 40 {
			v = 20
		}
		trace.Points = append(trace.Points, TracePoint{S: float64(i) / 10, CwndSegments: v})
	}
	got := MovingCwnd([]Trace{trace}, []float64{-1, 0, 3.9, 6.45, 9.9, 20})
	for i, want := range []float64{math.NaN(), 10, 10, 15, 20, math.NaN()} {
		switch {
		case math.IsNaN(want) != (got[i] == nil):
			t.Errorf("moment %d: %v, want %g", i, got[i], want)
		case got[i] != nil && math.Abs(*got[i]-want) > 1e-9:
			t.Errorf("moment %d: %g, want %g", i, *got[i], want)
		}
	}
}
