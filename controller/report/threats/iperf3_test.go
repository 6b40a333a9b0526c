package threats

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Flows in which iperf3 left no total are those in which something happened:
// the comparison names them.
func TestFlowsWithoutIperf3sTotalAreNamed(t *testing.T) {
	flow := func(kernel float64, own ...float64) evidence.Attempt {
		a := evidence.Attempt{Verdict: &wire.Verdict{Outcome: wire.Accepted}, Mbps: &kernel,
			Trial: wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp"}}},
			Rows:  []metrics.Row{{Flow: "bulk", Name: metrics.TransferredMB, Value: kernel}}}
		for _, mb := range own {
			a.Rows = append(a.Rows, metrics.Row{Flow: "bulk", Name: metrics.Iperf3MB, Value: mb})
		}
		return a
	}
	of := func(all ...evidence.Attempt) *evidence.Run { return &evidence.Run{Attempts: all} }
	threat, clear := iperf3Differs(of(flow(8.8, 8.9), flow(4.64), flow(0)))
	if threat != nil {
		t.Errorf("a threat: %+v", threat)
	}
	says(t, clear, "at most 1.1 % (1 flows have both", "Of 2 flows iperf3 left no amount", "4.64 MB at most")
	if threat, _ := iperf3Differs(of(flow(8, 9), flow(4.64))); threat == nil {
		t.Error("12 % apart are no threat")
	} else {
		says(t, threat.Text, "12.5 %", "Of 1 flow iperf3 left no amount")
	}
	if _, clear := iperf3Differs(of(flow(0))); !strings.Contains(clear, "Of 1 flow") {
		t.Errorf("none has both: %q", clear)
	}
}
