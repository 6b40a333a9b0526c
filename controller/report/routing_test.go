package report

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/topology"
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
