package gate

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What the driver is told is what brings the speed into its band.
func TestTheGateTellsTheDriverWhatToDo(t *testing.T) {
	for speed, want := range map[float64]string{2.1: "faster: 2.1 of 5.6 m/s", 5.3: "hold: 5.3 of 5.6 m/s",
		5.9: "hold: 5.9 of 5.6 m/s", 11.1: "slower: 11.1 of 5.6 m/s"} {
		g := New(wire.Trial{SpeedMps: new(5.6), Gate: wire.Gate{SpeedBand: true, HoldS: 0.5},
			Acceptance: wire.Acceptance{SpeedBandMps: new(0.5)}}, 1)
		open, got := g.Open(2, wire.GPS{Mode: 3, FixAgeMs: new(10.0), SpeedMps: new(speed)})
		if open || got != want {
			t.Errorf("at %g m/s: open %t, %q, want %q", speed, open, got, want)
		}
	}
}

// A gate that waits for a time is looked at when that has come, and all others often.
func TestAGateIsLookedAtWhenItMayOpen(t *testing.T) {
	for _, c := range []struct {
		gate wire.Gate
		nowS int64
		want time.Duration
	}{
		{wire.Gate{SpeedBand: true, TimeoutS: 100}, 0, Every},
		{wire.Gate{AfterS: new(0.4), TimeoutS: 100}, 0, 400 * time.Millisecond},
		{wire.Gate{AfterS: new(60.0), TimeoutS: 100}, 0, time.Second},
		{wire.Gate{AfterS: new(60.0), SpeedBand: true, TimeoutS: 100}, 61, Every},
		{wire.Gate{AfterS: new(60.0), TimeoutS: 30}, 30, Every},
	} {
		g := New(wire.Trial{Gate: c.gate}, 1)
		if got := g.ClosedFor(1+c.nowS*1e9, time.Second); got != c.want {
			t.Errorf("%+v after %d s: again after %v, want %v", c.gate, c.nowS, got, c.want)
		}
	}
}

// road is a car's fixes ten times a second, at places along a road that leads east from a roadside node on the equator.
type road struct {
	gate     *Gate
	nowNs    int64
	atM      float64
	trackDeg float64
	last     string
}

const degPerM = 180 / 3.141592653589793 / earth.MeanRadiusM

// look shows the gate the car at a speed, and fails when it opens.
func (r *road) look(speedMps float64) (opened bool) {
	r.nowNs += 100e6
	opened, r.last = r.gate.Open(r.nowNs, wire.GPS{Mode: 3, FixAgeMs: new(50.0), SpeedMps: new(speedMps),
		LatDeg: new(0.0), LonDeg: new(r.atM * degPerM), TrackDeg: &r.trackDeg})
	return opened
}

// drive goes to a place at a speed, and says where the gate opened.
func (r *road) drive(toM, speedMps float64) (openedM float64, opened bool) {
	step := speedMps / 10
	r.trackDeg = 90
	if toM < r.atM {
		step, r.trackDeg = -step, 270
	}
	for ; (toM-r.atM)*step > 0; r.atM += step {
		if r.look(speedMps) {
			return r.atM, true
		}
	}
	return 0, false
}

func outbound(kind string, g wire.Gate) wire.Trial {
	g.TimeoutS, g.SpeedBand, g.HoldS = 60, true, 0.5
	return wire.Trial{SpeedMps: new(8.3), Gate: g, Acceptance: wire.Acceptance{SpeedBandMps: new(0.5)},
		Course: wire.Course{Kind: kind, StartM: 10, OffsetM: 5, SegmentM: new(60.0), LengthM: new(100.0),
			HeadingDeg: 90, SiteLatDeg: new(0.0), SiteLonDeg: new(0.0)}}
}

