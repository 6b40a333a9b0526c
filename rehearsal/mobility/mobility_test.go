package mobility_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

func ptr(v float64) *float64 { return &v }

func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %g, want %g ± %g", what, got, want, tolerance)
	}
}

func mustNew(t *testing.T, c wire.Course, v float64, direction string) mobility.Drive {
	t.Helper()
	d, err := mobility.New(c, v, direction)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The textbook's phases: ½at² up to v/a, then v, then v²/2b to rest.
func TestDepartFollowsTheKinematicsOfACar(t *testing.T) {
	c := wire.Course{Kind: "depart", StartM: 5, AccelMps2: 2, BrakeMps2: 4}
	d := mustNew(t, c, 10, "outbound").Depart(sec(3))
	for _, w := range []struct{ at, s, v float64 }{
		{0, 5, 0}, {3, 5, 0}, {4, 6, 2}, {8, 30, 10}, {13, 80, 10},
	} {
		s := d.At(sec(w.at))
		near(t, "y", s.YM, w.s, 1e-9)
		near(t, "speed", s.SpeedMps, w.v, 1e-9)
		near(t, "distance", s.DistanceM, w.s, 1e-9)
	}
	b := d.Brake(sec(13))
	near(t, "speed at the standstill", b.At(sec(15.5)).SpeedMps, 0, 1e-9)
	near(t, "speed when half braked", b.At(sec(14.25)).SpeedMps, 5, 1e-9)
	near(t, "rest", b.At(sec(99)).YM, 80+12.5, 1e-9)
	near(t, "speed at rest", b.At(sec(99)).SpeedMps, 0, 1e-9)
	near(t, "brake while accelerating", d.Brake(sec(5)).At(sec(99)).YM, 5+4+2, 1e-9)
	if s := d.Brake(sec(2)).At(sec(99)); s.SpeedMps != 0 || s.YM != 5 {
		t.Errorf("braking before the departure left %+v", s)
	}
}

func TestInboundMirrorsEachCourse(t *testing.T) {
	for _, c := range []wire.Course{
		{Kind: "depart", StartM: 5, OffsetM: 3, AccelMps2: 2, BrakeMps2: 3},
		{Kind: "pass", StartM: -150, OffsetM: 3, AccelMps2: 2, BrakeMps2: 3},
		{Kind: "loop", StartM: 20, OffsetM: 8, LengthM: ptr(500), AccelMps2: 2, BrakeMps2: 3},
	} {
		c.HeadingDeg = 30
		out := mustNew(t, c, 14, "outbound").Depart(0)
		in := mustNew(t, c, 14, "inbound").Depart(0)
		for s := 0.0; s < 40; s += 1.3 {
			a, b := out.At(sec(s)), in.At(sec(s))
			near(t, c.Kind+" distance", b.DistanceM, a.DistanceM, 1e-9)
			near(t, c.Kind+" speed", b.SpeedMps, a.SpeedMps, 1e-12)
		}
		if a, b := out.At(0), in.At(0); c.Kind != "loop" {
			near(t, c.Kind+" tracks are opposite", math.Mod(b.TrackDeg-a.TrackDeg+360, 360), 180, 1e-9)
		}
	}
}

func TestPassComesByTheNode(t *testing.T) {
	for _, start := range []float64{-100, 100} {
		c := wire.Course{Kind: "pass", StartM: start, OffsetM: 4, AccelMps2: 2, BrakeMps2: 3, HeadingDeg: 90}
		d := mustNew(t, c, 10, "outbound").Depart(0)
		near(t, "start", d.At(0).XM, -100, 1e-9)
		near(t, "closest, after 25 m of run-up and 75 m", d.At(sec(5+7.5)).DistanceM, 4, 1e-9)
		near(t, "right of an eastbound road is south", d.At(0).YM, -4, 1e-9)
		near(t, "track", d.At(0).TrackDeg, 90, 1e-9)
	}
}

func TestSegmentIsTheSameStretchBothWays(t *testing.T) {
	c := wire.Course{Kind: "segment", StartM: 10, SegmentM: ptr(60), LengthM: ptr(100), AccelMps2: 2, BrakeMps2: 3}
	out := mustNew(t, c, 10, "outbound").Depart(0)
	in := mustNew(t, c, 10, "inbound").Depart(0)
	enter := sec(5 + 2.5) // 25 m of run-up, then 25 m at 10 m/s
	near(t, "outbound enters", out.At(enter).YM, 60, 1e-9)
	near(t, "inbound enters", in.At(enter).YM, 160, 1e-9)
	near(t, "outbound leaves", out.At(enter+sec(10)).YM, 160, 1e-9)
	near(t, "inbound leaves", in.At(enter+sec(10)).YM, 60, 1e-9)
	if _, err := mobility.New(c, 16.7, "outbound"); err == nil {
		t.Error("50 m of run-up pass for 16.7 m/s at 2 m/s², which needs 69.7 m")
	}
}

func TestLoopComesRoundAndKeepsItsSpeed(t *testing.T) {
	c := wire.Course{Kind: "loop", OffsetM: 6, LengthM: ptr(628), AccelMps2: 2, BrakeMps2: 3}
	d := mustNew(t, c, 10, "outbound").Depart(0)
	once := sec(5 + (628.0-25)/10)
	near(t, "distance after one round", d.At(once).DistanceM, 6, 1e-6)
	near(t, "far side", d.At(once-sec(31.4)).DistanceM, 6+628/math.Pi, 1e-6)
	dt := 1e-3
	a, b := d.At(sec(20)), d.At(sec(20+dt))
	near(t, "way per time", math.Hypot(b.XM-a.XM, b.YM-a.YM)/dt, 10, 1e-3)
	bearing := math.Mod(math.Atan2(b.XM-a.XM, b.YM-a.YM)*180/math.Pi+360, 360)
	near(t, "track is where it goes", a.TrackDeg, bearing, 0.05)
}

func TestParkedAndNoneStand(t *testing.T) {
	for _, c := range []wire.Course{{Kind: "parked", MarkM: ptr(40)}, {Kind: "none", StartM: 40}} {
		d := mustNew(t, c, 0, "").Depart(0)
		if s := d.At(sec(60)); s.SpeedMps != 0 || s.DistanceM != 40 || d.Moves() {
			t.Errorf("%s: %+v", c.Kind, s)
		}
	}
}

// Speed and place belong together on any drive: the place's difference
// quotient is the speed, and the speed never jumps.
func TestSpeedIsTheDerivativeOfPlace(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		c := wire.Course{Kind: "depart", StartM: 5, AccelMps2: 0.5 + 3*r.Float64(), BrakeMps2: 1 + 4*r.Float64(),
			HeadingDeg: 360 * r.Float64()}
		d := mustNew(t, c, 1+30*r.Float64(), "outbound").Depart(sec(r.Float64())).Brake(sec(2 + 20*r.Float64()))
		for range 50 {
			at, h := sec(40*r.Float64()), sec(0.001)
			a, b := d.At(at), d.At(at+h)
			way := math.Hypot(b.XM-a.XM, b.YM-a.YM) / h.Seconds()
			if math.Abs(way-a.SpeedMps) > 0.01 || math.Abs(b.SpeedMps-a.SpeedMps) > 0.01 {
				t.Fatalf("seed %d: at %v %+v then %+v on %+v", seed, at, a, b, c)
			}
		}
	}
}

func TestImpossibleDrivesAreRefused(t *testing.T) {
	ok := wire.Course{Kind: "depart", AccelMps2: 2, BrakeMps2: 3}
	for name, f := range map[string]func(*wire.Course) (float64, string){
		"speed":        func(*wire.Course) (float64, string) { return 0, "outbound" },
		"not a number": func(*wire.Course) (float64, string) { return math.NaN(), "outbound" },
		"accel":        func(c *wire.Course) (float64, string) { c.AccelMps2 = 0; return 5, "" },
		"direction":    func(*wire.Course) (float64, string) { return 5, "up" },
		"kind":         func(c *wire.Course) (float64, string) { c.Kind = "spiral"; return 5, "" },
		"loop":         func(c *wire.Course) (float64, string) { c.Kind = "loop"; return 5, "" },
		"segment":      func(c *wire.Course) (float64, string) { c.Kind = "segment"; return 5, "" },
		"parked":       func(c *wire.Course) (float64, string) { c.Kind = "parked"; return 5, "" },
	} {
		c := ok
		v, dir := f(&c)
		if _, err := mobility.New(c, v, dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
