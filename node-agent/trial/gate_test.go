package trial

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What the driver is told is what brings the speed into its band.
func TestTheGateTellsTheDriverWhatToDo(t *testing.T) {
	for speed, want := range map[float64]string{2.1: "faster: 2.1 of 5.6 m/s", 5.3: "hold: 5.3 of 5.6 m/s",
		5.9: "hold: 5.9 of 5.6 m/s", 11.1: "slower: 11.1 of 5.6 m/s"} {
		g := newGate(wire.Trial{SpeedMps: new(5.6), Gate: wire.Gate{SpeedBand: true, HoldS: 0.5},
			Acceptance: wire.Acceptance{SpeedBandMps: new(0.5)}}, 1)
		open, got := g.open(2, wire.GPS{Mode: 3, FixAgeMs: new(10.0), SpeedMps: new(speed)})
		if open || got != want {
			t.Errorf("at %g m/s: open %t, %q, want %q", speed, open, got, want)
		}
	}
}
