package gps

import (
	"context"
	"errors"
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
	if !c.Push(pushed(200, 13.9)) {
		t.Error("a first fix is not new")
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
	c.Push(pushed(0, 13.9))
	c.Tick()
	return clk, c
}

func TestAPushThatIsRepeatedChangesNothing(t *testing.T) {
	clk, c := afterAFix()
	clk.set(10100 * time.Millisecond)
	for _, again := range []wire.Fix{pushed(100, 13.9), pushed(95, 13.9), pushed(5000, 3)} {
		if c.Push(again) {
			t.Errorf("taken as new: %+v", again)
		}
	}
	if g := c.Tick(); g.SpeedMps != nil || *g.FixAgeMs != 100 || !g.Connected {
		t.Errorf("after it came again: %+v", g)
	}
}

func TestASilentSenderIsGoneAndAGapIsNoFix(t *testing.T) {
	clk, c := afterAFix()
	clk.set(11 * time.Second)
	c.Push(wire.Fix{Mode: 1})
	if g := c.Tick(); g.Mode != 1 || g.SpeedMps != nil || *g.FixAgeMs != 1000 || !g.Connected {
		t.Errorf("without a fix: %+v", g)
	}
	clk.set(14100 * time.Millisecond)
	if g := c.Tick(); g.Mode != 0 || g.Connected || *g.FixAgeMs != 4100 {
		t.Errorf("after silence: %+v", g)
	}
}

func TestRunOfAPushedClientEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := NewPushed(&handClock{}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
