package compare

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A sum without one of its flows would be a smaller number, and not the same one.
func TestANumberIsOfAllItsFlows(t *testing.T) {
	trial := wire.Trial{Traffic: []wire.Flow{
		{Name: "a", Kind: "iperf3_tcp"}, {Name: "b", Kind: "iperf3_tcp"},
		{Name: "c", Kind: "iperf3_udp"}, {Name: "d", Kind: "iperf3_tcp", Background: true}}}
	row := func(flow string, v float64) metrics.Row {
		return metrics.Row{Flow: flow, Name: metrics.ThroughputBps, Value: v}
	}
	throughput := Numbers()[0]
	if v := throughput.of(trial, []metrics.Row{row("a", 1e6)}); v != nil {
		t.Errorf("%g of one flow of two", *v)
	}
	if v := throughput.of(trial, []metrics.Row{row("a", 1e6), row("b", 2e6), row("d", 8e6)}); v == nil || *v != 3e6 {
		t.Errorf("sum of both flows: %v, want 3e6", v)
	}
}
