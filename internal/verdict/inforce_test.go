package verdict

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A trial whose nodes or sockets had another TCP than the plan's measured
// another cell.
func TestATCPThatWasNotTheTrialsFailsIt(t *testing.T) {
	plan := trial()
	plan.TCP = wire.TCP{Variant: "tahoe", Classic: true, FixedRTO: true, RTOMinMs: new(700), RTOMaxMs: new(60_000),
		WindowPackets: new(8)}
	plan.Traffic = []wire.Flow{{Name: "bulk", From: "car", To: "roadside"}}
	made := wire.TCPInForce{Variant: "tahoe", Kernel: "tahoe_1x", FixedRTO: true, RTOMinUs: new(700_000),
		RTOMaxMs: new(60_000), WindowPackets: new(8)}
	sample := wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: 1, Congestion: "tahoe_1x", CwndSegments: 8,
		RTTUs: 20_000, RTOUs: 720_000}
	for name, c := range map[string]struct {
		change func(*wire.TCPInForce, *wire.TCPSample)
		node   string // of the sample
		want   string
	}{
		"as planned":      {func(*wire.TCPInForce, *wire.TCPSample) {}, "car", ""},
		"another variant": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.Variant = "cubic" }, "car", `node car has made variant "cubic" of "tahoe"`},
		"no fixed RTO": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.FixedRTO = false }, "car",
			"has a fixed RTO: false, wanted: true"},
		"no bound": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.WindowPackets = nil }, "car",
			"does not bound windows to 8 segments"},
		"another least RTO": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.RTOMinUs = new(200_000) }, "car",
			"has a least RTO of 200000 µs, wanted: 700 ms"},
		"no least RTO told": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.RTOMinUs = nil }, "car",
			"does not tell its least RTO, wanted: 700 ms"},
		"another largest RTO": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.RTOMaxMs = new(120_000) }, "car",
			"does not bound the RTO to 60000 ms"},
		"no largest RTO told": {func(f *wire.TCPInForce, _ *wire.TCPSample) { f.RTOMaxMs = nil }, "car",
			"does not bound the RTO to 60000 ms"},
		"too late a timer": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.RTOUs = 61_000_000 }, "car",
			"had an RTO of 61000000 µs, and the trial's largest is 60000 ms"},
		"the latest timer": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.RTOUs = 60_004_000 }, "car", ""},
		"too early a timer": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.RTOUs = 224_000 }, "car",
			"had an RTO of 224000 µs, and the trial's least is 700 ms"},
		"no round trip yet": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.RTTUs, s.RTOUs = 0, 224_000 }, "car",
			""},
		"another socket's": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.Congestion = "cubic" }, "car", `a socket of flow bulk on car runs "cubic"`},
		"one that connects": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.Congestion, s.State = "cubic", "SYN_SENT"
		}, "car", `a socket of flow bulk on car runs "cubic"`},
		"the receiver's own": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.Congestion = "cubic" }, "roadside", ""},
		"iperf3's control": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.Congestion, s.Stream = "cubic", nil },
			"car", ""},
		"too large a window": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.CwndSegments = 9 }, "car",
			"had a window of 9 segments, and the trial's is 8"},
		"not connected yet": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.CwndSegments, s.State = 10, "SYN_SENT"
		}, "car", ""},
		"never connected": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.CwndSegments, s.State = 10, "CLOSE"
		}, "car", ""},
		"ended with too large a window": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.CwndSegments, s.State, s.BytesAcked = 10, "CLOSE", 1
		}, "car", "had a window of 10 segments, and the trial's is 8"},
		"a window of all that there is": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.CwndSegments, s.MSSBytes = 1<<31-1, 1448
		}, "car", "had a window of 2147483647 segments, which no rule gives"},
		"register's contents": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.SsthreshSegments, s.MSSBytes = new(uint32(2183148773)), 1448
		}, "car", "had a slow-start threshold of 2183148773 segments, which no rule gives"},
		"a threshold of nothing": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.SsthreshSegments = new(uint32(0)) },
			"car", "had a slow-start threshold of 0 segments, which no rule gives"},
		"the largest threshold": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.SsthreshSegments, s.MSSBytes = new(uint32(1<<20)), 1024
		}, "car", ""},
		"taught by another connection": {func(_ *wire.TCPInForce, s *wire.TCPSample) {
			s.Reordering = new(uint32(12))
		}, "car", "takes a segment for lost at 12 duplicate ACKs, and classic TCP at 3"},
		"the third duplicate": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.Reordering = new(uint32(3)) }, "car",
			""},
		"nothing known of TCP": {func(_ *wire.TCPInForce, s *wire.TCPSample) { s.Congestion = "" }, "car", ""},
	} {
		f, s := made, sample
		c.change(&f, &s)
		records := append(good(), at("car", -1, &wire.Provenance{TCP: &f}), at(c.node, 2, &s),
			at("car", 12, &wire.Iperf3{Flow: "bulk", Side: "client"}),
			at("roadside", 12, &wire.Iperf3{Flow: "bulk", Side: "server"}))
		v := Judge(plan, 2, records, Scope{Final: true})
		if c.want == "" && v.Outcome != wire.Accepted ||
			c.want != "" && (v.Outcome != wire.Failed || !strings.HasPrefix(v.Reason.String(), "not_in_force: ") ||
				!strings.Contains(v.Reason.String(), c.want)) {
			t.Errorf("%s: %s %q, want %q", name, v.Outcome, v.Reason, c.want)
		}
	}
}

