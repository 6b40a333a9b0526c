//go:build e2e

package virtual

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// resumeStatus says that a rehearsal was cut off and asks to be resumed.
const resumeStatus = 75

// kills is how often a rehearsal of two trials is killed before it may end.
func kills() int {
	if os.Getenv("FIELDMESH_SOAK") != "" {
		return 1000
	}
	return 5
}

// TestE2ESoakKilledAnywhere kills the kernel or its launcher at random moments,
// and resumes, until the run is complete.
func TestE2ESoakKilledAnywhere(t *testing.T) {
	d := newDesk(t, "[16.7]")
	dice := rand.New(rand.NewPCG(testnet.Seed(t, rand.Uint64(), "the kills"), 0))
	var before []wire.Verdict
	for range kills() {
		d.killOnce(t, dice)
		before = d.kept(t, before)
	}
	status, out := d.goOn(t, nil)
	if status != 0 {
		t.Fatalf("left in peace it ends with status %d:\n%s", status, out)
	}
	d.whole(t, "killed")
	accepted := map[int]int{}
	for _, v := range d.kept(t, before) {
		if v.Outcome == wire.Accepted {
			accepted[v.Trial]++
		}
	}
	if len(accepted) != 2 || accepted[1] != 1 || accepted[2] != 1 {
		t.Errorf("accepted so often, by trial: %v, want each of 2 once", accepted)
	}
}

// goOn begins the run or resumes it, and returns its status and what it said.
func (d *desk) goOn(t *testing.T, meanwhile func(*exec.Cmd)) (int, string) {
	t.Helper()
	args := []string{"velocity.yaml", "--clock", "virtual", "--name", "killed"}
	if _, err := os.Stat(d.path("runs/killed/run.json")); err == nil {
		args = []string{"--resume", "killed"}
	}
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := d.rehearse(args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(cmd)
	}
	err = cmd.Wait()
	text, rerr := os.ReadFile(log.Name())
	if rerr != nil {
		t.Fatal(rerr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// killOnce lets the rehearsal run for a while and ends it, one way or another.
func (d *desk) killOnce(t *testing.T, dice *rand.Rand) {
	t.Helper()
	after := time.Duration(dice.Int64N(int64(15 * time.Second)))
	way := dice.IntN(4)
	want := resumeStatus
	status, out := d.goOn(t, func(cmd *exec.Cmd) {
		time.Sleep(after)
		kernels, stubs := d.processes(t)
		if way == 3 && len(stubs) > 0 { // a program in virtual time dies; what is then, is interrupted
			_ = syscall.Kill(stubs[dice.IntN(len(stubs))], syscall.SIGKILL)
			time.Sleep(3 * time.Second)
		}
		switch {
		case way == 0 && len(kernels) == 1:
			_ = syscall.Kill(kernels[0], syscall.SIGKILL) // it may just have ended
		case way == 1:
			want = -1 // ended by a signal
			_ = cmd.Process.Kill()
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	})
	t.Logf("way %d after %v: status %d", way, after.Round(time.Millisecond), status)
	if status != want && status != 0 { // 0: it was done before
		t.Errorf("killed, it ends with status %d, want %d:\n%s", status, want, out)
	}
	d.nothingLeft(t)
}

// kept: what was decided before stands as it stood.
func (d *desk) kept(t *testing.T, before []wire.Verdict) []wire.Verdict {
	t.Helper()
	if _, err := os.Stat(d.path("runs/killed/run.json")); err != nil {
		if len(before) > 0 {
			t.Fatal("the run is gone")
		}
		return nil // nothing had happened in it
	}
	now := d.read(t, "killed").Decisions()
	if len(now) < len(before) {
		t.Fatalf("%d decisions are left of %d", len(now), len(before))
	}
	for i, v := range before {
		if now[i].TrialKey != v.TrialKey || now[i].Outcome != v.Outcome {
			t.Errorf("decision %d was %v %s, and is %v %s", i, v.TrialKey, v.Outcome, now[i].TrialKey, now[i].Outcome)
		}
	}
	return now
}
