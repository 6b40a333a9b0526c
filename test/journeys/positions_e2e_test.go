//go:build e2e

package journeys

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// With receivers of 1 Hz the distances at both edges of the window are those of
// the field, most to within a metre. An attempt in which the roadside's gpsd stood
// still is rejected for it, by name.
func TestPlacesAtTheEdgesAreTheFields(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	unlessLate(t, placesAreTheFields)
}

func placesAreTheFields(t *testing.T, mayBeLate bool) (wasLate bool) {
	file := velocity(t, "places", "[16.7]", "  duration_s: 10\n", "  duration_s: 4.3\n", "nmea_hz: 10",
		"nmea_hz: 1")
	run := rehearse(t, file)
	fl := run.fleet(t)
	bravo := strings.TrimSuffix(fl.Nodes["bravo"].Netns, "-ctl") + "-bravo"
	first := wire.TrialKey{Trial: 1, Attempt: 1}
	run.follow(t, fl, 10*time.Minute, func(step string, k wire.TrialKey) {
		if step == "measuring" && k == first {
			inWindow(0.5)
			stopGPSD(t, bravo, 3*time.Second)
		}
	})
	k := run.finish(t)
	k.everyTrialOnce(t)
	var offM []float64
	for _, at := range k.attempts {
		if at.TrialKey == first && mayBeLate && late(at) {
			return true
		}
		if at.TrialKey == first {
			if v := at.Verdict; v.Outcome != "rejected" ||
				!strings.HasPrefix(v.Reason.String(), "gps: fix_age_ms_max on bravo is ") {
				t.Errorf("the roadside's gpsd stood still for 3 s: %s %q", v.Outcome, v.Reason)
			}
			continue
		}
		if at.Verdict.Outcome == "accepted" {
			offM = append(offM, k.offTheField(t, at.TrialKey)...)
		}
	}
	// A fix that comes through gpsd 60 ms later than others is a metre off at 16.7 m/s;
	// on a busy machine one does now and then.
	slices.Sort(offM)
	if len(offM) == 0 || offM[len(offM)/2] > 1 {
		t.Errorf("distances are off by %.2f m, most by more than 1 m", offM)
	}
	return false
}

// offTheField returns by how much an attempt's distances differ from those of the
// field, and fails where that is more than they say.
func (k kept) offTheField(t *testing.T, key wire.TrialKey) (offM []float64) {
	t.Helper()
	trial, _ := k.Trial(key.Trial)
	for _, edge := range []string{"open", "close"} {
		got, told := k.metric(t, key, "distance_"+edge+"_m")
		truly, known := k.metric(t, key, "truth_distance_"+edge+"_m")
		offM = append(offM, math.Abs(got-truly))
		// A fix may be as late as a node may stand still, without failing the attempt.
		most := 1 + *trial.SpeedMps*verdict.StallMsMax(*windowOf(t, k.records(t, key), trial.Car))/1e3
		if !told || !known || math.Abs(got-truly) > most {
			t.Errorf("trial %d at %g m/s: %.2f m at the %s (told: %v), truly %.2f", key.Trial, *trial.SpeedMps, got,
				edge, told, truly)
		}
		off, _ := k.metric(t, key, "distance_"+edge+"_uncertainty_m")
		for _, node := range []string{trial.Car, trial.Roadside} {
			if !k.fixesAround(t, key, node, edge) {
				t.Errorf("trial %d: %s has no fix on either side of the %s", key.Trial, node, edge)
			}
		}
		if math.Abs(got-truly) > off {
			t.Errorf("trial %d at %g m/s: %.2f ± %.2f m at the %s, truly %.2f", key.Trial, *trial.SpeedMps, got, off,
				edge, truly)
		}
		t.Logf("trial %d at %g m/s, %s: %.2f ± %.2f m, truly %.2f", key.Trial, *trial.SpeedMps, edge, got, off, truly)
	}
	return offM
}

// fixesAround reports whether a node has fixes before and after an edge of its
// window: there is nothing to extrapolate.
func (k kept) fixesAround(t *testing.T, key wire.TrialKey, node, edge string) bool {
	t.Helper()
	records := k.records(t, key)
	w := windowOf(t, records, node)
	at := map[string]int64{"open": w.OpenBootNs, "close": w.CloseBootNs}[edge]
	fixes := verdict.Fixes(node, records)
	return len(fixes) > 0 && fixes[0].BootNs <= at && fixes[len(fixes)-1].BootNs >= at
}

// stopGPSD stops the gpsd of a network namespace for a while.
func stopGPSD(t *testing.T, namespace string, lasts time.Duration) {
	t.Helper()
	stopped := 0
	for _, pid := range testnet.Pids(namespace) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || string(name) != "gpsd\n" {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped++
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may be gone
	}
	if stopped != 1 {
		t.Fatalf("%d gpsd in %s, want one", stopped, namespace)
	}
	time.Sleep(lasts)
}