// The next trial is armed while the car still stands where the last one ended: 300 m down the road. Neither the way
// back at the trial's own speed nor the turn at its end opens the window, and its time begins at the start.
func TestTheDriveBackOpensNoWindow(t *testing.T) {
	for _, inbound := range []bool{false, true} {
		for _, kind := range []string{"depart", "segment"} {
			trial := outbound(kind, wire.Gate{AtStart: true})
			startM, side := trial.Course.FromM(inbound), 1.0
			r := &road{nowNs: 1, atM: 300}
			if inbound {
				trial.Direction, side = "inbound", -1
				if kind == "segment" { // along the same stretch as outbound
					r.atM = -200
				}
			}
			r.gate = New(trial, 1)
			r.look(0)
			if !strings.HasPrefix(r.last, "drive to the start, ") {
				t.Errorf("%s, inbound %t: far from the start the driver is told %q", kind, inbound, r.last)
			}
			if at, opened := r.drive(startM, 8.3); opened {
				t.Fatalf("%s, inbound %t: the drive back opened the window at %.0f m", kind, inbound, at)
			}
			if r.look(5); r.last != "stop at the start" {
				t.Errorf("%s, inbound %t: at the start the driver is told %q", kind, inbound, r.last)
			}
			if left := r.gate.LimitNs() - r.nowNs; left < 60e9 {
				t.Errorf("%s, inbound %t: %.0f s are left before the car has come", kind, inbound, float64(left)/1e9)
			}
			for range 700 { // the marshal lets buses pass
				r.look(0)
			}
			if left := r.gate.LimitNs() - r.nowNs; left != 60e9 {
				t.Errorf("%s, inbound %t: at the start %.1f s are left, want 60", kind, inbound, float64(left)/1e9)
			}
			if _, opened := r.drive(r.atM+side*100, 8.3); !opened {
				t.Errorf("%s, inbound %t: the trial's own drive opens no window: %s", kind, inbound, r.last)
			}
		}
	}
}

// Where the campaign takes that rule out, the drive back opens the window.
func TestWithoutTheRuleTheDriveBackOpensTheWindow(t *testing.T) {
	r := &road{gate: New(outbound("depart", wire.Gate{}), 1), nowNs: 1, atM: 300}
	if _, opened := r.drive(0, 8.3); !opened {
		t.Error("it does not, so the test above shows nothing")
	}
}

// A parked pass begins when the car has stood at its mark for the time that it is given, and not while it rolls.
func TestAParkedPassWaitsForTheCarToStand(t *testing.T) {
	trial := wire.Trial{Gate: wire.Gate{AtStart: true, AfterS: new(5.0), TimeoutS: 35},
		Course: wire.Course{Kind: "parked", MarkM: new(100.0), HeadingDeg: 90, SiteLatDeg: new(0.0),
			SiteLonDeg: new(0.0)}}
	r := &road{gate: New(trial, 1), nowNs: 1}
	for _, r.atM = range []float64{0, 75} { // at the roadside node, and at the mark before
		for range 200 {
			if r.look(0) {
				t.Fatalf("it opened at %.0f m", r.atM)
			}
		}
	}
	if at, opened := r.drive(100, 3); opened {
		t.Fatalf("it opened at %.0f m, in a car that rolls", at)
	}
	for i := range 60 {
		speed := 0.0
		if i == 20 { // one fix of a receiver that errs
			speed = 1.5
		}
		if opened := r.look(speed); opened != (i >= 50) {
			t.Fatalf("standing for %.1f s: open %t", float64(i)/10, opened)
		}
	}
	if r.look(2) {
		t.Error("it is open while the car rolls off")
	}
}

// A car that stops beyond the place at which the window opens has not come to its start, however near that is; and one
// that drives against its direction opens nothing.
func TestBeyondThePlaceNobodyIsAtTheStart(t *testing.T) {
	trial := outbound("segment", wire.Gate{AtStart: true, PlaceM: new(18.0)})
	r := &road{gate: New(trial, 1), nowNs: 1, atM: 30}
	if r.look(0); r.last != "drive back beyond the mark at which the window opens" {
		t.Error(r.last)
	}
	if at, opened := r.drive(200, 8.3); opened {
		t.Fatalf("it opened at %.0f m", at)
	}
	r.drive(10, 8.3)
	r.look(0)
	if at, opened := r.drive(60, 8.3); !opened || at < 18 {
		t.Errorf("driven from the start: open %t at %.0f m", opened, at)
	}
	r = &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	r.look(0)
	r.atM = 60 // pushed there, say
	if at, opened := r.drive(-50, 8.3); opened {
		t.Errorf("driven back: open at %.0f m", at)
	}
	if r.drive(8, 8.3); r.last != "stop at the start" {
		t.Error(r.last)
	}
	r.look(0)
	if r.drive(17, 8.3); r.last != "waiting for the mark at 18 m" {
		t.Error(r.last)
	}
}

