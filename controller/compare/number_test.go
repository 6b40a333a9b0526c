package compare

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A number without one of its flows would be a smaller number, and not the same one.
// Throughputs are no sum: flows that send one after the other are no faster together.
func TestANumberIsOfAllItsFlows(t *testing.T) {
	trial := wire.Trial{DurationS: 10, Traffic: []wire.Flow{
		{Name: "a", Kind: "iperf3_tcp", DurationS: 5}, {Name: "b", Kind: "iperf3_tcp", StartS: 5},
		{Name: "c", Kind: "iperf3_udp"}, {Name: "d", Kind: "iperf3_tcp", Background: true}}}
	rows := func(flow string, mb, resent float64) []metrics.Row {
		return []metrics.Row{{Flow: flow, Name: metrics.TransferredMB, Value: mb},
			{Flow: flow, Name: metrics.ThroughputBps, Value: mb * 8e6 / 5},
			{Flow: flow, Name: metrics.RetransmitsName, Value: resent}}
	}
	one := rows("a", 2.5, 10)
	both := append(append(rows("d", 50, 7), one...), rows("b", 5, 20)...)
	for i, want := range map[int]float64{0: 6e6, 2: 30} {
		n := Numbers()[i]
		if v := n.of(trial, one); v != nil {
			t.Errorf("%s of one flow of two: %g", n.Name, *v)
		}
		if v := n.of(trial, both); v == nil || *v != want {
			t.Errorf("%s of both flows: %v, want %g", n.Name, v, want)
		}
	}
}

// What captures dropped is in the packet loss that they tell, and is said of the run whose they are.
func TestDropsOfCapturesAreSaid(t *testing.T) {
	table := Table{A: archive.RunInfo{Run: "road"}, B: archive.RunInfo{Run: "rehearsal"}}
	table.noteDrops([2][]pass{{{dropped: 400}, {}, {dropped: 100}}, {{}, {}}})
	want := []string{"for lack of room the kernels dropped 500 packets from captures of road, in 2 of 3 trials: its " +
		"packet loss may be too high by as much"}
	if !slices.Equal(table.Notes, want) {
		t.Errorf("notes %q, want %q", table.Notes, want)
	}
}
