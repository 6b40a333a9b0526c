package threats

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What disturbed accepted attempts is told with its numbers.
func TestWhatDisturbedAttemptsIsTold(t *testing.T) {
	of := func(outcome wire.Outcome, numbers map[string]float64) evidence.Attempt {
		a := evidence.Attempt{Verdict: &wire.Verdict{Outcome: outcome}, Mbps: new(2.0),
			Trial: wire.Trial{DurationS: 10, Traffic: []wire.Flow{{Name: "main"}}}}
		for name, v := range numbers {
			flow := ""
			if name == metrics.TransferredMB || name == metrics.TransferredUnsureMB {
				flow = "main"
			}
			a.Rows = append(a.Rows, metrics.Row{Flow: flow, Name: name, Value: v})
		}
		return a
	}
	quiet := of(wire.Accepted, map[string]float64{metrics.RefusedPackets: 0, metrics.FilteredPackets: 0,
		metrics.SocketsLeft: 0, metrics.StandstillMaxMs: 12, metrics.TransferredMB: 2,
		metrics.TransferredUnsureMB: 0.02})
	flooded := of(wire.Accepted, map[string]float64{metrics.RefusedPackets: 41_000, metrics.FilteredPackets: 3,
		metrics.SocketsLeft: 0, metrics.StandstillMaxMs: 180, metrics.TransferredMB: 2,
		metrics.TransferredUnsureMB: 1.2})
	failed := of(wire.Failed, map[string]float64{metrics.RefusedPackets: 9, metrics.FilteredPackets: 9,
		metrics.SocketsLeft: 1, metrics.StandstillMaxMs: 4000})
	still := of(wire.Accepted, map[string]float64{metrics.StandstillMaxMs: 4000})
	still.Trial.DurationS = 30
	unknown := of(wire.Accepted, nil)
	for name, c := range map[string]struct {
		attempts []evidence.Attempt
		check    Check
		threat   string // in the text; empty: none
		clear    string
	}{
		"quiet": {[]evidence.Attempt{quiet, failed}, strangersPackets, "",
			"Nothing came to the flows' ports from elsewhere."},
		"flooded": {[]evidence.Attempt{quiet, flooded}, strangersPackets,
			"41000 packets from other addresses were refused in 1 accepted trial, at most 41000 in one", ""},
		"no admission": {[]evidence.Attempt{unknown}, strangersPackets, "", ""},
		"filtered":     {[]evidence.Attempt{quiet, flooded, failed}, ownFilters, "3 packets in 1 accepted trial", ""},
		"not filtered": {[]evidence.Attempt{quiet}, ownFilters, "", ""},
		"sockets left": {[]evidence.Attempt{quiet, failed}, socketsLeft,
			"In 1 attempt a node could not end all connections", ""},
		"no sockets left": {[]evidence.Attempt{quiet, flooded}, socketsLeft, "", ""},
		"sure":            {[]evidence.Attempt{quiet}, unsureAmounts, "", "At most 1.0 % of an amount came between"},
		"a late edge": {[]evidence.Attempt{quiet, flooded}, unsureAmounts,
			"At most 60.0 % of an amount came between the last sample before an edge of its window and the edge's " +
				"own; more than 5 % in 1 amount.", ""},
		"of older versions": {[]evidence.Attempt{unknown}, unsureAmounts, "", ""},
		"standstills": {[]evidence.Attempt{quiet, flooded, failed}, standstills, "",
			"longer than 180 ms in the window"},
		"a relay's standstill": {[]evidence.Attempt{quiet, still}, standstills,
			"1 accepted trial an agent did not run for longer than one at an end of a flow may: at most for 4000", ""},
	} {
		got, clear := c.check(&evidence.Run{Attempts: c.attempts})
		if (got != nil) != (c.threat != "") || got != nil && !strings.Contains(got.Text, c.threat) ||
			!strings.Contains(clear, c.clear) || (c.clear == "") != (clear == "") {
			t.Errorf("%s: %+v, %q", name, got, clear)
		}
	}
}
