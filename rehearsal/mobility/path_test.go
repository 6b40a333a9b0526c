package mobility

import (
	"math"
	"strings"
	"testing"
	"time"
)

const second = time.Second

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

func TestPathGoesStraightAndStandsOutsideItsTime(t *testing.T) {
	p, err := NewPath(Knot{2 * second, 0, 0}, Knot{12 * second, 30, 40}, Knot{13 * second, 30, 40})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at                 time.Duration
		x, y, speed, track float64
	}{
		{0, 0, 0, 0, 36.8699}, {2 * second, 0, 0, 5, 36.8699}, {7 * second, 15, 20, 5, 36.8699},
		{12 * second, 30, 40, 0, 0}, {99 * second, 30, 40, 0, 0},
	} {
		s := p.At(c.at)
		if !near(s.XM, c.x, 1e-9) || !near(s.YM, c.y, 1e-9) || !near(s.SpeedMps, c.speed, 1e-9) ||
			!near(s.TrackDeg, c.track, 1e-3) {
			t.Errorf("at %v: %+v, want %+v", c.at, s, c)
		}
	}
	if !p.Moves() || Stand(1, 2).Moves() || p.Ends() != 13*second {
		t.Error("what moves, and for how long")
	}
	for _, bad := range [][]Knot{nil, {{0, 0, 0}, {0, 1, 1}}, {{second, 0, 0}, {0, 1, 1}}, {{0, math.NaN(), 0}}} {
		if _, err := NewPath(bad...); err == nil {
			t.Errorf("path %v passes", bad)
		}
	}
}

// A node that sets off at 50 s and turns back at 250 s is where arithmetic
// says, on its way, at its far end, and home again.
func TestScriptedMoves(t *testing.T) {
	p, err := Script(400, 0, Move{50 * second, 400, 1000, 10}, Move{250 * second, 400, 0, 10})
	if err != nil {
		t.Fatal(err)
	}
	for at, y := range map[float64]float64{0: 0, 50: 0, 51: 10, 150: 1000, 200: 1000, 250: 1000, 300: 500, 350: 0,
		400: 0} {
		if s := p.At(seconds(at)); s.XM != 400 || !near(s.YM, y, 1e-6) {
			t.Errorf("at %g s: (%g, %g), want y %g", at, s.XM, s.YM, y)
		}
	}
	// A move in mid-way takes over where the node is; speed 0 stops it.
	p, err = Script(0, 0, Move{0, 100, 0, 10}, Move{4 * second, 40, 30, 10}, Move{5 * second, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.At(4500 * time.Millisecond); !near(s.XM, 40, 1e-9) || !near(s.YM, 5, 1e-9) {
		t.Errorf("taken off its way: %+v", s)
	}
	if s := p.At(60 * second); !near(s.XM, 40, 1e-9) || !near(s.YM, 10, 1e-9) || s.SpeedMps != 0 {
		t.Errorf("stopped: %+v", s)
	}
	if _, err := Script(0, 0, Move{5 * second, 1, 1, 1}, Move{4 * second, 2, 2, 1}); err == nil ||
		!strings.Contains(err.Error(), "back") {
		t.Errorf("time going back: %v", err)
	}
	if _, err := Script(0, 0, Move{0, 1, 1, -1}); err == nil {
		t.Error("a negative speed passes")
	}
}

func TestChainAndGrid(t *testing.T) {
	chain := Chain(6, Place{50, 500}, 200)
	if chain[0] != (Place{50, 500}) || chain[5] != (Place{1050, 500}) {
		t.Errorf("%v", chain)
	}
	grid := Grid(25, 5, Place{}, 200)
	if grid[4] != (Place{800, 0}) || grid[5] != (Place{0, 200}) || grid[24] != (Place{800, 800}) {
		t.Errorf("%v", grid)
	}
}
