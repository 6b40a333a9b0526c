//go:build e2e

package journeys

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The controller is killed in the middle of a trial and never comes back. The
// nodes finish the schedule alone, held as the run wants them while there is
// something to do; then the dead man's timer puts everything back.
func TestTheDeadManPutsBackWhatAKilledControllerLeft(t *testing.T) { unlessLate(t, deadManPutsBack) }

func deadManPutsBack(t *testing.T, mayBeLate bool) (late bool) {
	d := newDesk(t, "dead_man_s: 10\n")
	// The window is longer than the dead man's time.
	file := stationary(t, "deadman", "[16.7]", "duration_s: 3", "duration_s: 11")
	clients := map[string]*fleet.Client{}
	for _, name := range deskNodes {
		clients[name] = d.client(t, name)
	}
	host := func(name string) wire.HostStatus {
		s, err := clients[name].Status(t.Context())
		if err != nil {
			t.Errorf("ask %s: %v", name, err)
		}
		return s.Host
	}
	c := d.start(t, file)
	done := 0
	c.steps = func(step string, k wire.TrialKey) {
		switch {
		case k.Attempt > 1 && mayBeLate:
			late = true
		case step == "measuring" && k.Trial == 1:
			if err := c.run.Cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		case step == "kept":
			for _, name := range deskNodes {
				if s := host(name); s.Detail != "" || len(s.Pending) == 0 {
					t.Errorf("%s after trial %d: changes in force %v, %q", name, k.Trial, s.Pending, s.Detail)
				}
			}
			done++
			if k != (wire.TrialKey{Trial: done, Attempt: 1}) {
				t.Errorf("trial %d attempt %d is over, it should have been trial %d", k.Trial, k.Attempt, done)
			}
		}
	}
	c.drive(t, 10*time.Minute, func() bool { return late || done == len(c.trials) })
	if mayBeLate && (late || lateAlone(t, d, c.name)) {
		return true
	}
	v, err := clients["alpha"].View(t.Context(), "deadman", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range v.Trials {
		for _, a := range trial.Attempts {
			if a.Outcome != "accepted" || a.Final {
				t.Errorf("trial %d: %+v, want accepted, provisionally", trial.Number, a)
			}
		}
	}
	for _, name := range deskNodes {
		testnet.Await(t, 30*time.Second, name+" has put everything back, and says why", func() bool {
			s := host(name)
			return len(s.Pending) == 0 && strings.Contains(s.Detail, "no call came for 10s")
		})
		if s := host(name); len(s.Failed) > 0 {
			t.Errorf("%s: failed %v", name, s.Failed)
		}
	}
	d.restored(t)
	if len(v.Trials) != len(c.trials) {
		t.Errorf("alpha did %d of %d trials", len(v.Trials), len(c.trials))
	}
	// What was measured waits on the nodes: the run is taken up and finished.
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), "run", "--resume", c.runDir(), "--fleet",
		d.fleetFile()).CombinedOutput()
	t.Logf("fieldmesh run --resume:\n%s", out)
	k := openRun(t, c.runDir())
	if mayBeLate && wasLate(k) { // at bravo, which only the controller judges by
		return true
	}
	if err != nil {
		t.Error(err)
	}
	k.everyTrialOnce(t)
	k.nothingLost(t, deskNodes...)
	d.restored(t)
	return false
}
