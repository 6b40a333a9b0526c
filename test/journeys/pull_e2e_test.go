//go:build e2e

package journeys

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// refused runs a command that has to fail, and returns what it printed.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), args...).CombinedOutput()
	if err == nil {
		t.Errorf("fieldmesh %v has succeeded:\n%s", args, out)
	}
	return string(out)
}

// The car drives out of range of everything, and the controller is gone: the
// nodes do the schedule by GO alone. Later one of them can be reached, then
// both, and what they did is collected, judged and on two disks.
func TestPullBringsHomeWhatTheNodesDidAlone(t *testing.T) { unlessLate(t, pullsHome) }

// unlessLate runs a test again, at most four times, that the machine's lateness has
// spoiled: one that expects of each trial that its first attempt is accepted.
func unlessLate(t *testing.T, test func(t *testing.T, mayBeLate bool) (late bool)) {
	t.Helper()
	for again := 4; again >= 0; again-- {
		late := false
		t.Run("whole", func(t *testing.T) {
			if late = test(t, again > 0); late {
				t.Log("the machine was late; once more")
			}
		})
		if !late {
			return
		}
	}
}

// lateAlone reports whether alpha found the machine late in an attempt of a run, with no
// controller to tell: the nodes drive that trial again.
func lateAlone(t *testing.T, d *desk, run string) bool {
	t.Helper()
	v, err := d.client(t, "alpha").View(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range v.Trials {
		if slices.ContainsFunc(trial.Attempts, func(a wire.Verdict) bool { return testnet.Late(a.Reason) }) {
			return true
		}
	}
	return false
}

// wasLate reports whether the machine was late in an attempt of a run.
func wasLate(k kept) bool {
	return slices.ContainsFunc(k.attempts, late)
}

func pullsHome(t *testing.T, mayBeLate bool) (late bool) {
	d := newDesk(t, "")
	file := stationary(t, "pulled", "[16.7]")
	c := d.start(t, file)
	done := 0
	c.steps = func(step string, k wire.TrialKey) {
		switch {
		case k.Attempt > 1 && mayBeLate:
			late = true
		case step == "armed" && k.Trial == 1:
			d.controlLink(t, false)
			if err := c.run.Cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		case step == "kept":
			done++
		}
	}
	c.drive(t, 10*time.Minute, func() bool { return late || done == len(c.trials) })
	if mayBeLate && (late || lateAlone(t, d, c.name)) {
		return true
	}

	usb := filepath.Join(d.dir, "usb")
	pull := []string{"pull", c.runDir(), "--fleet", d.fleetFile(), "--patience", "1s", "--copy", usb, "--verify"}
	d.control.Run(t, "ip", "link", "set", "bravo", "up")
	if said := refused(t, pull...); !strings.Contains(said, "alpha is away") ||
		strings.Contains(said, "bravo is away") || !strings.Contains(said, "unfinished MANIFEST.sha256") {
		t.Errorf("with the car away:\n%s", said)
	}
	if got := archivedRecords(t, c.runDir(), "bravo"); got == 0 {
		t.Error("nothing of bravo's came in while alpha was away")
	}

	d.control.Run(t, "ip", "link", "set", "alpha", "up")
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), pull...).CombinedOutput()
	said := string(out)
	if err != nil {
		if mayBeLate && wasLate(readRun(t, c.runDir())) {
			return true
		}
		t.Fatalf("fieldmesh %v: %v\n%s", pull, err, said)
	}
	t.Logf("fieldmesh pull:\n%s", said)
	if !strings.Contains(said, "both copies verified") || !strings.Contains(said, "2 of 2 trials accepted") {
		t.Errorf("the pull does not say that all is there:\n%s", said)
	}
	k := openRun(t, c.runDir())
	k.everyTrialOnce(t)
	k.nothingLost(t, deskNodes...)
	for _, at := range k.attempts {
		if w := windowOf(t, k.records(t, at.TrialKey), "bravo"); w.GoPath != "mesh" {
			t.Errorf("trial %d: GO reached bravo by %q, want by the mesh: there was no other way", at.Trial, w.GoPath)
		}
	}
	fieldmesh(t, "verify", filepath.Join(usb, "pulled"))
	d.restored(t) // with the last trial the run ended

	// Again: nothing is left to do, and nothing is spoilt by it.
	if said := fieldmesh(t, pull...); !strings.Contains(said, "both copies verified") {
		t.Errorf("a second pull:\n%s", said)
	}
	if said := refused(t, "pull", c.runDir(), "--fleet", d.fleetFile(), "--verify"); !strings.Contains(said, "--copy") {
		t.Errorf("one copy:\n%s", said)
	}
	return false
}

// archivedRecords counts a node's records in trials.
func archivedRecords(t *testing.T, dir, node string) int {
	t.Helper()
	k, n := readRun(t, dir), 0
	for _, at := range k.attempts {
		for _, r := range k.records(t, at.TrialKey) {
			if r.Node == node {
				n++
			}
		}
	}
	return n
}
