package export

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A controller that was rebooted in an attempt compared the nodes' clocks with two boot clocks.
// The car and the roadside, whom it compared before and after that, go by the first; a relay,
// whom it reached only then, by the second.
func TestRecordsAreDatedByOneBootOfTheController(t *testing.T) {
	const second, wallNs, hours = int64(1e9), int64(1_790_000_000e9), int64(3 * 3600e9)
	compared := func(epoch, peer string, atNs, bootedNs int64) wire.Record {
		return wire.Record{Header: wire.Header{Node: controllerNode, Epoch: epoch, TBootNs: atNs - bootedNs},
			Body: &wire.Clock{Peer: peer, OffsetNs: 500*second + bootedNs, UncertaintyNs: 1e6,
				OwnWallOffsetNs: new(wallNs + bootedNs)}}
	}
	var records []wire.Record
	for _, node := range []string{"car", "roadside", "relay"} {
		for _, s := range []int64{600, 700} { // by its own clock
			records = append(records, wire.Record{Header: wire.Header{Node: node, TBootNs: s * second}})
		}
	}
	for _, node := range []string{"car", "roadside"} {
		records = append(records, compared("one", node, 90*second, 0), compared("two", node, 210*second, hours))
	}
	records = append(records, compared("two", "relay", 210*second, hours))
	c := clocksOf(records)
	for _, node := range []string{"car", "roadside", "relay"} {
		if got, ok := c.wall(node, 650*second); !ok || got != uint64(wallNs+150*second) {
			t.Errorf("%s: %d (%t), off by %d ns", node, got, ok, int64(got)-wallNs-150*second)
		}
	}
}

// A node that was switched off since an attempt was compared in another boot: that says nothing of its records then.
func TestRecordsOfAnotherBootThanWasComparedHaveNoCommonTime(t *testing.T) {
	const second, wallNs = int64(1e9), int64(1_790_000_000e9)
	records := []wire.Record{
		{Header: wire.Header{Node: "car", TBootNs: 4990 * second}, Body: &wire.Event{}},
		{Header: wire.Header{Node: "car", TBootNs: 5000 * second}, Body: &wire.Event{}},
		{Header: wire.Header{Node: controllerNode, Epoch: "one", TBootNs: 90_000 * second},
			Body: &wire.Clock{Peer: "car", OffsetNs: -89_700 * second, UncertaintyNs: 1e6,
				OwnWallOffsetNs: new(wallNs)}},
	}
	if at, ok := clocksOf(records).wall("car", 5000*second); ok {
		t.Errorf("it is dated %d", at)
	}
}