// A depart from the roadside node needs no bearing.
func TestADepartNeedsNoBearing(t *testing.T) {
	for heading := range 360 {
		trial := outbound("depart", wire.Gate{AtStart: true})
		trial.Course.HeadingDeg = float64(heading)
		r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
		r.look(0)
		if _, opened := r.drive(100, 8.3); !opened {
			t.Fatalf("heading %d: %s", heading, r.last)
		}
	}
}

// Whoever does not know where the roadside node stands cannot know the start.
func TestAStartWithoutASiteIsNeverReached(t *testing.T) {
	trial := outbound("depart", wire.Gate{AtStart: true})
	trial.Course.SiteLatDeg, trial.Course.SiteLonDeg = nil, nil
	r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	if r.look(0); r.last != "the roadside node's place is not known" {
		t.Error(r.last)
	}
	if _, opened := r.drive(200, 8.3); opened {
		t.Error("it opened")
	}
}

// A car stood at its start, missed its speed, turned and drives back past the roadside node. Wherever it turned, and
// at whatever speed of the schedule, its gate stays closed until it has stood at its start again.
func TestADepartThatWasMissedBeginsAgain(t *testing.T) {
	for _, heading := range []float64{90, 270, 0} { // the road's bearing is not needed
		for _, mps := range []float64{2.8, 8.3, 16.7} {
			for _, turnsM := range []float64{60, 150, 300} {
				trial := outbound("depart", wire.Gate{AtStart: true})
				trial.Course.HeadingDeg, trial.SpeedMps = heading, new(mps)
				r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
				r.look(0)
				if at, opened := r.drive(turnsM, mps+2); opened {
					t.Fatalf("too fast: open at %.0f m", at)
				}
				r.look(0)
				for speed := 0.25; speed < mps; speed += 0.25 { // 2.5 m/s²
					r.trackDeg = 270
					r.atM -= speed / 10
					if r.look(speed) {
						t.Fatalf("turned at %.0f m, at %.1f m/s: open at %.0f m", turnsM, speed, r.atM)
					}
				}
				if at, opened := r.drive(-60, mps); opened {
					t.Errorf("turned at %.0f m, driven back at %.1f m/s: open at %.0f m", turnsM, mps, at)
				}
				if !strings.HasPrefix(r.last, "drive to the start, ") {
					t.Errorf("driven back: %q", r.last)
				}
				r.drive(10, mps)
				r.look(0)
				if at, opened := r.drive(100, mps); !opened || at < 10 {
					t.Errorf("from the start again: open %t at %.0f m: %s", opened, at, r.last)
				}
			}
		}
	}
}

// A car that halts down the road and sets off from there has not set off from its start.
func TestWhoeverHaltsDownTheRoadComesBack(t *testing.T) {
	for _, halts := range []struct {
		looks  int
		opened bool
	}{{20, true}, {40, false}} { // for 2 s, as a receiver in error may say, and for 4 s
		r := &road{gate: New(outbound("depart", wire.Gate{AtStart: true}), 1), nowNs: 1, atM: 10}
		r.look(0)
		r.drive(80, 5)
		for range halts.looks {
			r.look(0.2)
		}
		if at, opened := r.drive(200, 8.3); opened != halts.opened {
			t.Errorf("after %d looks at a car that stands at 80 m: open %t at %.0f m: %s", halts.looks, opened, at,
				r.last)
		}
	}
}

// What errs by as much as a start may be off refuses no departure: a site off by 25 m, a bend of 90 degrees, a track
// that is wrong for a fix or that a car which stands is said to have, a car that rolls, or backs and stands again.
func TestNoDepartureIsRefused(t *testing.T) {
	trial := outbound("depart", wire.Gate{AtStart: true})
	for _, mps := range []float64{2.8, 8.3} {
		for _, siteM := range []float64{-15, 0, 25} {
			trial := trial
			trial.SpeedMps = new(mps)
			trial.Course.SiteLonDeg = new(siteM * degPerM)
			r := &road{gate: New(trial, 1), nowNs: 1, atM: 10, trackDeg: 270}
			for range 100 {
				r.look(0.3)
			}
			r.drive(13, 1.5)
			r.drive(8, 1.5)
			r.look(0)
			if _, opened := r.drive(60, mps); !opened {
				t.Errorf("site %.0f m off, %.1f m/s: %s", siteM, mps, r.last)
			}
		}
	}
	{ // across the line to the node
		r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
		r.look(0)
		r.drive(100, 5)
		r.trackDeg = 180
		opened := false
		for range 10 {
			opened = r.look(8.3) || opened
		}
		if !opened {
			t.Errorf("across: %s", r.last)
		}
	}
	r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	r.look(0)
	r.drive(60, 5)
	r.trackDeg = 270
	for range 20 { // two fixes of 1 Hz
		r.look(5)
	}
	if _, opened := r.drive(100, 8.3); !opened {
		t.Errorf("after a wrong track: %s", r.last)
	}
}

