package metrics

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A driver tells in whole ticks of its kernel how long ago it heard a frame, so that one frame
// seems to be of two moments.
func TestAFrameIsHeardOnce(t *testing.T) {
	const ms = int64(1e6)
	for name, c := range map[string]struct {
		inactive [4]float64 // ms, at 110, 210, 310 and 410 ms
		want     []float64  // s
	}{
		"one frame":                {[4]float64{20, 120, 220, 320}, []float64{0.09}},
		"one, its age a tick off":  {[4]float64{20, 124, 216, 320}, []float64{0.09}},
		"one, its age two off":     {[4]float64{20, 112, 220, 328}, []float64{0.09}},
		"one, beside a moment":     {[4]float64{12, 110, 208, 308}, []float64{0.1}},
		"two, the second 50 ms on": {[4]float64{20, 70, 170, 270}, []float64{0.09, 0.14}},
	} {
		at := Attempt{trial: wire.Trial{Number: 1, Sender: "car", Receiver: "roadside"}}
		add := func(node string, atMs int64, b wire.Body) {
			at.records = append(at.records, wire.Record{Header: wire.Header{Node: node, TBootNs: atMs * ms}, Body: b})
		}
		for i, node := range []string{"car", "roadside"} {
			add(node, 0, &wire.Provenance{MAC: string(rune('a' + i))})
			add(node, 0, &wire.Window{OpenBootNs: 0, CloseBootNs: 1000 * ms})
			for fix := int64(0); fix <= 1000; fix += 200 {
				add(node, fix, &wire.GPS{Mode: 3, Connected: true, FixBootNs: new(fix * ms), LatDeg: new(50.0),
					LonDeg: new(8.0)})
			}
		}
		add("roadside", 0, &wire.Survey{Channel: 6})
		for i, inactive := range c.inactive {
			add("roadside", 110+100*int64(i), &wire.Station{Peer: "a", SignalDbm: new(-60.0), InactiveMs: &inactive})
		}
		var got []float64
		for _, h := range at.Hears("roadside", "car", Origin{50, 8}) {
			if h.SignalDbm != nil {
				got = append(got, h.S)
			}
		}
		same := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			same = same && got[i] > c.want[i]-0.011 && got[i] < c.want[i]+0.011
		}
		if !same {
			t.Errorf("%s: heard at %v s, want %v", name, got, c.want)
		}
	}
}