// A least RTO that the plan does not name, and its timer needs, is held against sockets too.
func TestALeastRTOThatATimerNeedsIsJudged(t *testing.T) {
	for _, c := range []struct {
		tcp   wire.TCP
		rtoUs uint32
		want  string
	}{
		{wire.TCP{Variant: "reno", FixedRTO: true}, 499_000, "the trial's least is 500 ms"},
		{wire.TCP{Variant: "reno", FixedRTO: true}, 500_000, ""},
		{wire.TCP{Variant: "reference"}, 999_000, "the trial's least is 1000 ms"},
		{wire.TCP{Variant: "reno"}, 201_000, ""},
	} {
		plan := trial()
		plan.TCP = c.tcp
		plan.Traffic = []wire.Flow{{Name: "bulk", From: "car", To: "roadside"}}
		sample := at("car", 2, &wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: 1, RTTUs: 20_000, RTOUs: c.rtoUs})
		made := &wire.TCPInForce{Variant: c.tcp.Variant, FixedRTO: c.tcp.FixedRTO}
		v := Judge(plan, 2, append(good(), at("car", -1, &wire.Provenance{TCP: made}), sample,
			at("car", 12, &wire.Iperf3{Flow: "bulk", Side: "client"}),
			at("roadside", 12, &wire.Iperf3{Flow: "bulk", Side: "server"})), Scope{Final: true})
		if (c.want == "") != (v.Outcome == wire.Accepted) || !strings.Contains(v.Reason.String(), c.want) {
			t.Errorf("%+v, RTO %d µs: %s %q, want %q", c.tcp, c.rtoUs, v.Outcome, v.Reason, c.want)
		}
	}
}

// An archive of a version that did not tell the least RTO is judged as it was.
func TestAnUnreportedLeastRTOIsNoFault(t *testing.T) {
	plan := trial()
	plan.TCP = wire.TCP{Variant: "reference"}
	v := Judge(plan, 2, append(good(), at("car", -1, &wire.Provenance{TCP: &wire.TCPInForce{Variant: "reference"}})),
		Scope{Final: true})
	if v.Outcome != wire.Accepted {
		t.Errorf("%s %q", v.Outcome, v.Reason)
	}
}

// A route's own least RTO goes before the one that the profile sets.
func TestARouteWithALeastRTOOfItsOwnIsNotTheProfiles(t *testing.T) {
	plan := trial()
	for variant, sets := range map[string]bool{"reference": true, "newreno": false} {
		plan.TCP = wire.TCP{Variant: variant}
		made := &wire.TCPInForce{Variant: variant, Notes: []string{tcpcc.RouteRTOMinNote}}
		v := Judge(plan, 2, append(good(), at("car", -1, &wire.Provenance{TCP: made})), Scope{Final: true})
		if (v.Outcome == wire.Failed) != sets ||
			sets && !strings.Contains(v.Reason.String(), "a route with a least RTO of its own, wanted: 1000 ms") {
			t.Errorf("%s: %s %q", variant, v.Outcome, v.Reason)
		}
	}
}

