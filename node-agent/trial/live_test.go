package trial

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Between attempts nothing is sampled, and the next is shown before its samplers begin.
func TestTheLastAttemptsSpeedIsNotThePresentOne(t *testing.T) {
	e := &Engine{deps: Deps{Clock: clock.System{}}, current: &attempt{state: wire.StateArmed}}
	shown := func(agoMs, ageMs int64) *float64 {
		now := e.deps.Clock.BootNs()
		e.live.see(now-agoMs*1e6, &wire.GPS{Mode: 3, SpeedMps: ptr(16.7), FixAgeMs: ptr(float64(ageMs))})
		return e.live.snapshot(e).SpeedMps
	}
	if got := shown(0, 100); got == nil || *got != 16.7 {
		t.Errorf("a fresh fix shows %v, want 16.7", got)
	}
	for name, old := range map[string][2]int64{"a sample": {5000, 100}, "a fix": {0, 5000}} {
		if got := shown(old[0], old[1]); got != nil {
			t.Errorf("%s of 5 s ago shows %v m/s", name, *got)
		}
	}
}
