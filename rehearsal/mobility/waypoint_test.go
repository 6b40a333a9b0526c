package mobility

import (
	"math"
	"strings"
	"testing"
	"time"
)

const seed = 20261120

// In the unit square the mean distance of two places is
// (2 + √2 + 5 ln(1 + √2)) / 15, a textbook figure.
func TestMeanTripOfASquare(t *testing.T) {
	want := 1000 * (2 + math.Sqrt2 + 5*math.Log(1+math.Sqrt2)) / 15
	if got := (Waypoint{Area: Area{1000, 1000}}).MeanTripM(); !near(got, want, 1e-6) {
		t.Errorf("%g m, want %g m", got, want)
	}
}

// The simple simulation that starts with the first waypoint at rest reaches
// the same long-run mean: total way by total time, trip by trip.
func TestMeanSpeedIsWayByTime(t *testing.T) {
	w := Waypoint{Area{1600, 400}, 1, 20, 30 * time.Second}
	t.Logf("seed %d", seed)
	p, err := w.Path(seed, 0, 5_000_000*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	way, k := 0.0, p.knots
	for i := 1; i < len(k); i++ {
		way += math.Hypot(k[i].XM-k[i-1].XM, k[i].YM-k[i-1].YM)
	}
	if got, want := way/p.Ends().Seconds(), w.MeanSpeedMps(); !near(got/want, 1, 0.01) {
		t.Errorf("mean speed %g m/s over %d waypoints, the formula has %g m/s", got, len(k), want)
	}
}

// Nodes start in the steady state: their mean speed, the share that pauses,
// and how they lie in the area are at the start as they are after an hour. A
// start at uniform places and speeds would show 10.5 m/s at first.
func TestNothingDecays(t *testing.T) {
	w := Waypoint{Area{1000, 1000}, 1, 20, 20 * time.Second}
	const nodes = 20_000
	t.Logf("seed %d", seed)
	type moments struct{ speed, paused, middle float64 }
	got := map[time.Duration]*moments{0: {}, 100 * time.Second: {}, time.Hour: {}}
	for i := range nodes {
		p, err := w.Path(seed, i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for at, m := range got {
			s := p.At(at)
			m.speed += s.SpeedMps / nodes
			if s.SpeedMps == 0 {
				m.paused += 1.0 / nodes
			}
			m.middle += math.Hypot(s.XM-500, s.YM-500) / nodes
			if w.Area.Check(s.XM, s.YM) != nil || s.SpeedMps > 20+1e-6 {
				t.Fatalf("node %d at %v: %+v", i, at, s)
			}
		}
	}
	// Standard errors: speed's spread is below 6 m/s, a share's below 0.5, the
	// distance's below 200 m; four of them are allowed.
	root := math.Sqrt(nodes)
	for at, m := range got {
		if !near(m.speed, w.MeanSpeedMps(), 4*6/root) {
			t.Errorf("mean speed at %v is %.3f m/s, the steady state's %.3f m/s", at, m.speed, w.MeanSpeedMps())
		}
		if !near(m.paused, w.PausedShare(), 4*0.5/root) {
			t.Errorf("%.4f pause at %v, in the steady state %.4f", m.paused, at, w.PausedShare())
		}
		if !near(m.middle, got[time.Hour].middle, 4*200*math.Sqrt2/root) {
			t.Errorf("distance from the middle at %v %.2f m, after an hour %.2f m", at, m.middle, got[time.Hour].middle)
		}
	}
}

func TestWaypointPathHangsOnSeedAndNodeAlone(t *testing.T) {
	w := Waypoint{Area{500, 500}, 10, 10, 0} // P2's constant speed
	a, err := w.Path(7, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := w.Path(7, 3, time.Hour)
	c, _ := w.Path(7, 4, time.Minute)
	for s := range 60 {
		at := time.Duration(s) * second
		if a.At(at) != b.At(at) {
			t.Fatalf("at %v the longer path is elsewhere", at)
		}
		if v := a.At(at).SpeedMps; !near(v, 10, 1e-6) {
			t.Errorf("at %v %g m/s", at, v)
		}
	}
	if a.At(0) == c.At(0) {
		t.Error("two nodes go the same way")
	}
}

func TestImpossibleWaypointsAreRefused(t *testing.T) {
	ok := Waypoint{Area{10, 10}, 1, 2, 0}
	for want, spoil := range map[string]func(*Waypoint){
		"steady state":  func(w *Waypoint) { w.SpeedMinMps = 0 },
		"below":         func(w *Waypoint) { w.SpeedMaxMps = 0.5 },
		"negative":      func(w *Waypoint) { w.Pause = -1 },
		"none to move":  func(w *Waypoint) { w.Area = Area{} },
		"duration of a": func(w *Waypoint) { w.SpeedMinMps = math.NaN() },
	} {
		w := ok
		spoil(&w)
		if _, err := w.Path(1, 0, second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
