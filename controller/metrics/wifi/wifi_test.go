package wifi

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node's readings are its own and the window's, also where clocks are alike; none is absent.
func TestReadingsAreTheNodesOwn(t *testing.T) {
	var records []wire.Record
	add := func(node string, atNs int64, b wire.Body) {
		records = append(records, wire.Record{Header: wire.Header{Node: node, TBootNs: atNs}, Body: b})
	}
	for _, node := range []string{"alpha", "bravo", "charlie"} {
		add(node, 0, &wire.Window{OpenBootNs: 10e9, CloseBootNs: 20e9})
	}
	for node, dbm := range map[string]float64{"alpha": -60, "bravo": -80} {
		for _, atNs := range []int64{9e9, 11e9, 14e9, 20e9} {
			add(node, atNs, &wire.WiFi{Source: wire.SourceAndroid, SignalDbm: new(dbm - float64(atNs/1e9))})
		}
	}
	add("alpha", 12e9, &wire.WiFi{Source: wire.SourceAndroid})
	if got := Signals("alpha", records); len(got.S) != 2 || got.S[0] != 1 || got.S[1] != 4 || got.V[1] != -74 {
		t.Errorf("alpha's are %+v", got)
	}
	if got := MeanDbm("bravo", records); got == nil || *got != -92.5 {
		t.Errorf("bravo's mean is %v", got)
	}
	if got := MeanDbm("charlie", records); got != nil {
		t.Errorf("of a node without a reading: %g", *got)
	}
	if !Any(records) || Any(records[:3]) {
		t.Error("whether there is one")
	}
}
