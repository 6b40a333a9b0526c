package gps

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func pushed(ageMs, speed float64) wire.Fix {
	lat, lon := 52.1, 11.6
	return wire.Fix{AgeMs: ageMs, Mode: 3, LatDeg: &lat, LonDeg: &lon, SpeedMps: &speed}
}

func TestAPushedFixIsOfWhenItWasTaken(t *testing.T) {
	clk := &handClock{}
	c := NewPushed(clk)
	clk.set(10 * time.Second)
	if g := c.Tick(); g.Connected || g.Mode != 0 || g.FixAgeMs != nil {
		t.Errorf("before anything: %+v", g)
	}
	if by, _ := c.Push("driver", pushed(200, 13.9), false); by != "driver" {
		t.Errorf("after a first fix %q is followed", by)
	}
	g := c.Tick()
	if speedOf(g) != "13.9" || *g.FixAgeMs != 200 || *g.FixBootNs != int64(9800*time.Millisecond) || !g.Connected ||
		g.Mode != 3 {
		t.Errorf("first tick: %+v", g)
	}
	if g := c.Tick(); g.SpeedMps != nil {
		t.Errorf("the fix is shown again: %+v", g)
	}
}

// afterAFix is a client that has shown the fix of 10 s.
func afterAFix() (*handClock, *Client) {
	clk := &handClock{}
	c := NewPushed(clk)
	clk.set(10 * time.Second)
	c.Push("driver", pushed(0, 13.9), false)
	c.Tick()
	return clk, c
}

func TestAPushThatIsRepeatedChangesNothing(t *testing.T) {
	clk, c := afterAFix()
	clk.set(10100 * time.Millisecond)
	for _, again := range []wire.Fix{pushed(100, 13.9), pushed(95, 13.9), pushed(5000, 3)} {
		c.Push("driver", again, false)
		if g := c.Tick(); g.SpeedMps != nil {
			t.Errorf("taken as new: %+v", again)
		}
	}
	if g := c.Tick(); g.SpeedMps != nil || *g.FixAgeMs != 100 || !g.Connected {
		t.Errorf("after it came again: %+v", g)
	}
}

// pushAt has a driver's fix of a moment arrive, and returns what is known then.
func pushAt(c *Client, clk *handClock, arrives time.Duration, of time.Time, measuring bool) wire.GPS {
	clk.set(arrives)
	f := pushed(0, 13.9)
	f.TimeUTC = of.Format("2006-01-02T15:04:05.000Z")
	c.Push("driver", f, measuring)
	return c.Tick()
}

// A fix that the network held up is as old as its receiver's clock says, though its sender gave its age before it went,
// for as long as the network holds all of them up.
func TestAPushThatWasHeldUpIsAsOldAsItIs(t *testing.T) {
	clk := &handClock{}
	c := NewPushed(clk)
	taken := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	push := func(arrives, of time.Duration) wire.GPS { return pushAt(c, clk, arrives, taken.Add(of), true) }
	for at := 10 * time.Second; at < 14*time.Second; at += time.Second {
		if g := push(at, at); g.SpeedMps == nil || *g.FixBootNs != at.Nanoseconds() {
			t.Fatalf("at %s: %+v", at, g)
		}
	}
	about := func(ms *float64, want float64) bool { return ms != nil && math.Abs(*ms-want) <= 10 } // 200 ppm of 26 s: 5
	for of := 14 * time.Second; of < 34*time.Second; of += time.Second {
		if g := push(of+2*time.Second, of); g.SpeedMps == nil || !about(g.FixAgeMs, 2000) {
			t.Errorf("the fix of %s, 2 s later: %+v", of, g)
		}
	}
	if g := push(35500*time.Millisecond, 33*time.Second); g.SpeedMps != nil || !about(g.FixAgeMs, 2500) {
		t.Errorf("the fix of 33 s again: %+v", g)
	}
	if g := push(36*time.Second, 35900*time.Millisecond); g.SpeedMps == nil || !about(g.FixAgeMs, 100) {
		t.Errorf("the fix of 35.9 s, at 36 s: %+v", g)
	}
	clk.set(37 * time.Second)
	c.Push("driver", pushed(0, 13.9), true) // whose receiver's time is not known
	if g := c.Tick(); g.SpeedMps == nil || *g.FixAgeMs != 0 {
		t.Errorf("a fix without a time: %+v", g)
	}
	if _, ok := c.BehindBoot(); ok {
		t.Error("a pushed fix's time is taken for that of a receiver here")
	}
}

func TestASilentSenderIsGoneAndAGapIsNoFix(t *testing.T) {
	clk, c := afterAFix()
	clk.set(11 * time.Second)
	c.Push("driver", wire.Fix{Mode: 1}, false)
	if g := c.Tick(); g.Mode != 1 || g.SpeedMps != nil || *g.FixAgeMs != 1000 || !g.Connected {
		t.Errorf("without a fix: %+v", g)
	}
	clk.set(14100 * time.Millisecond)
	if g := c.Tick(); g.Mode != 0 || g.Connected || *g.FixAgeMs != 4100 {
		t.Errorf("after silence: %+v", g)
	}
}