// A pass without a place is driven in its direction, too.
func TestAPassIsDrivenInItsDirection(t *testing.T) {
	trial := outbound("pass", wire.Gate{AtStart: true})
	trial.Course.StartM = -200
	r := &road{gate: New(trial, 1), nowNs: 1, atM: -200}
	r.look(0)
	r.drive(100, 5)
	if at, opened := r.drive(-150, 8.3); opened {
		t.Errorf("driven back: open at %.0f m", at)
	}
	r.drive(-200, 5)
	r.look(0)
	if _, opened := r.drive(0, 8.3); !opened {
		t.Error(r.last)
	}
}

// A segment is the same stretch at every speed. A car that has its speed only behind the place at which the window
// opens, by more than a start may be off, has missed it; one that has come to it in time has not, though the receiver
// lost the fixes there.
func TestASegmentIsNotDrivenLate(t *testing.T) {
	trial := outbound("segment", wire.Gate{AtStart: true, PlaceM: new(18.0)})
	trial.Course.SegmentM = new(20.0)
	inbound := trial
	inbound.Direction, inbound.Gate.PlaceM = "inbound", new(122.0)
	for _, c := range []struct {
		trial   wire.Trial
		toM     float64 // as far as the car is too fast
		opensM  float64 // 0: not before it has stood at its start again
		endM    float64
		againM  float64
		stoodAt float64
	}{
		{trial, 30, 35, 300, 18, 10}, {trial, 50, 0, 300, 18, 10}, {trial, 200, 0, 300, 18, 10},
		{inbound, 110, 105, -100, 122, 130}, {inbound, 90, 0, -100, 122, 130},
	} {
		r := &road{gate: New(c.trial, 1), nowNs: 1, atM: c.stoodAt}
		r.look(0)
		r.drive(c.toM, 12)
		at, opened := r.drive(c.endM, 8.3)
		if opened != (c.opensM != 0) || opened && (at-c.opensM > 2 || c.opensM-at > 2) {
			t.Errorf("%s, too fast up to %.0f m: open %t at %.0f m, want %.0f", c.trial.Direction, c.toM, opened, at,
				c.opensM)
		}
		if opened {
			continue
		}
		if !strings.HasPrefix(r.last, "too late: drive back to the start, ") || r.gate.Started() {
			t.Errorf("%s, too fast up to %.0f m: %q", c.trial.Direction, c.toM, r.last)
		}
		r.drive(c.stoodAt, 8.3)
		if r.look(5); r.last != "stop at the start" {
			t.Error(r.last)
		}
		r.look(0)
		at, opened = r.drive(c.endM, 8.3)
		if !opened || at-c.againM > 2 || c.againM-at > 2 {
			t.Errorf("%s, from the start again: open %t at %.0f m", c.trial.Direction, opened, at)
		}
	}
	r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	r.look(0)
	r.drive(17, 8.3)
	r.nowNs += 4e9
	r.atM += 4 * 8.3
	if at, opened := r.drive(100, 8.3); !opened || at > 60 {
		t.Errorf("in the band all the time: open %t at %.0f m: %s", opened, at, r.last)
	}
}

// after_s of a car that drives is counted from when it sets off, as plan and rehearsal reckon it, however long the
// marshal holds it.
func TestTheTimeOfADriveBeginsAsItSetsOff(t *testing.T) {
	trial := outbound("depart", wire.Gate{AtStart: true, AfterS: new(30.0)})
	r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	for range 400 {
		r.look(0)
	}
	at, opened := r.drive(400, 8.3)
	if want := 10 + 30.5*8.3; !opened || at < want-2 || at > want+2 {
		t.Errorf("open %t at %.0f m, want 30 s and half a second after the start, at %.0f m", opened, at, want)
	}
	trial.Gate.SpeedBand = false
	r = &road{gate: New(trial, 1), nowNs: 1, atM: 10}
	for range 400 {
		if r.look(0) {
			t.Fatal("it opened while the car stood")
		}
	}
}

