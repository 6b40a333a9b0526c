package metrics

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const second = int64(1e9)

// clockOf is a comparison by the controller at its own boot time.
func clockOf(node string, atNs, offsetNs, uncertaintyNs int64) wire.Record {
	return wire.Record{Header: wire.Header{Node: "controller", TBootNs: atNs},
		Body: &wire.Clock{Peer: node, OffsetNs: offsetNs, UncertaintyNs: uncertaintyNs}}
}

func TestNodesTimesMeetOnTheControllersClock(t *testing.T) {
	// The car's boot clock is an hour ahead of the controller's and gains 2 ms
	// between the comparisons before and after the trial, 100 s apart.
	const hour, start = 3600 * second, 5000 * second
	carOpen, roadsideOpen := start+hour+25*second, start-hour+25*second
	windows := map[string]wire.Window{"car": {OpenBootNs: carOpen, CloseBootNs: carOpen + 50*second},
		"roadside": {OpenBootNs: roadsideOpen, CloseBootNs: roadsideOpen + 50*second}}
	at := Attempt{records: []wire.Record{
		clockOf("car", start+100*second, hour+2_000_000, 300_000),
		clockOf("car", start, hour, 200_000),
		clockOf("roadside", start+40*second, -hour, 100_000),
	}}
	for node, w := range windows {
		at.records = append(at.records, wire.Record{Header: wire.Header{Node: node, TBootNs: w.OpenBootNs}, Body: &w})
	}
	// Its wall clock is put forward by 1 ms during the capture's 50 s, nobody knows when.
	const wall = 1_700_000_000 * second
	told := wire.Capture{OpenBootNs: carOpen, CloseBootNs: carOpen + 50*second, WallOffsetOpen: wall,
		WallOffsetClose: wall + 1_000_000}
	car := at.align("car", "roadside", told, windows["car"])
	for _, c := range []struct {
		what       string
		boot, want int64
		wallAhead  int64 // how far the wall clock was put forward by then
	}{
		{"at the capture's first moment", carOpen, start + 25*second - 500_000, 0},
		{"in its middle", carOpen + 25*second, start + 50*second - 1_000_000, 500_000},
		{"at its last", carOpen + 50*second, start + 75*second - 1_500_000, 1_000_000},
	} {
		near := func(name string, got int64) {
			if d := got - c.want; d < -1000 || d > 1000 { // the two rates meet within a microsecond
				t.Errorf("%s: %s is %d ns off", c.what, name, d)
			}
		}
		near("the boot clock", car.of(c.boot))
		near("a packet's time", car.common(c.boot+wall+c.wallAhead))
	}
	if u := car.fit.UncertaintyNs; u < 274_000 || u > 276_000 {
		t.Errorf("the car's uncertainty is %.0f ns, want that at the window's end, a quarter of the way "+
			"from 300 to 200 µs", u)
	}
	// One comparison, 35 s before the window's end: the clocks may have drifted by 200 ppm.
	roadside := at.align("roadside", "car", wire.Capture{}, windows["roadside"])
	const want = 275_000 + 7_100_000 + 1_000_000
	if u := car.together(roadside); u == nil || *u < want-2000 || *u > want+2000 {
		t.Errorf("uncertainty %v, want 275 µs, 7.1 ms, and the step of 1 ms", u)
	}
	if u := roadside.together(car); u == nil || *u < want-2000 || *u > want+2000 {
		t.Errorf("uncertainty the other way %v", u)
	}
}

// Without a comparison windows are what nodes have in common, and no one-way
// delay can be told.
func TestWithoutComparisonWindowsMeet(t *testing.T) {
	at := Attempt{records: []wire.Record{clockOf("car", 0, 0, 1000)}}
	roadside := at.align("roadside", "car", wire.Capture{WallOffsetOpen: 7 * second, WallOffsetClose: 7 * second},
		wire.Window{OpenBootNs: 40 * second})
	if got := roadside.common(49 * second); got != 2*second {
		t.Errorf("2 s after the window's opening is %d", got)
	}
	if u := at.align("car", "roadside", wire.Capture{}, wire.Window{}).together(roadside); u != nil {
		t.Errorf("uncertainty %v of clocks that were not compared", *u)
	}
}