// Two phones are in two places: the first that had a fix is followed until it is silent, or
// has been without a fix for longer than a tunnel takes.
//
//attack:phone another phone gives its own position as this node's | one phone is followed until it has been silent
//attack:and for 5 s or, while nothing is measured, without a fix for 30 s; on a phone that is the node only its own
func TestOneSenderOfFixesIsFollowed(t *testing.T) {
	clk := &handClock{}
	c := NewPushed(clk)
	for _, s := range []struct {
		atMs          int
		by            string
		mode          int
		speed         float64
		followed, has string // afterwards: who, and the speed of the newest fix
	}{
		{10_000, "experimenter", 1, 0, "experimenter", "none"}, // it has no fix, and so is not followed yet
		{10_100, "driver", 3, 13.9, "driver", "13.9"},
		{10_200, "experimenter", 3, 0, "driver", "13.9"},
		{14_000, "driver", 1, 0, "driver", "13.9"}, // a tunnel is no silence
		{18_900, "experimenter", 3, 0, "driver", "13.9"},
		{19_000, "experimenter", 3, 0, "driver", "13.9"},
		{19_001, "experimenter", 3, 0.5, "experimenter", "0.5"},
		{19_100, "driver", 3, 13.8, "experimenter", "0.5"},
		{24_102, "passenger", 1, 0, "passenger", "0.5"}, // is heard, and not followed yet
		{24_103, "driver", 3, 13.8, "driver", "13.8"},
	} {
		clk.set(time.Duration(s.atMs) * time.Millisecond)
		f := wire.Fix{Mode: s.mode}
		if s.mode == 3 {
			f = pushed(0, s.speed)
		}
		followed, _ := c.Push(s.by, f, false)
		if g, _ := c.Last(); followed != s.followed || speedOf(g) != s.has {
			t.Errorf("at %d ms %s pushed: %q is followed and has %s, want %q and %s", s.atMs, s.by, followed,
				speedOf(g), s.followed, s.has)
		}
	}
}

// A window's track is of one phone: it has a gap where that one has no fix.
func TestASenderThatStaysWithoutAFixGivesWayToOneThatHasOne(t *testing.T) {
	for measuresUntilS, staysS := range map[int]int{0: 30, 20: 30, 40: 40} {
		clk := &handClock{}
		c := NewPushed(clk)
		c.Push("van", pushed(0, 0), false)
		for s := 2; s <= 60; s += 2 {
			clk.set(time.Duration(s) * time.Second)
			measuring, want, before := s <= measuresUntilS, "van", "van"
			if s > staysS {
				want = "driver"
			}
			if s > staysS+2 {
				before = "driver"
			}
			c.Push("van", wire.Fix{Mode: 1}, measuring)
			c.Push("other", wire.Fix{Mode: 1}, measuring)
			if by, was := c.Push("driver", pushed(0, 13.9), measuring); by != want || was != before {
				t.Errorf("after %d s without a fix of the van, %d s of them in a window, %q is followed, before %q; "+
					"want %q and %q", s, measuresUntilS, by, was, want, before)
			}
		}
	}
}

func TestRunOfAPushedClientEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := NewPushed(&handClock{}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Where the boot clock gained on UTC, as one that is slewed does, fixes are no older for it, unless a window is
// measured: there, traffic may hold every one of them up.
func TestAClockThatWasSlewedMakesNoFixOlder(t *testing.T) {
	for _, measuring := range []bool{false, true} {
		clk := &handClock{}
		c := NewPushed(clk)
		taken := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		push := func(arrives, of time.Duration) wire.GPS { return pushAt(c, clk, arrives, taken.Add(of), measuring) }
		for at := 10 * time.Second; at < 20*time.Second; at += time.Second {
			push(at, at)
		}
		var last wire.GPS
		for of := 20 * time.Second; of <= 60*time.Second; of += time.Second {
			last = push(of+time.Second, of)
		}
		if old := last.FixAgeMs != nil && *last.FixAgeMs == 1000; last.FixAgeMs == nil || old != measuring ||
			!measuring && *last.FixAgeMs != 0 {
			t.Errorf("measuring %t: 40 s after the clock gained 1 s a fix has %+v", measuring, last)
		}
		if g := push(62*time.Second, 61500*time.Millisecond); g.FixAgeMs == nil || *g.FixAgeMs != 500 && measuring ||
			*g.FixAgeMs != 0 && !measuring {
			t.Errorf("measuring %t: one that comes 0.5 s sooner has %+v", measuring, g)
		}
	}
}

// An age that a sender told wrongly once makes its later fixes no older for good.
func TestAWrongAgeIsForgotten(t *testing.T) {
	for measuring, after := range map[bool]int{false: 20, true: 1200} {
		var q quickest
		began := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
		at := func(second int, early time.Duration) time.Duration {
			passed := time.Duration(second) * time.Second
			return time.Duration(q.excess("phone", began.Add(passed), int64(time.Hour+passed-early), measuring))
		}
		at(0, 2*time.Second)
		if got := at(1, 0); got != 2*time.Second {
			t.Errorf("beside a fix that was 2 s quicker it took %s longer, want 2s", got)
		}
		for second := 2; second < after; second++ {
			at(second, 0)
		}
		if got := at(after+1, 0); got != 0 {
			t.Errorf("measuring %t: %d s later it took %s longer than the quickest, want 0s", measuring, after, got)
		}
	}
}
