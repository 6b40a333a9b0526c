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

// Two nodes are needed for each flow with unique ends, and that no named flow connects the last two.
func TestNodesForUniqueEnds(t *testing.T) {
	flows := func(unique int, named ...[2]string) (out []wire.Flow) {
		for range unique {
			out = append(out, wire.Flow{From: Random, To: Random, UniqueEnds: true})
		}
		for _, n := range named {
			out = append(out, wire.Flow{From: n[0], To: n[1]})
		}
		return out
	}
	for _, c := range []struct {
		nodes  int
		flows  []wire.Flow
		enough bool
	}{{4, flows(2), true}, {5, flows(3), false}, {6, flows(3), true}, {4, flows(2, [2]string{"a", "b"}), false},
		{5, flows(2, [2]string{"a", "b"}), true}, {4, flows(0, [2]string{"a", "b"}), true}} {
		if got := Lacking(c.nodes, c.flows); (got == "") != c.enough {
			t.Errorf("%d nodes for %d flows: %q", c.nodes, len(c.flows), got)
		}
	}
}

// Flows with unique ends share no node, whatever the others have; more of them are those of fewer and some
// besides, and the first is where it would be without.
func TestUniqueEnds(t *testing.T) {
	drawn := func(unique, others int, with bool) []wire.Flow {
		x := wire.Trial{Initiator: "a", Sender: "a", Receiver: "b", Relays: []string{"c", "d", "e", "f", "g", "h"},
			Repetition: 3}
		for i := range others {
			x.Traffic = append(x.Traffic, wire.Flow{Name: "cbr_" + string(rune('1'+i)), From: Random, To: Random,
				Background: true})
		}
		for i := range unique {
			x.Traffic = append(x.Traffic, wire.Flow{Name: "tcp_" + string(rune('1'+i)), From: Random, To: Random,
				UniqueEnds: with})
		}
		Ends(11, &x)
		if x.Sender != x.Traffic[others].From || x.Receiver != x.Traffic[others].To || len(x.Nodes()) != 8 {
			t.Errorf("%s to %s of %v", x.Sender, x.Receiver, x.Traffic)
		}
		return x.Traffic
	}
	all, few := drawn(4, 20, true), drawn(2, 20, true)
	ends, pairs := map[string]bool{}, map[[2]string]bool{}
	for i, f := range all {
		if pairs[Pair(f.From, f.To)] || f.From == Random || f.UniqueEnds && (ends[f.From] || ends[f.To]) {
			t.Errorf("flow %d is %v", i, f)
		}
		pairs[Pair(f.From, f.To)] = true
		if f.UniqueEnds {
			ends[f.From], ends[f.To] = true, true
		}
	}
	if all[20] != few[20] || all[21] != few[21] || len(ends) != 8 {
		t.Errorf("of four %v, of two %v", all[20:], few[20:])
	}
	if one, other := drawn(1, 0, true)[0], drawn(1, 0, false)[0]; one.From != other.From || one.To != other.To {
		t.Errorf("%v with unique ends, %v without", one, other)
	}
}
