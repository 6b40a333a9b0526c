//go:build e2e

package refusals

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2EASpoolThatIsTooSmall: a trial of one second with a gate of 20 s may
// record 6.1 MB, and that is known before it begins.
func TestE2EASpoolThatIsTooSmall(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "quota_bytes: 1000000\nquota_free_bytes: 0\n")
	d.up(t, "bravo", "")
	o := d.run(t, patient)
	o.refused(t, "node alpha has no room for the records of trial 1: spool has room for ", " MB, 6.1 MB are needed: "+
		"raise the spool's quota of 1.0 MB (disk_full)\n")
	d.noRun(t)
	if strings.Contains(o.stderr, "] trial 1") {
		t.Error("the trial was begun")
	}
	if after := testnet.Snapshot(t, d.spaces["alpha"].Name); after != d.before["alpha"] {
		t.Errorf("alpha was changed:\n%s\nwas\n%s", after, d.before["alpha"])
	}
}

// TestE2EADiskThatIsFull has a spool on a disk of its own.
func TestE2EADiskThatIsFull(t *testing.T) {
	t.Run("beyond what is left to others", func(t *testing.T) {
		d := newDesk(t)
		d.upOnSmallDisk(t, "alpha", 3, "") // 256 MB are to be left
		d.up(t, "bravo", "")
		d.run(t, patient).refused(t, "node alpha: disk: spool is full: make room on the disk of "+d.path("small",
			"face", "spool")+
			" (256.0 MB of it are kept free for others); collect and confirm the records, or free disk space\n")
		d.noRun(t)
	})
	t.Run("too small for the trial", func(t *testing.T) {
		d := newDesk(t)
		d.upOnSmallDisk(t, "alpha", 3, "quota_free_bytes: 0\n")
		d.up(t, "bravo", "")
		d.run(t, patient).refused(t, "node alpha has no room for the records of trial 1: spool has room for ",
			" MB, 6.1 MB are needed: make room on the disk of "+d.path("small", "face", "spool"))
		d.noRun(t)
	})
	t.Run("full in the middle of a run", func(t *testing.T) {
		d := newDesk(t)
		disk := d.upOnSmallDisk(t, "alpha", 9, "quota_free_bytes: 0\n")
		d.up(t, "bravo", "")
		d.fullMidway(t, disk)
	})
}

// attemptFailed is what the controller says of the first attempt when it fails.
var attemptFailed = regexp.MustCompile(`trial 1: failed \((.*)\)`)

// fullMidway fills alpha's disk while its first trial goes, and makes room
// again for the rest of the run.
func (d *desk) fullMidway(t *testing.T, disk string) {
	campaign := strings.Replace(patient, "repetitions: 1", "repetitions: 3", 1)
	c, out := d.underWay(t, campaign, "--name", "midway")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 6<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	o := outcome{c.ProcessState.ExitCode(), "", out.String()}
	trial, attempt := 2, 1
	switch failed := attemptFailed.FindStringSubmatch(o.stderr); {
	case failed != nil && testnet.Late(wire.ParseReason(failed[1])): // on a busy machine; it is to be repeated
		trial, attempt = 1, 2
	case !strings.Contains(o.stderr, "trial 1: accepted"):
		t.Error("the first trial, for which there was room, was not accepted")
	}
	o.refused(t, fmt.Sprintf("trial %d was not begun: node \"alpha\" at 10.98.0.1:7443: arm trial %[1]d, attempt %d "+
		"of run \"midway\": node alpha has no room for the records of trial %[1]d: ", trial, attempt), " with --resume")
	if strings.Contains(o.stderr, "trial 3:") {
		t.Error("the run went on")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	again := finish(t, d.inside("alpha", "fieldmesh", "run", "--resume", "midway", "--runs", d.path("runs"), "--fleet",
		d.path("fleet", "fleet.yaml")))
	t.Logf("%s%s", again.stdout, again.stderr)
	if again.status != 0 || !strings.Contains(again.stdout, "3 of 3 trials accepted") {
		t.Error("with room again, the run does not come to its end")
	}
}

// upOnSmallDisk starts an agent whose state is on a disk of some megabytes that
// only it and its children see, and returns the way to it.
func (d *desk) upOnSmallDisk(t *testing.T, node string, megabytes int, lines string) string {
	t.Helper()
	if err := os.Mkdir(d.path("small"), 0o755); err != nil {
		t.Fatal(err)
	}
	// ip netns exec gives each program a mount namespace of its own.
	d.wrap = []string{"sh", "-c", fmt.Sprintf(`mount -t tmpfs -o size=%dm,mode=755 none %s && exec "$@"`, megabytes,
		d.path("small")), "sh"}
	defer func() { d.wrap = nil }()
	c := d.up(t, node, lines+"state_dir: "+d.path("small")+"\n")
	return fmt.Sprintf("/proc/%d/root%s", c.Cmd.Process.Pid, d.path("small"))
}

// TestE2EAFullDiskOfTheController: a run is not begun where it cannot be kept, and
// one whose disk fills up ends with what to do.
func TestE2EAFullDiskOfTheController(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	runs := d.path("runs")
	if err := os.Mkdir(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("small", runs, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(runs, 0); err != nil {
			t.Error(err)
		}
	})
	d.run(t, patient).refused(t, runs+": its disk has 1.0 MB free, and a run is begun with 100 MB at least")
	d.noRun(t)
	if err := unix.Mount("small", runs, "tmpfs", unix.MS_REMOUNT, "size=110m"); err != nil {
		t.Fatal(err)
	}
	c, out := d.underWay(t, patient, "--name", "full")
	testnet.Await(t, time.Minute, "a disk that is full", func() bool {
		var is unix.Statfs_t
		if err := unix.Statfs(runs, &is); err != nil {
			t.Fatal(err)
		}
		used := (is.Blocks - is.Bfree) * uint64(is.Bsize)
		// Refused, where the run has written meanwhile.
		return unix.Mount("small", runs, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used)) == nil
	})
	_ = c.Wait()
	o := outcome{c.ProcessState.ExitCode(), "", out.String()}
	o.refused(t, "the disk of "+filepath.Join(runs, "full")+" is full: make room on it, then continue with --resume")
}

// underWay begins a run on alpha, and returns once its first trial goes.
func (d *desk) underWay(t *testing.T, campaign string, args ...string) (*exec.Cmd, *testnet.Output) {
	t.Helper()
	c := d.inside("alpha", "fieldmesh", d.runArgs(t, campaign, args...)...)
	out := &testnet.Output{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, time.Minute, "the first trial is under way", func() bool {
		return strings.Contains(out.String(), "trial 1: running")
	})
	return c, out
}
