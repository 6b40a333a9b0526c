package verdict

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func agentLate(node string, worstMs float64, suspendedMs *float64) wire.Record {
	return at(node, 10.1, &wire.Lateness{Source: "agent", WindowS: 10, Events: 200, WorstUs: worstMs * 1e3,
		SuspendedMs: suspendedMs})
}

func slewed(node string, ms float64) wire.Record {
	return at(node, 10.1, &wire.Lateness{Source: "agent", WindowS: 10, Events: 200, SlewedMs: &ms})
}

func still(node, flow, edge string, ms float64) wire.Record {
	return at(node, 10, &wire.TCPSample{Flow: flow, Stream: new(0), Edge: edge, State: "ESTABLISHED", StillMs: &ms})
}

// A node that stood still within the window, and an iperf3 that did nothing
// though it could, are no network.
func TestANodeThatStandsStillIsNoNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		records            []wire.Record
		provisional, final string
	}{
		"busy": {[]wire.Record{agentLate("car", 60, new(0.4)),
			agentLate("roadside", 249, new(0.0))}, "", ""},
		"the receiver frozen": {[]wire.Record{agentLate("roadside", 4000, new(0.0))}, "",
			"stalled: roadside stood still for 4000 ms within the window, limit 250"},
		"the initiator frozen": {[]wire.Record{agentLate("car", 251, nil)}, "stalled: car",
			"stalled: car stood still for 251 ms"},
		"both, one of them longer": {[]wire.Record{agentLate("car", 300, nil), agentLate("roadside", 1200, nil)},
			"stalled: car", "stalled: roadside stood still for 1200 ms"},
		"suspended": {[]wire.Record{agentLate("car", 2000, new(1950.0))}, "stalled: car was",
			"stalled: car was suspended for 1950 ms"},
		"a clock that chrony slews": {[]wire.Record{slewed("roadside", 769)}, "",
			"clock_slewed: on roadside: the boot clock was slewed by 769 ms within the window, limit 10"},
		"a clock that is kept":            {[]wire.Record{slewed("roadside", 5)}, "", ""},
		"a relay whose agent stood still": {[]wire.Record{agentLate("relay", 4000, new(0.0))}, "", ""},
		"a relay that slept": {[]wire.Record{agentLate("relay", 4000, new(4000.0))}, "",
			"stalled: relay was suspended for 4000 ms within the window"},
		"a relay whose clock is slewed, by which nothing is measured": {[]wire.Record{slewed("relay", 769)}, "", ""},
		"a sampler with a slow source": {[]wire.Record{at("car", 10,
			&wire.Lateness{Source: "sampler", WindowS: 10, WorstUs: 3e6})}, "", ""},
		"an iperf3 that reads": {[]wire.Record{still("roadside", "main", "close", 200)}, "", ""},
		"an iperf3 that does not": {[]wire.Record{still("roadside", "main", "close", 900)}, "",
			"generator: on roadside: iperf3 of flow main read nothing of what had come for 900 ms"},
		"one that gives nothing to send": {[]wire.Record{still("car", "main", "", 900)}, "generator: on car",
			"generator: on car: iperf3 of flow main gave nothing to send for 900 ms"},
		"one that its control group froze": {[]wire.Record{at("roadside", 12,
			with(&wire.Iperf3{Flow: "main", Side: "server"}, func(b *wire.Iperf3) {
				*b = *lived(wire.EndedItself, 11)
				b.Flow, b.Side, b.FrozenBootNs = "main", "server", new(openNs+3e9)
			}))}, "",
			"generator: on roadside: iperf3's server of flow main was frozen by its control group 3.0 s into " +
				"the window"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, records := relayed(c.records)
			failsFor(t, tr, records, c.provisional, c.final)
		})
	}
}

// relayed is an attempt with a relay, in which iperf3 lived, and with more records.
func relayed(more []wire.Record) (wire.Trial, []wire.Record) {
	tr, records := generated(lived(wire.EndedItself, 11), lived(wire.EndedItself, 11))
	tr.Relays = []string{"relay"}
	return tr, append(append(records, window("relay", nil)), more...)
}

// failsFor checks the beginning of the reason that an attempt fails for, as long
// as records may come and in the end; "": it is accepted.
func failsFor(t *testing.T, tr wire.Trial, records []wire.Record, provisional, final string) {
	t.Helper()
	for scope, want := range map[Scope]string{{}: provisional, {Final: true}: final} {
		v := Judge(tr, 2, records, scope)
		if want == "" && v.Outcome != wire.Accepted ||
			want != "" && (v.Outcome != wire.Failed || !strings.HasPrefix(v.Reason.String(), want)) {
			t.Errorf("final %t: %s %q, want %q", scope.Final, v.Outcome, v.Reason, want)
		}
	}
	sameOfWhatIsKept(t, tr, records)
}

// sameOfWhatIsKept checks that what a judge keeps of an attempt is enough for the
// same verdict.
func sameOfWhatIsKept(t *testing.T, tr wire.Trial, records []wire.Record) {
	t.Helper()
	kept := NewEvidence(tr)
	var some []wire.Record
	for _, r := range records {
		if kept.Needs(r) {
			some = append(some, r)
		}
	}
	some = append(some, kept.Rest()...)
	all, few := Judge(tr, 2, records, Scope{Final: true}), Judge(tr, 2, some, Scope{Final: true})
	if all.Reason != few.Reason {
		t.Errorf("of all records %q, of those that are kept %q", all.Reason, few.Reason)
	}
}

func TestTheStallLimitIsAShareOfLongWindows(t *testing.T) {
	for seconds, want := range map[float64]float64{0.9: math.Inf(1), 1: 250, 10: 250, 60: 600} {
		if got := StallMsMax(wire.Window{OpenBootNs: 5, CloseBootNs: 5 + int64(seconds*1e9)}); got != want {
			t.Errorf("window of %g s: %g ms, want %g", seconds, got, want)
		}
	}
}

// An iperf3 that somebody ended is the cause, also where its node stood still: no
// standstill ends it. One that only stood still did so with its node.
func TestWhatEndedIperf3GoesBeforeAStandstill(t *testing.T) {
	for name, c := range map[string]struct {
		server *wire.Iperf3
		more   wire.Record
		code   wire.ReasonCode
	}{
		"killed":   {lived(wire.EndedSignal, 3), agentLate("roadside", 260, nil), wire.ReasonGenerator},
		"standing": {lived(wire.EndedItself, 11), still("roadside", "main", "close", 900), wire.ReasonStalled},
	} {
		tr, records := generated(c.server, lived(wire.EndedItself, 11))
		v := Judge(tr, 2, append(records, agentLate("roadside", 260, nil), c.more), Scope{Final: true})
		if v.Outcome != wire.Failed || v.Reason.Code != c.code {
			t.Errorf("%s: %s %q, want %s", name, v.Outcome, v.Reason, c.code)
		}
	}
}
