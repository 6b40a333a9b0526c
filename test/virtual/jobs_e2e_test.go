//go:build e2e

package virtual

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2EJobsChangeNothing drives the same campaign one part at a time and two at
// a time, and names every field that differs.
func TestE2EJobsChangeNothing(t *testing.T) {
	d := newDesk(t, "[8.3, 16.7]")
	var runs []string
	for jobs := 1; jobs <= 2; jobs++ {
		out, err := d.rehearse("velocity.yaml", "--clock", "virtual", "--jobs", fmt.Sprint(jobs), "--name", "same",
			"--start", "2027-01-01T12:00:00Z").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "4 of 4 trials accepted") {
			t.Fatalf("%v\n%s", err, out)
		}
		d.whole(t, "same")
		runs = append(runs, d.path(fmt.Sprintf("runs/was-%d", jobs)))
		if err := os.Rename(d.path("runs/same"), runs[jobs-1]); err != nil {
			t.Fatal(err)
		}
	}
	differ := differences(t, runs[0], runs[1])
	allowed := named()
	allowed["finished.t_wall"] = "the parts are put together outside"
	for part := 1; part <= 4; part++ {
		for _, file := range []string{"MANIFEST.sha256", "MANIFEST.signature.json"} {
			allowed[fmt.Sprintf("MANIFEST.sha256 shards/%d/%s", part, file)] = "a part's manifest names its journal, " +
				"where what is noted outside bears this machine's time"
		}
	}
	for _, field := range slices.Sorted(maps.Keys(differ)) {
		if why, ok := allowed[field]; ok {
			t.Logf("%s differs: %s", field, why)
			continue
		}
		t.Errorf("%s differs: %s", field, differ[field])
	}
}

// TestE2EJobsAreKilledAndResumed kills a run in parts with all its kernels, and
// interrupts it, at random moments, and resumes it until it is whole.
func TestE2EJobsAreKilledAndResumed(t *testing.T) {
	d := newDesk(t, "[8.3, 16.7]")
	dice := rand.New(rand.NewPCG(testnet.Seed(t, rand.Uint64(), "the kills"), 0))
	args := []string{"velocity.yaml", "--clock", "virtual", "--jobs", "2", "--name", "killed"}
	for _, way := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, 0} {
		cmd := d.rehearse(args...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(dice.Int64N(int64(15 * time.Second)))
		if way != 0 {
			time.Sleep(after)
			_ = cmd.Process.Signal(way) // it may be done
		}
		err := cmd.Wait()
		status := cmd.ProcessState.ExitCode()
		t.Logf("%v after %v: status %d", way, after.Round(time.Millisecond), status)
		if want := map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGTERM: resumeStatus}[way]; status != want &&
			status != 0 {
			t.Fatalf("it ends with %d, want %d: %v\n%s", status, want, err, out.String())
		}
		d.nothingLeft(t)
		if _, err := os.Stat(d.path("runs/killed-parts")); err == nil {
			args = []string{"--resume", "killed", "--jobs", "2"}
		} else if _, err := os.Stat(d.path("runs/killed")); err == nil {
			args = []string{"--resume", "killed"}
		}
	}
	d.whole(t, "killed")
	accepted := map[int]int{}
	for _, v := range d.read(t, "killed").Decisions() {
		if v.Outcome == wire.Accepted {
			accepted[v.Trial]++
		}
	}
	if !maps.Equal(accepted, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}) {
		t.Errorf("accepted so often, by trial: %v, want each of 4 once", accepted)
	}
}
