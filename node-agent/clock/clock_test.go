package clock

import (
	"testing"
	"time"
)

func TestSystemClockRises(t *testing.T) {
	var c Clock = System{}
	first := c.BootNs()
	if first <= 0 {
		t.Fatalf("boot clock %d", first)
	}
	for range 1000 {
		next := c.BootNs()
		if next < first {
			t.Fatalf("boot clock went from %d to %d", first, next)
		}
		first = next
	}
	if d := time.Since(c.Wall()); d < -time.Minute || d > time.Minute {
		t.Errorf("wall clock is %v away", d)
	}
}

func TestTheTimeAsleepStandsWhileTheMachineIsAwake(t *testing.T) {
	first := AsleepNs()
	time.Sleep(20 * time.Millisecond)
	if grown := AsleepNs() - first; first < -1e6 || grown < -2e6 || grown > 2e6 {
		t.Errorf("asleep for %d ns, and %d more while awake", first, grown)
	}
}

func TestTheClocksOfAMachineThatNobodySlewsStandTogether(t *testing.T) {
	first, ok := SlewedNs()
	time.Sleep(20 * time.Millisecond)
	if then, too := SlewedNs(); !ok || !too || max(then-first, first-then) > 1e6 {
		t.Errorf("slewed by %d ns, then by %d; %t, %t", first, then, ok, too)
	}
}

func TestAWallClockBeforeTheBuildIsUnset(t *testing.T) {
	built := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	for wall, unset := range map[time.Time]bool{
		time.Unix(0, 0):                      true,
		built.Add(-25 * time.Hour):           true,
		built.Add(-time.Hour):                false, // the builder's clock may be a little off
		built.Add(20 * 365 * 24 * time.Hour): false,
	} {
		if got := IsUnset(wall, built); got != unset {
			t.Errorf("%v: %v", wall, got)
		}
	}
	if IsUnset(time.Unix(0, 0), time.Time{}) {
		t.Error("without a build date nothing can be told")
	}
}
