package trial

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Between attempts nothing is sampled, and the next is shown before its samplers begin.
func TestTheLastAttemptsSpeedAndTrackAreNotThePresentOnes(t *testing.T) {
	e := &Engine{deps: Deps{Clock: clock.System{}}, current: &attempt{state: wire.StateArmed}}
	shown := func(agoMs, ageMs int64) *wire.Live {
		now := e.deps.Clock.BootNs()
		e.live.see(now-agoMs*1e6, &wire.GPS{Mode: 3, SpeedMps: ptr(16.7), TrackDeg: ptr(87.5),
			FixAgeMs: ptr(float64(ageMs))})
		return e.live.snapshot(e)
	}
	if got := shown(0, 100); got.SpeedMps == nil || *got.SpeedMps != 16.7 || got.TrackDeg == nil ||
		*got.TrackDeg != 87.5 {
		t.Errorf("a fresh fix of 16.7 m/s to 87.5 degrees shows %+v", got)
	}
	for name, old := range map[string][2]int64{"a sample": {5000, 100}, "a fix": {0, 5000}} {
		if got := shown(old[0], old[1]); got.SpeedMps != nil || got.TrackDeg != nil {
			t.Errorf("%s of 5 s ago shows %+v", name, got)
		}
	}
}
