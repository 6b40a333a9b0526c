//go:build e2e

package journeys

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// On a road the next trial is armed while the car stands where the last one ended. It drives back at the next trial's
// own speed, and no window opens until it has stood at its start. Where that is follows from the receiver of the
// roadside node, for the campaign says no site.
func TestTheDriveBackOnARoadOpensNoWindow(t *testing.T) {
	d := newDesk(t, "")
	newReceiver(t, d.nodes["bravo"]) // stands at 0 m
	const speed, startM = 8.3, 10.0
	file := stationary(t, "back", "[8.3]", "course: {kind: none}", "course: {kind: depart, start_m: 10, offset_m: 5, "+
		"accel_mps2: 2.5, brake_mps2: 4, heading_deg: 90}")
	d.receiver.put(200)
	run := begin(t, "run", file, "--fleet", d.fleetFile(), "--runs", filepath.Join(d.dir, "runs"), "--name", "back",
		"--place", archive.PlaceRoad)
	follow := &follower{client: d.client(t, "alpha"), run: "back"}
	drivenBack := map[wire.TrialKey]bool{}
	for until := time.Now().Add(5 * time.Minute); !run.Over(); {
		if time.Now().After(until) {
			t.Fatalf("the run is not over:\n%s", run.Said())
		}
		step, k, changed := follow.next(t.Context())
		if !changed {
			continue
		}
		switch step {
		case "armed":
			drivenBack[k] = d.receiver.atM() > 25+startM
			d.receiver.drive(-speed)
			testnet.Await(t, time.Minute, "the car is back", func() bool { return d.receiver.atM() < startM+5 })
			d.receiver.drive(0)
			testnet.Await(t, 10*time.Second, "the car stands", d.receiver.stands)
			v, err := follow.client.View(t.Context(), "back", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if v.State != wire.StateArmed || *v.Current != k {
				t.Errorf("trial %d: when the car is back, the state is %s %s", k.Trial, v.State, v.Detail)
			}
			d.receiver.drive(speed)
		case "kept", "restoring":
			d.receiver.drive(0)
		}
	}
	if err := run.Wait(t, time.Minute); err != nil {
		t.Errorf("fieldmesh run: %v", err)
	}
	t.Logf("fieldmesh run:\n%s", run.Said())
	kept := openRun(t, filepath.Join(d.dir, "runs", "back"))
	kept.everyTrialOnce(t)
	for _, trial := range kept.Info().Plan.Trials {
		c := trial.Course
		if c.SiteLatDeg == nil || math.Abs(*c.SiteLatDeg-50) > 1e-5 || math.Abs(*c.SiteLonDeg-8) > 1e-5 {
			t.Errorf("trial %d: the plan has no site, or another: %+v", trial.Number, c)
		}
	}
	back := 0
	for _, far := range drivenBack {
		if far {
			back++
		}
	}
	if back < 2 {
		t.Errorf("the car drove back %d times: this shows nothing", back)
	}
}
