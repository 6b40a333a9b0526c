package report

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func acceptedAt(trial int) attempt {
	return attempt{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Trial: wire.Trial{Number: trial},
		Verdict: &wire.Verdict{Outcome: wire.Accepted}, Mbps: new(1.0)}
}

// Each accepted trial without a result says what it lacks.
func TestWhyATrialHasNoResultIsTold(t *testing.T) {
	late, short := acceptedAt(3), acceptedAt(4)
	late.Mbps, late.unmeasured = nil, "flow bulk: b did not sample its sockets in time at both edges of the window"
	short.Mbps, short.unmeasured = nil, "flow bulk: the records of b end before the window's close"
	found, _ := withoutNumbers(&data{attempts: []attempt{acceptedAt(1), late, short}})
	if found == nil {
		t.Fatal("two trials without a result are no threat")
	}
	says(t, found.Text, "2 accepted trials", "3.1: flow bulk: b did not sample", "4.1: flow bulk: the records of b end")
}

func TestOlderAgentsAreTold(t *testing.T) {
	old := acceptedAt(2)
	old.unjudged = []string{"how iperf3 ended"}
	found, _ := olderAgents(&data{attempts: []attempt{acceptedAt(1), old}})
	if found == nil {
		t.Fatal("an agent that does not say how iperf3 ended is no threat")
	}
	says(t, found.Text, "how iperf3 ended (trials 2.1)")
	if found, clear := olderAgents(&data{attempts: []attempt{acceptedAt(1)}}); found != nil || clear != "" {
		t.Errorf("%+v %q", found, clear)
	}
}

func TestWhatCapturesLackIsTold(t *testing.T) {
	drops := func(trial int, n float64) metrics.Row {
		return metrics.Row{Trial: trial, Attempt: 1, Name: metrics.CaptureDropped, Value: n}
	}
	rejected := acceptedAt(3)
	rejected.Verdict = &wire.Verdict{Outcome: wire.Rejected}
	d := &data{attempts: []attempt{acceptedAt(1), acceptedAt(2), rejected},
		table: []metrics.Row{drops(1, 0), drops(2, 12), drops(3, 900)}}
	found, _ := captureDrops(d)
	if found == nil {
		t.Fatal("dropped packets are no threat")
	}
	says(t, found.Text, "dropped 12 packets from the captures of 1 of 2 accepted trials", "2.1: 12")
	d.table = d.table[:1]
	if found, clear := captureDrops(d); found != nil ||
		clear != "The kernels dropped nothing from the captures of 1 accepted trial." {
		t.Errorf("%+v %q", found, clear)
	}
	if found, clear := captureDrops(&data{}); found != nil || clear != "" {
		t.Errorf("without captures: %+v %q", found, clear)
	}
}

// Beside what routing sent stands who counted it.
func TestRoutingsCostSaysWhoCountedIt(t *testing.T) {
	own := topology.Cost{Nodes: 3, PacketsPerS: new(2.0), BytesPerS: new(100.0)}
	heard := attempt{heard: []metrics.Row{{Name: "nodes_captured", Value: 4}, {Name: "routing_packets_per_s", Value: 8},
		{Name: "routing_bytes_per_s", Value: 400}}}
	for _, c := range []struct {
		a    attempt
		cost topology.Cost
		want routingRow
	}{
		{attempt{}, own, routingRow{Packets: "2.00", Bytes: "100", CountedBy: "daemons of 3 nodes"}},
		{heard, topology.Cost{}, routingRow{Packets: "2.00", Bytes: "100", CountedBy: "captures of 4 nodes"}},
		{attempt{}, topology.Cost{}, routingRow{}},
	} {
		var got routingRow
		got.costs(c.a, c.cost)
		if got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
