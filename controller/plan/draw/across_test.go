package draw

import (
	"errors"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// row links nodes that stand beside each other.
func row(names ...string) *Links {
	l := map[string][]string{}
	for i := 1; i < len(names); i++ {
		a, b := names[i-1], names[i]
		l[a], l[b] = append(l[a], b), append(l[b], a)
	}
	return LinksOf(l)
}

func crossed(nodes ...string) wire.Trial {
	return wire.Trial{Repetition: 1, Sender: "s", Receiver: "r", Initiator: "s", Relays: nodes, Traffic: []wire.Flow{
		{Name: "tcp", From: "s", To: "r", DurationS: 40},
		{Name: "udp_a", Background: true, From: Random, To: Random, Across: "tcp", StartS: 7, DurationS: 26},
		{Name: "udp_b", Background: true, From: Random, To: Random, Across: "tcp", StartS: 13, DurationS: 13},
	}}
}

// On a row every way between a node before the middle and one behind it leads over
// the middle; both flows are led over it, between different pairs, the same each time.
func TestFlowsCrossTheMiddleOfARow(t *testing.T) {
	links := row("s", "a", "b", "c", "d", "e", "r")
	var first []wire.Flow
	for range 3 {
		x := crossed("a", "b", "c", "d", "e")
		if err := Across(3, &x, func(float64) (*Links, error) { return links, nil }); err != nil {
			t.Fatal(err)
		}
		ends := map[[2]string]bool{}
		for _, f := range x.Traffic[1:] {
			p := Pair(f.From, f.To)
			if f.AcrossNode != "c" || p[0] >= "c" || p[1] <= "c" || p[1] == "r" || p[1] == "s" || ends[p] {
				t.Errorf("%s: %s to %s over %q", f.Name, f.From, f.To, f.AcrossNode)
			}
			ends[p] = true
		}
		if first == nil {
			first = x.Traffic
		}
		for i := range first {
			if first[i].From != x.Traffic[i].From || first[i].To != x.Traffic[i].To {
				t.Errorf("drawn %v, then %v", first[i], x.Traffic[i])
			}
		}
	}
}

// Of two relays side by side the one with more ways through it is taken, and of
// pairs those that have no other way.
func TestFlowsCrossWhereMostWaysGo(t *testing.T) {
	// s reaches r over hub by two ways and over lone by one.
	links := LinksOf(map[string][]string{"s": {"p", "q", "u"}, "p": {"s", "hub"}, "q": {"s", "hub"}, "u": {"s", "lone"},
		"hub": {"p", "q", "r", "x", "y"}, "lone": {"u", "r"}, "r": {"hub", "lone"}, "x": {"hub"}, "y": {"hub"}})
	x := crossed("p", "q", "u", "hub", "lone", "x", "y")
	if err := Across(1, &x, func(float64) (*Links, error) { return links, nil }); err != nil {
		t.Fatal(err)
	}
	for _, f := range x.Traffic[1:] {
		if f.AcrossNode != "hub" || Pair(f.From, f.To) == Pair("p", "q") { // those meet at s too
			t.Errorf("%s: %s to %s over %q", f.Name, f.From, f.To, f.AcrossNode)
		}
	}
}

// The links that count are those when a flow begins, or the first after it by which
// it can be led; without any it is led over nothing, and says so.
func TestWhenFlowsCross(t *testing.T) {
	var asked []float64
	x := crossed("a", "b", "c")
	err := Across(1, &x, func(atS float64) (*Links, error) {
		asked = append(asked, atS)
		if atS < 12 {
			return row("s", "a"), nil
		}
		return row("s", "a", "b", "c", "r"), nil
	})
	if err != nil || x.Traffic[1].AcrossNode != "b" || asked[0] != 7 || asked[1] != 12 || asked[2] != 13 {
		t.Errorf("%v: %+v, looked at %v", err, x.Traffic[1], asked)
	}
	// There is one pair about b; the second flow needs another, and there is none.
	if f := x.Traffic[2]; f.AcrossNode != "" || f.From == Random || Pair(f.From, f.To) == Pair("a", "c") {
		t.Errorf("%+v", f)
	}
	early := crossed("a", "b", "c")
	early.Traffic[1].StartS = -30 // with the warm-up
	asked = nil
	err = Across(1, &early, func(atS float64) (*Links, error) {
		asked = append(asked, atS)
		return row("s", "a", "b", "c", "r"), nil
	})
	if err != nil || len(asked) == 0 || asked[0] != -30 {
		t.Errorf("%v: a flow that begins 30 s before the window was looked at at %v", err, asked)
	}
	torn := crossed("a", "b", "c")
	asked, torn.Still = nil, true
	err = Across(1, &torn, func(atS float64) (*Links, error) { asked = append(asked, atS); return &Links{}, nil })
	if err != nil || torn.Traffic[1].AcrossNode != "" || torn.Traffic[1].From == Random || len(asked) != 2 {
		t.Errorf("%v: %+v, looked at %v", err, torn.Traffic[1], asked)
	}
}

func TestWhatCannotBeCrossed(t *testing.T) {
	none := func(float64) (*Links, error) { return &Links{}, nil }
	few := crossed("a", "b")
	if err := Across(1, &few, none); err == nil {
		t.Error("two flows between two nodes")
	}
	lost := crossed("a", "b", "c")
	lost.Traffic[1].Across = "icmp"
	if err := Across(1, &lost, none); err == nil {
		t.Error("a flow that is not there was crossed")
	}
	x := crossed("a", "b", "c")
	fault := errors.New("no such place")
	if err := Across(1, &x, func(float64) (*Links, error) { return nil, fault }); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
}

// When a flow begins is drawn for each repetition and flow; its end stays.
func TestStartsAreDrawn(t *testing.T) {
	begins := map[float64]bool{}
	for rep := 1; rep <= 20; rep++ {
		x := wire.Trial{Repetition: rep, Sender: "a", Receiver: "b", Traffic: []wire.Flow{
			{Name: "bulk_1", From: Random, To: Random, StartS: 10, StartWithinS: new(180.0), DurationS: 350},
			{Name: "bulk_2", From: Random, To: Random, DurationS: 360}}, Relays: []string{"c"}}
		again := x
		again.Traffic = append([]wire.Flow(nil), x.Traffic...)
		Ends(5, &x)
		Ends(5, &again)
		f := x.Traffic[0]
		if f.StartS < 10 || f.StartS >= 190 || f.StartS+f.DurationS != 360 || f.StartS != again.Traffic[0].StartS ||
			x.Traffic[1].StartS != 0 {
			t.Fatalf("repetition %d: %+v", rep, x.Traffic)
		}
		begins[f.StartS] = true
	}
	if len(begins) < 15 {
		t.Errorf("%d beginnings of 20 repetitions", len(begins))
	}
}
