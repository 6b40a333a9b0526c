package gate

import (
	"testing"
	"time"

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
		gate         wire.Gate
		nowS, limitS int64
		want         time.Duration
	}{
		{wire.Gate{SpeedBand: true}, 0, 100, Every},
		{wire.Gate{AfterS: new(0.4)}, 0, 100, 400 * time.Millisecond},
		{wire.Gate{AfterS: new(60.0)}, 0, 100, time.Second},
		{wire.Gate{AfterS: new(60.0), SpeedBand: true}, 61, 100, Every},
		{wire.Gate{AfterS: new(60.0)}, 30, 30, Every},
	} {
		g := New(wire.Trial{Gate: c.gate}, 0)
		if got := g.ClosedFor(c.nowS*1e9, c.limitS*1e9, time.Second); got != c.want {
			t.Errorf("%+v after %d s: again after %v, want %v", c.gate, c.nowS, got, c.want)
		}
	}
}