// The nodes drove alone, and the controller compared their clocks forty minutes later, when they had
// drifted apart by 48 ms: the delays of 10 ms that would follow from that are not told.
func TestOneWayDelaysWaitForAComparisonOfTheirTime(t *testing.T) {
	const later, apart = 2400 * second, 24 * msNs
	a, at := captured(t, "a", "b")
	for _, r := range at.records {
		if w, ok := r.Body.(*wire.Window); ok {
			w.GoUncertaintyUs = new(1e3)
		}
		if c, ok := r.Body.(*wire.Clock); ok {
			c.OffsetNs += map[string]int64{"a": apart, "b": -apart}[c.Peer]
		}
	}
	for i, r := range at.records {
		if _, ok := r.Body.(*wire.Clock); ok {
			at.records[i].TBootNs += later
		}
	}
	rows := at.Captured(a)
	for _, name := range []string{OneWayMeanMs, OneWayUncertaintyMs} {
		if v := Value(rows, "bulk", name); v != nil {
			t.Errorf("%s is %g by clocks that were compared 40 min later", name, *v)
		}
	}
	want(t, rows, "bulk", LinkLossPercent, 0)
	if _, ok := at.Clocks("a", "b"); ok {
		t.Error("their clocks are told, for the delays that the nodes' datagrams have")
	}
}

// The controller's laptop went flat in the window. What it compared before that, and what it
// compares after its start three hours later, are against two boot clocks.
func TestAControllerThatWasRebootedIsAnotherAxis(t *testing.T) {
	const hours = 3 * 3600 * second
	a, at := captured(t, "a", "b")
	for i, r := range at.records {
		if c, ok := r.Body.(*wire.Clock); ok && r.TBootNs == 22*second {
			at.records[i].Epoch = "two"
			at.records[i].TBootNs, c.OffsetNs = r.TBootNs-hours, c.OffsetNs+hours
		}
	}
	rows := at.Captured(a)
	want(t, rows, "bulk", LinkLossPercent, 0)
	want(t, rows, "bulk", OneWayMeanMs, 10)
	// Compared 12 s before the window's close, or as long after its opening.
	most := 2 * (comparedN/1e6 + 12*0.2 + 0.01)
	if off := Value(rows, "bulk", OneWayUncertaintyMs); off == nil {
		t.Error("no uncertainty is told")
	} else if *off > most {
		t.Errorf("the uncertainty is %g ms, want %g", *off, most)
	}
}

// Where two nodes' times are wrong against each other, packets seem to come before they
// left. They are not lost for that.
func TestWhatArrivedIsNotLostByTheClocks(t *testing.T) {
	notCompared := func(at *Attempt, nodes ...string) {
		at.records = slices.DeleteFunc(at.records, func(r wire.Record) bool {
			b, is := r.Body.(*wire.Clock)
			return is && slices.Contains(nodes, b.Peer)
		})
	}
	each := func(at *Attempt, change func(node string, w *wire.Window, c *wire.Capture)) {
		for _, r := range at.records {
			w, _ := r.Body.(*wire.Window)
			c, _ := r.Body.(*wire.Capture)
			change(r.Node, w, c)
		}
	}
	for name, change := range map[string]func(*Attempt){
		"GO took 80 ms, and no clocks were compared": func(at *Attempt) {
			notCompared(at, "a", "b")
			each(at, func(node string, w *wire.Window, _ *wire.Capture) {
				switch {
				case w != nil && node == "a":
					w.GoUncertaintyUs = new(85e3)
				case w != nil:
					w.OpenBootNs, w.CloseBootNs = w.OpenBootNs+80*msNs, w.CloseBootNs+80*msNs
				}
			})
		},
		"GO took as long as it may, and nobody told": func(at *Attempt) {
			notCompared(at, "a", "b")
			at.trial.Gate.LeadS = 1
			each(at, func(node string, w *wire.Window, _ *wire.Capture) {
				if w != nil && node == "b" {
					w.OpenBootNs, w.CloseBootNs = w.OpenBootNs+second, w.CloseBootNs+second
				}
			})
		},
		"one node's clock was compared": func(at *Attempt) { notCompared(at, "b") },
		"a wall clock was stepped": func(at *Attempt) {
			each(at, func(node string, _ *wire.Window, c *wire.Capture) {
				if c != nil && node == "b" {
					c.CloseBootNs, c.WallOffsetClose = 2*tenS+aheadNs, c.WallOffsetClose+99*msNs
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, at := captured(t, "a", "b")
			change(&at)
			rows := at.Captured(a)
			want(t, rows, "bulk", LinkLossPercent, 0)
			want(t, rows, "bulk", "packets_unmatched", 0)
		})
	}
}
