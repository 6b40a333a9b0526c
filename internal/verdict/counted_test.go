package verdict

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What was acknowledged to the sender was received. Where the receiver counted less, its counts are not the flow's.
func TestWhatWasAcknowledgedIsCounted(t *testing.T) {
	sample := func(node string, s float64, stream int, acked, received uint64) wire.Record {
		return at(node, s, &wire.TCPSample{Flow: "main", Cookie: uint64(stream + 1), Stream: &stream, BytesAcked: acked,
			BytesReceived: received})
	}
	closes := func(stream int, received uint64) wire.Record {
		r := sample("roadside", 10.002, stream, 0, received)
		r.Body.(*wire.TCPSample).Edge = "close"
		return r
	}
	sent := []wire.Record{sample("car", 9.4, 0, 6_000_000, 0), sample("car", 9.4, 1, 4_000_000, 0),
		sample("car", 9.9, 0, 9_000_000, 0)} // the last is within the half second
	for name, c := range map[string]struct {
		received []wire.Record
		final    string
	}{
		"all of it":        {[]wire.Record{closes(0, 6_100_000), closes(1, 4_100_000)}, ""},
		"but a hundredth":  {[]wire.Record{closes(0, 6_000_000), closes(1, 3_901_000)}, ""},
		"an earlier count": {[]wire.Record{closes(0, 6_000_000), sample("roadside", 5, 1, 0, 4_000_000)}, ""},
		"less": {[]wire.Record{closes(0, 6_000_000), closes(1, 3_800_000)},
			"edge: roadside counted 9800000 bytes of flow main up to the window's close, and car had 10000000 " +
				"acknowledged 0.5 s before"},
		"a socket that is not there": {[]wire.Record{closes(0, 6_000_000)}, "edge: roadside counted 6000000 bytes"},
		"no socket at all":           {nil, "edge: roadside counted 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, records := relayed(append(append([]wire.Record{sampledAt("car", "open", 1), started("car", 1),
				sampledAt("car", "close", 1), sampledAt("roadside", "open", 2), sampledAt("roadside", "close", 2)},
				sent...), c.received...))
			tr.Traffic[0].Port, tr.Traffic[0].Streams = 5000, 2
			failsFor(t, tr, records, "", c.final)
		})
	}
}

// A judge keeps few samples of an attempt, whose phases differ from node to node. They are enough: also of a flow that
// ends within the window, of which no sample is at its close.
func TestFewSamplesTellWhetherAllIsCounted(t *testing.T) {
	const bytesPerS, beginS, endS = 1e6, 1.0, 4.0
	flow := func(node string, phaseS, share float64) (out []wire.Record) {
		for s := beginS + phaseS; s < endS+0.3; s += 0.2 {
			n := uint64(share * bytesPerS * (min(s, endS) - beginS))
			b := &wire.TCPSample{Flow: "main", Cookie: 1, Stream: new(0)}
			if b.BytesAcked = n; node == "roadside" {
				b.BytesAcked, b.BytesReceived = 0, n
			}
			out = append(out, at(node, s, b))
		}
		return out
	}
	for name, c := range map[string]struct {
		share float64
		final string
	}{"all": {1, ""}, "half": {0.5, "edge: roadside counted 1500000 bytes"}, "none": {0, "edge: roadside counted 0"}} {
		t.Run(name, func(t *testing.T) {
			records := []wire.Record{sampledAt("car", "open", 1), started("car", 1), sampledAt("car", "close", 1),
				sampledAt("roadside", "open", 2), sampledAt("roadside", "close", 2)}
			records = append(records, flow("car", 0.09, 1)...)
			if c.share > 0 {
				records = append(records, flow("roadside", 0.02, c.share)...)
			}
			tr, all := relayed(records)
			tr.Traffic[0].Port, tr.Traffic[0].Streams = 5000, 1
			failsFor(t, tr, all, "", c.final)
		})
	}
}
