package draw

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// More flows are those of fewer and some besides.
func TestMoreFlowsHaveThoseOfFewer(t *testing.T) {
	drawn := func(flows int) []wire.Flow {
		x := wire.Trial{Initiator: "a", Sender: "a", Receiver: "b", Relays: []string{"c", "d", "e", "f"}, Repetition: 2}
		for i := range flows {
			x.Traffic = append(x.Traffic, wire.Flow{Name: "bulk_" + string(rune('1'+i)), From: Random, To: Random})
		}
		Ends(7, &x)
		return x.Traffic
	}
	few, many := drawn(3), drawn(9)
	for i, f := range few {
		if f != many[i] {
			t.Errorf("flow %d is %v of three, %v of nine", i, f, many[i])
		}
	}
}
