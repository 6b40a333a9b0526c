package metrics

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// An attempt without an amount says which of its records is missing, and one with
// an amount says nothing.
func TestWhatIsMissingForAnAmountIsNamed(t *testing.T) {
	trial := wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Streams: 1}}}
	edge := func(edge string, s, lateMs float64) wire.Record {
		return told("b", s, &wire.Edge{Edge: edge, LateMs: lateMs})
	}
	sample := func(s float64, edge string) wire.Record {
		return told("b", s, &wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: 1, State: "ESTABLISHED", Edge: edge,
			BytesReceived: 10})
	}
	begin, closing := edge("open", 0, 1), edge("close", 10, 1)
	end := told("b", 11, &wire.TrialState{State: "restoring"})
	for name, c := range map[string]struct {
		records []wire.Record
		want    string
	}{
		"whole":  {[]wire.Record{begin, sample(1, ""), sample(10, "close"), closing, end}, ""},
		"no end": {[]wire.Record{begin, sample(1, "")}, "the records of b end before the window's close"},
		"late": {[]wire.Record{begin, sample(1, ""), sample(10, "close"), edge("close", 10, 900), end},
			"b did not sample its sockets in time at both edges"},
		"a socket's end": {[]wire.Record{begin, sample(1, ""), closing, end},
			"of a socket of b nobody knows what it had"},
		"no edges at all": {[]wire.Record{sample(1, ""), end}, "of a socket of b nobody knows what it had"},
	} {
		at := measured(trial, c.records...)
		got := at.Unmeasured()
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if mb, _ := Measured(at.trial, at.Rows()); (mb != nil) != (got == "") {
			t.Errorf("%s: an amount: %t, and the reason for none: %q", name, mb != nil, got)
		}
	}
	udp := measured(wire.Trial{Traffic: []wire.Flow{{Name: "cbr", Kind: "iperf3_udp", From: "a", To: "b"}}})
	if got := udp.Unmeasured(); got != "it measures no flow of TCP; of UDP the receiver's kernel counts nothing" {
		t.Errorf("%q", got)
	}
}

func TestWhatOlderAgentsDoNotRecordIsNamed(t *testing.T) {
	trial := wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Streams: 1}}}
	var whole []wire.Record
	for _, n := range []string{"a", "b"} {
		whole = append(whole, told(n, 0, &wire.Edge{Edge: "open"}),
			told(n, 0, &wire.Provenance{TCP: &wire.TCPInForce{}}),
			told(n, 11, &wire.Iperf3{Flow: "bulk", Ended: wire.EndedItself}))
	}
	if got := measured(trial, whole...).Unjudged(); len(got) != 0 {
		t.Errorf("%q of agents that record all", got)
	}
	of := func(body wire.Body) func(wire.Record) bool {
		return func(r wire.Record) bool { return r.Node == "b" && r.Body.Kind() == body.Kind() }
	}
	lacks := map[wire.Body]string{&wire.Edge{}: "when it sampled", &wire.Provenance{}: "which TCP was in force"}
	for body, want := range lacks {
		got := measured(trial, slices.DeleteFunc(slices.Clone(whole), of(body))...).Unjudged()
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	got := measured(trial, append(whole, told("b", 11, &wire.Iperf3{Flow: "bulk"}))...).Unjudged()
	if !slices.Equal(got, []string{"how iperf3 ended"}) {
		t.Errorf("%q", got)
	}
}
