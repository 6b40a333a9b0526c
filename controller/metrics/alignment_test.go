package metrics

import (
	"math"
	"math/rand/v2"
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
	const hour, start = 3600 * second, 500 * second
	at := Attempt{records: []wire.Record{
		clockOf("car", start+100*second, hour+2_000_000, 300_000),
		clockOf("car", start, hour, 200_000),
		clockOf("roadside", start, -hour, 100_000),
	}}
	// Its wall clock is put forward by 1 ms, slowly, during the capture's 50 s.
	const wall = 1_700_000_000 * second
	open := start + hour + 25*second
	told := wire.Capture{OpenBootNs: open, CloseBootNs: open + 50*second, WallOffsetOpen: wall, WallOffsetClose: wall +
		1_000_000}
	car := at.align("car", told, wire.Window{OpenBootNs: open, CloseBootNs: open + 50*second})
	for _, c := range []struct {
		what       string
		boot, want int64
		wallSlewed int64 // how far the wall clock was put forward by then
	}{
		{"at the capture's first moment", open, start + 25*second - 500_000, 0},
		{"in its middle", open + 25*second, start + 50*second - 1_000_000, 500_000},
		{"at its last", open + 50*second, start + 75*second - 1_500_000, 1_000_000},
	} {
		near := func(name string, got int64) {
			if d := got - c.want; d < -1000 || d > 1000 { // the two rates meet within a microsecond
				t.Errorf("%s: %s is %d ns off", c.what, name, d)
			}
		}
		near("the boot clock", car.of(c.boot))
		near("a packet's time", car.common(c.boot+wall+c.wallSlewed))
	}
	if u := car.fit.uncertaintyNs; u < 274_000 || u > 276_000 {
		t.Errorf("the car's uncertainty is %.0f ns, want that at the window's end, a quarter of the way from 300 to "+
			"200 µs", u)
	}
	// One comparison, 75 s before the window's end: the clocks may have drifted by 200 ppm.
	roadside := at.align("roadside", wire.Capture{}, wire.Window{OpenBootNs: start - hour + 25*second,
		CloseBootNs: start - hour + 75*second})
	if u := car.together(roadside); u == nil || *u < 275_000+15_100_000-2000 || *u > 275_000+15_100_000+2000 {
		t.Errorf("uncertainty %v, want 275 µs and 15.1 ms", u)
	}
}

// Clocks with a drift, compared over a link whose delays vary, in one direction
// more than in the other: what is stated holds, and more comparisons make it less.
func TestFitHoldsWhatItStates(t *testing.T) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var few, many float64
	for round := range 400 {
		offset := []float64{0.3e9, 5e9, -40e9}[round%3]
		drift := []float64{50e-6, -50e-6, 0, 150e-6}[round%4]
		truth := func(commonNs float64) float64 { return offset + drift*commonNs }
		compare := func(atS float64) clockPoint {
			best := clockPoint{uncertaintyNs: math.MaxInt64}
			for range 8 {
				out, back := 50e3+random.ExpFloat64()*400e3, 80e3+random.ExpFloat64()*100e3
				asked := atS * 1e9
				answered := asked + out // when the node read its clock
				rtt := out + back
				theirs := answered + truth(answered)
				if u := int64(rtt/2) + 1; u < best.uncertaintyNs {
					best = clockPoint{int64(theirs), int64(theirs - (asked + rtt/2)), u}
				}
				atS += 0.002
			}
			return best
		}
		open, closed := 20e9, 30e9
		at := func(commonNs float64) int64 { return int64(commonNs + truth(commonNs)) }
		for _, when := range [][]float64{{18, 32}, {1, 8, 18, 32, 40}} {
			var points []clockPoint
			for _, s := range when {
				points = append(points, compare(s))
			}
			f, ok := fitClock(points, at(open), at(closed))
			if !ok || !f.steady {
				t.Fatalf("round %d: %+v, %v", round, f, ok)
			}
			for _, commonNs := range []float64{open, 25e9, closed} {
				if off := math.Abs(float64(f.common(at(commonNs))) - commonNs); off > f.uncertaintyNs+10 {
					t.Errorf("round %d, %d comparisons: off by %.0f ns at %.0f s, stated %.0f ns", round, len(when),
						off, commonNs/1e9, f.uncertaintyNs)
				}
			}
			if len(when) == 2 {
				few += f.uncertaintyNs
			} else {
				many += f.uncertaintyNs
			}
		}
	}
	t.Logf("stated on average: %.0f µs with 2 comparisons, %.0f µs with 5", few/400e3, many/400e3)
	if many >= few {
		t.Error("more comparisons do not make the uncertainty less")
	}
}

// A clock that jumps between two comparisons is told by its uncertainty.
func TestFitOfAClockThatJumped(t *testing.T) {
	points := []clockPoint{{0, 0, 1000}, {second, 100, 1000}, {20 * second, 5_000_000, 1000}}
	f, ok := fitClock(points, 2*second, 12*second)
	if !ok || f.steady || f.uncertaintyNs < 2_500_000 {
		t.Errorf("%+v", f)
	}
	// One that has only changed its rate since is fitted by what is next to the window.
	points = []clockPoint{{0, 0, 1000}, {10 * second, 1_000_000, 1000}, {20 * second, 1_000_000, 1000}}
	f, ok = fitClock(points, 11*second, 19*second)
	if !ok || !f.steady || f.points != 2 || math.Abs(f.offsetOpen-1_000_000) > 1000 {
		t.Errorf("%+v", f)
	}
	if _, ok := fitClock(nil, 0, 1); ok {
		t.Error("nothing was fitted")
	}
}

// Without a comparison windows are what nodes have in common, and no one-way
// delay can be told.
func TestWithoutComparisonWindowsMeet(t *testing.T) {
	at := Attempt{records: []wire.Record{clockOf("car", 0, 0, 1000)}}
	roadside := at.align("roadside", wire.Capture{WallOffsetOpen: 7 * second, WallOffsetClose: 7 * second},
		wire.Window{OpenBootNs: 40 * second})
	if got := roadside.common(49 * second); got != 2*second {
		t.Errorf("2 s after the window's opening is %d", got)
	}
	if u := at.align("car", wire.Capture{}, wire.Window{}).together(roadside); u != nil {
		t.Errorf("uncertainty %v of clocks that were not compared", *u)
	}
}
