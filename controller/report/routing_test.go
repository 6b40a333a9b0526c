package report

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Beside what routing sent stands who counted it.
func TestRoutingsCostSaysWhoCountedIt(t *testing.T) {
	own := topology.Cost{Nodes: 3, PacketsPerS: new(2.0), BytesPerS: new(100.0)}
	heard := evidence.Attempt{Heard: []metrics.Row{{Name: "nodes_captured", Value: 4},
		{Name: "routing_packets_per_s", Value: 8},
		{Name: "routing_bytes_per_s", Value: 400}}}
	for _, c := range []struct {
		a    evidence.Attempt
		cost topology.Cost
		want routingRow
	}{
		{evidence.Attempt{}, own, routingRow{Packets: "2.00", Bytes: "100", CountedBy: "daemons of 3 nodes"}},
		{heard, topology.Cost{}, routingRow{Packets: "2.00", Bytes: "100", CountedBy: "captures of 4 nodes"}},
		{evidence.Attempt{}, topology.Cost{}, routingRow{}},
	} {
		var got routingRow
		got.costs(c.a, c.cost)
		if got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// Of an even number of discoveries the median is the mean of the middle two, as in metrics.csv.
func TestDiscoverysMedian(t *testing.T) {
	p := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"},
		{Name: "b", MeshPrefix: "10.0.0.2/24"}}}
	trial := wire.Trial{Sender: "a", Receiver: "b", DurationS: 10, Routing: wire.Routing{Protocol: "aodv"}}
	at := func(node string, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Kind: b.Kind(), Node: node, TBootNs: 5e9}, Body: b}
	}
	records := []wire.Record{at("a", &wire.Window{OpenBootNs: 1e9, CloseBootNs: 11e9}),
		at("a", &wire.RouteChange{Action: "present", AtBootNs: 5e9, Destination: "10.0.0.2/32"})}
	for _, us := range []float64{20e3, 10e3} {
		records = append(records, at("a", &wire.RoutingEvent{Report: "discovery_us", AtBootNs: 5e9, Value: &us}))
	}
	row := routingOf(evidence.Attempt{Trial: trial, Mesh: topology.Read(p, trial, records)}, 1)
	if row.Discovery != "15 ms (of 2)" {
		t.Errorf("discovery took %q", row.Discovery)
	}
}

// A whole way may have been none where the field did not tell all its losses; that there was none is certain.
func TestTheLongestWayIsKnownOrAbsent(t *testing.T) {
	p := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"},
		{Name: "b", MeshPrefix: "10.0.0.2/24"}}}
	trial := wire.Trial{Sender: "a", Receiver: "b", Initiator: "a", DurationS: 10,
		Routing: wire.Routing{Protocol: "aodv"}}
	for _, c := range []struct {
		untold uint64
		goneS  int64 // the way is deleted
		want   string
	}{{0, 7, "a → b (1 hops)"}, {5, 7, unknown}, {0, 2, "a → no route"}, {5, 2, "a → no route"}} {
		at := func(node string, s int64, b wire.Body) wire.Record {
			return wire.Record{Header: wire.Header{Kind: b.Kind(), Node: node, TBootNs: s * 1e9}, Body: b}
		}
		change := func(action string, s int64) wire.Record {
			return at("a", s, &wire.RouteChange{Action: action, AtBootNs: s * 1e9, Destination: "10.0.0.2/32",
				NextHops: []string{"10.0.0.2"}})
		}
		m := topology.Read(p, trial, []wire.Record{at("a", 11, &wire.Window{OpenBootNs: 1e9, CloseBootNs: 11e9}),
			change("present", 0), change("delete", 1+c.goneS), at("field", 11, &wire.MediumCount{Of: "b",
				LossesUntold: c.untold})})
		if got := mostly(m); got != c.want {
			t.Errorf("%d losses untold, a way for %d of 10 s: %q, want %q", c.untold, c.goneS, got, c.want)
		}
	}
}
