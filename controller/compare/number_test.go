package compare

import (
	"slices"
	"strings"
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

// Packet loss is told over all packets, as in the report: a flow that sent nothing has no part in it.
func TestLossIsOfAllPackets(t *testing.T) {
	trial := wire.Trial{DurationS: 10, Traffic: []wire.Flow{{Name: "a", Kind: "iperf3_tcp"}, {Name: "b",
		Kind: "iperf3_tcp"}}}
	number := Numbers()[1]
	row := func(flow, name string, v float64) metrics.Row { return metrics.Row{Flow: flow, Name: name, Value: v} }
	rows := []metrics.Row{row("a", metrics.PacketsSent, 39600), row("a", number.Name, 1),
		row("b", metrics.PacketsSent, 400), row("b", number.Name, 51)}
	if v := number.of(trial, rows); v == nil || *v != 1.5 {
		t.Errorf("loss of 396 of 39600 and 204 of 400 packets: %v %%, want 1.5", v)
	}
	rows = append(rows[:2], row("b", metrics.PacketsSent, 0))
	if v := number.of(trial, rows); v == nil || *v != 1 {
		t.Errorf("beside a flow that never connected: %v %%, want 1", v)
	}
	if v := number.of(trial, rows[:2]); v != nil {
		t.Errorf("beside a flow of which nothing is known: %g %%", *v)
	}
}

// By which version of Fieldmesh a run was driven, and by which clock, may make all the difference.
func TestOtherVersionsAndClocksAreSaid(t *testing.T) {
	virtual := &archive.Clock{Kind: archive.ClockVirtual, Kernel: "6.12.1", CallNs: 500}
	for want, b := range map[string]archive.RunInfo{
		"":                                    {Run: "b", Version: "0.1.0"},
		"different versions of Fieldmesh":     {Run: "b", Version: "0.2.0"},
		"time was real in a and virtual in b": {Run: "b", Version: "0.1.0", Clock: virtual},
	} {
		table := Table{A: archive.RunInfo{Run: "a", Version: "0.1.0", Clock: &archive.Clock{Kind: "real"}}, B: b}
		table.note()
		notes := strings.Join(table.Notes, "\n")
		told := strings.Contains(notes, "version") || strings.Contains(notes, "virtual")
		if told != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%q, want %q", notes, want)
		}
		if b.Version == "0.2.0" && !strings.Contains(notes, "0.1.0 and 0.2.0") {
			t.Errorf("%q names no versions", notes)
		}
	}
}