// Of many samples a verdict keeps those that can tell it something, among them
// every one that speaks against the trial.
func TestEvidence(t *testing.T) {
	plan := wire.Trial{TCP: wire.TCP{WindowPackets: new(8), RTOMinMs: new(700)}}
	e, kept := NewEvidence(plan), 0
	sample := func(congestion string, cookie uint64, cwnd uint32) wire.Record {
		return at("car", 1, &wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: cookie, Congestion: congestion,
			CwndSegments: cwnd})
	}
	early := sample("tahoe_1x", 1, 4)
	early.Body.(*wire.TCPSample).RTTUs = 1
	absurd := sample("tahoe_1x", 1, 4)
	absurd.Body.(*wire.TCPSample).SsthreshSegments = new(uint32(1<<31 + 1))
	for range 1000 {
		for _, r := range []wire.Record{absurd, early, sample("tahoe_1x", 1, 4), sample("tahoe_1x", 2, 8),
			sample("tahoe_1x", 2, 9), sample("cubic", 2, 9)} {
			if e.Needs(r) {
				kept++
			}
		}
	}
	if kept != 6 || !e.Needs(window("car", nil)) || e.Needs(at("car", 1, &wire.TCPEvent{})) ||
		e.Needs(at("car", 1, &wire.TCPSample{})) {
		t.Errorf("%d of 6000 samples kept, want 6", kept)
	}
}

// Without root, iperf3 chooses the congestion control of a socket that has connected. Until
// then it has sent its cookie at most, and of that nothing is concluded; of what it runs
// after, everything, also if the verdict sees no more than its evidence.
func TestWithoutRootASocketRunsTheTrialsTCPOnceItSends(t *testing.T) {
	plan := wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "car", To: "roadside"}},
		TCP: wire.TCP{Variant: "reno"}}
	type seen struct {
		state, congestion     string
		sent, repeated, acked uint64
		sentIsUnknown         bool
	}
	for name, c := range map[string]struct {
		root    bool
		samples []seen
		wrong   bool
	}{
		"as planned": {samples: []seen{{state: "SYN_SENT", congestion: "cubic"},
			{state: "ESTABLISHED", congestion: "cubic", sent: 37, acked: 38},
			{state: "ESTABLISHED", congestion: "reno", sent: 1e6, acked: 9e5}}},
		"its cookie twice": {samples: []seen{{state: "ESTABLISHED", congestion: "cubic", sent: 74, repeated: 37}}},
		"a server in reverse": {samples: []seen{{state: "ESTABLISHED", congestion: "cubic"},
			{state: "ESTABLISHED", congestion: "reno", sent: 1e6}}},
		"one that never came about": {samples: []seen{{state: "SYN_SENT", congestion: "cubic"},
			{state: "CLOSE", congestion: "cubic"}}},
		"another after it connected": {wrong: true, samples: []seen{{state: "SYN_SENT", congestion: "cubic"},
			{state: "ESTABLISHED", congestion: "cubic", sent: 1e6, acked: 9e5}}},
		"another, heard of at its end": {wrong: true, samples: []seen{{state: "SYN_SENT", congestion: "cubic"},
			{state: "CLOSE", congestion: "cubic", sent: 1e6, acked: 9e5}}},
		"nothing of it acknowledged": {wrong: true, samples: []seen{
			{state: "ESTABLISHED", congestion: "cubic", sent: 1e6, acked: 38}}},
		"a kernel that does not count": {wrong: true, samples: []seen{
			{state: "ESTABLISHED", congestion: "cubic", sentIsUnknown: true, acked: 38},
			{state: "ESTABLISHED", congestion: "cubic", sentIsUnknown: true, acked: 5000}}},
		"a kernel that does not count, early": {samples: []seen{
			{state: "ESTABLISHED", congestion: "cubic", sentIsUnknown: true, acked: 38}}},
		"with root": {root: true, wrong: true, samples: []seen{{state: "SYN_SENT", congestion: "cubic"}}},
	} {
		p := &wire.Provenance{TCP: &wire.TCPInForce{Variant: "reno", Kernel: "reno"}, Privileges: wire.NoPrivileges}
		if c.root {
			p.Privileges = ""
		}
		records := []wire.Record{at("car", -1, p)}
		for _, s := range c.samples {
			sample := &wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: 7, State: s.state,
				Congestion: s.congestion, BytesAcked: s.acked}
			if !s.sentIsUnknown {
				sample.BytesSent, sample.BytesRetrans = new(s.sent), new(s.repeated)
			}
			records = append(records, at("car", 1, sample))
		}
		e := NewEvidence(plan)
		var kept []wire.Record
		for _, r := range records {
			if e.Needs(r) {
				kept = append(kept, r)
			}
		}
		if got := notInForce(plan, records); (got.Code != "") != c.wrong {
			t.Errorf("%s: %v", name, got)
		}
		if got := notInForce(plan, kept); (got.Code != "") != c.wrong {
			t.Errorf("%s, by its evidence: %v", name, got)
		}
	}
}
