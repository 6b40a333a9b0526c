//go:build e2e

package journeys

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/calibrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// From a rehearsal whose radio is known back to a scenario: through real agents,
// gpsd and TCP. A busy machine is late with fixes and signals, which at 16.7 m/s
// are metres; so what is asked is that the law comes out about right. That the
// intervals are true is tested in the radio's own time (controller/cmd).
func TestARehearsalIsCalibratedToWhatItWasMadeOf(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	file := velocity(t, "known", "[8.3, 16.7]", "duration_s: 10", "duration_s: 3",
		"clock_error_ms_max: 20", "clock_error_ms_max: 500",
		"start_m: 10, offset_m: 5, accel_mps2: 2.5, brake_mps2: 4", "start_m: 15, offset_m: 5, accel_mps2: 9, "+
			"brake_mps2: 9",
		"hold_s: 0.5, timeout_s: 60, lead_s: 0.5", "hold_s: 0.2, timeout_s: 60, lead_s: 0.3",
		"propagation: two_ray_ground\n  antenna_height_m: 1.5", "propagation: log_distance\n  path_loss_exponent: "+
			"2.5\n  unit_power_offset_db: {laptop-2: -6}")
	k := rehearse(t, file).finish(t)
	said := fieldmesh(t, "calibrate", k.Dir())
	t.Logf("%s", said)
	r, err := calibrate.Run(k.Archive, 0, func(radio string) float64 {
		_, dbm := phy.RadioDefaults(radio)
		return dbm
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Exponent == nil || math.Abs(r.Exponent.Value-2.5) > 0.5 {
		t.Errorf("exponent %+v, want 2.5", r.Exponent)
	}
	if p, known := r.PowerDb["laptop-1"]; !known || math.Abs(p.Value-3) > 1 {
		t.Errorf("laptop-1's power is %+v above the mean, want 3", p)
	}
	if r.AntennaDb != nil {
		t.Errorf("two units' antennas are told apart: %v", r.AntennaDb)
	}
	scenario := filepath.Join(k.Dir(), "calibrated.yaml")
	if out := fieldmesh(t, "plan", "check", scenario); !strings.Contains(out, "fine") {
		t.Errorf("the scenario: %s", out)
	}
	if out := fieldmesh(t, "compare", k.Dir(), k.Dir()); !strings.Contains(out, "signal_mean_dbm") ||
		!strings.Contains(out, "+0.00") {
		t.Errorf("the run beside itself:\n%s", out)
	}
}
