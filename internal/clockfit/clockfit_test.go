package clockfit

import (
	"math"
	"math/rand/v2"
	"testing"
)

const second = int64(1e9)

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
		compare := func(atS float64) Point {
			best := Point{UncertaintyNs: math.MaxInt64}
			for range 8 {
				out, back := 50e3+random.ExpFloat64()*400e3, 80e3+random.ExpFloat64()*100e3
				asked := atS * 1e9
				answered := asked + out // when the node read its clock
				rtt := out + back
				theirs := answered + truth(answered)
				if u := int64(rtt/2) + 1; u < best.UncertaintyNs {
					best = Point{int64(theirs), int64(theirs - (asked + rtt/2)), u}
				}
				atS += 0.002
			}
			return best
		}
		open, closed := 20e9, 30e9
		at := func(commonNs float64) int64 { return int64(commonNs + truth(commonNs)) }
		for _, when := range [][]float64{{18, 32}, {1, 8, 18, 32, 40}} {
			var points []Point
			for _, s := range when {
				points = append(points, compare(s))
			}
			f, ok := Over(points, at(open), at(closed))
			if !ok || !f.Steady {
				t.Fatalf("round %d: %+v, %v", round, f, ok)
			}
			for _, commonNs := range []float64{open, 25e9, closed} {
				if off := math.Abs(float64(f.Common(at(commonNs))) - commonNs); off > f.UncertaintyNs+10 {
					t.Errorf("round %d, %d comparisons: off by %.0f ns at %.0f s, stated %.0f ns", round, len(when),
						off, commonNs/1e9, f.UncertaintyNs)
				}
			}
			if len(when) == 2 {
				few += f.UncertaintyNs
			} else {
				many += f.UncertaintyNs
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
	points := []Point{{0, 0, 1000}, {second, 100, 1000}, {20 * second, 5_000_000, 1000}}
	f, ok := Over(points, 2*second, 12*second)
	if !ok || f.Steady || f.UncertaintyNs < 2_500_000 {
		t.Errorf("%+v", f)
	}
	// One that has only changed its rate since is fitted by what is next to the window.
	points = []Point{{0, 0, 1000}, {10 * second, 1_000_000, 1000}, {20 * second, 1_000_000, 1000}}
	f, ok = Over(points, 11*second, 19*second)
	if !ok || !f.Steady || f.points != 2 || math.Abs(f.offsetOpen-1_000_000) > 1000 {
		t.Errorf("%+v", f)
	}
	if _, ok := Over(nil, 0, 1); ok {
		t.Error("nothing was fitted")
	}
}

// A node that waited long at its gate was compared often before its window. A comparison
// after it counts all the same, as uncertain as it is: it alone shows a jump since.
func TestFitHoldsTheComparisonsNextToTheWindow(t *testing.T) {
	const jumpNs = 20_000_000
	var points []Point
	for i := range int64(2 * fitPoints) {
		points = append(points, Point{i * 10 * second, 0, 100_000})
	}
	open := points[len(points)-1].BootNs + second
	closed := open + 10*second
	points = append(points, Point{closed + second, jumpNs, 3_000_000})
	f, ok := Over(points, open, closed)
	if !ok || f.Steady || f.UncertaintyNs < jumpNs/2 {
		t.Errorf("a clock that jumped by %d ns is told to be steady (%t) within %.0f ns", jumpNs, f.Steady,
			f.UncertaintyNs)
	}
}