// Who waits at the start for that time to pass waits in vain, and is told so; who has set off is told the speed to
// hold.
func TestWhoStandsAtTheStartIsToldToSetOff(t *testing.T) {
	trial := outbound("depart", wire.Gate{AtStart: true, AfterS: new(30.0)})
	for _, c := range []struct {
		band  bool
		drive string
	}{{true, "hold: 8.3 of 8.3 m/s; the window stays closed for 20 s"}, {false, "the window stays closed for 20 s"}} {
		r := &road{gate: New(trial, 1), nowNs: 1, atM: 10}
		r.gate.rule.SpeedBand = c.band
		for range 600 {
			r.look(0)
		}
		if r.last != "set off: the window stays closed for 30 s after that" {
			t.Errorf("who stands at the start is told %q", r.last)
		}
		if r.drive(92.6, 8.3); r.last != c.drive { // for 10 s
			t.Errorf("10 s later the driver is told %q, want %q", r.last, c.drive)
		}
	}
	g := New(wire.Trial{Gate: wire.Gate{AfterS: new(30.0), TimeoutS: 60}}, 1)
	if _, got := g.Open(1e9, wire.GPS{}); got != "waiting for the time" {
		t.Errorf("where no car comes to a start: %q", got)
	}
}

// The road may cross the 180th meridian.
func TestARoadCrossesTheMeridian(t *testing.T) {
	trial := outbound("segment", wire.Gate{AtStart: true, PlaceM: new(18.0)})
	trial.Course.SiteLonDeg = new(180 - 20*degPerM)
	g := New(trial, 1)
	for nowNs, atM := int64(1), 10.0; atM < 60; nowNs, atM = nowNs+100e6, atM+0.83 {
		lon, speed := 180-20*degPerM+atM*degPerM, 8.3
		if lon >= 180 {
			lon -= 360
		}
		if atM == 10 {
			speed = 0
		}
		open, detail := g.Open(nowNs, wire.GPS{Mode: 3, FixAgeMs: new(50.0), SpeedMps: &speed, LatDeg: new(0.0),
			LonDeg: &lon, TrackDeg: new(90.0)})
		if open != (atM >= 18) {
			t.Fatalf("at %.1f m: open %t, %s", atM, open, detail)
		}
	}
}

// A car at its mark beside the line on which that is looked for is told so: a compass shows another north.
func TestAParkedCarBesideTheLineIsToldSo(t *testing.T) {
	trial := wire.Trial{Gate: wire.Gate{AtStart: true, AfterS: new(5.0), TimeoutS: 35},
		Course: wire.Course{Kind: "parked", MarkM: new(150.0), OffsetM: 5, HeadingDeg: 100, SiteLatDeg: new(0.0),
			SiteLonDeg: new(0.0)}}
	for atM, want := range map[float64]string{
		150: "21 m beside the road's line: is course.heading_deg its true bearing?",
		155: "22 m beside the road's line: is course.heading_deg its true bearing?",
		100: "drive to the mark, 52 m from here",
	} {
		r := &road{gate: New(trial, 1), nowNs: 1, atM: atM}
		if r.look(0); r.last != want {
			t.Errorf("at %.0f m: %q, want %q", atM, r.last, want)
		}
	}
}

// No node rests where a window may open, nor for the last seconds before it may.
func TestANodeRestsOnlyWhileNoWindowCanOpen(t *testing.T) {
	for _, c := range []struct {
		gate wire.Gate
		want int64
	}{
		{wire.Gate{}, 0},
		{wire.Gate{SpeedBand: true}, 0},
		{wire.Gate{AfterS: new(0.0)}, 0},
		{wire.Gate{AfterS: new(2.0)}, 0},
		{wire.Gate{AfterS: new(3.5)}, 7e9 + 1.5e9},
		{wire.Gate{AfterS: new(3600.0), SpeedBand: true}, 7e9 + 3598e9},
	} {
		if got := RestUntil(wire.Trial{Gate: c.gate}, 7e9); got != c.want {
			t.Errorf("%+v: it rests until %d, want %d", c.gate, got, c.want)
		}
	}
}
