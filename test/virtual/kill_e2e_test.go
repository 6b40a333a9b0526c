//go:build e2e

package virtual

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// resumeStatus says that a rehearsal was cut off and asks to be resumed.
const resumeStatus = 75

// TestE2ESoakKilledAnywhere kills the kernel or its launcher at random moments, and
// resumes, until a run of two trials is complete; and then again with another, until so many
// kills have found one at work: 5, and with FIELDMESH_SOAK set 1,000, or as many as FIELDMESH_KILLS
// says, on all processors.
func TestE2ESoakKilledAnywhere(t *testing.T) {
	seed, kills, desks := testnet.Seed(t, rand.Uint64(), "the kills"), 5, 1
	if os.Getenv("FIELDMESH_SOAK") != "" {
		kills, desks = int(testnet.Number(t, "FIELDMESH_KILLS", 1000)), runtime.NumCPU()
	}
	for i := range desks {
		t.Run(fmt.Sprintf("desk %d", i+1), func(t *testing.T) {
			t.Parallel()
			newDesk(t, "[16.7]").killedAnywhere(t, rand.New(rand.NewPCG(seed, uint64(i))), kills/desks)
		})
	}
}

// killedAnywhere kills runs until so many kills have found one at work.
func (d *desk) killedAnywhere(t *testing.T, dice *rand.Rand, kills int) {
	var decided []wire.Verdict
	complete := 0
	for kills > 0 {
		switch d.killOnce(t, dice) {
		case 0:
			d.eachAcceptedOnce(t, decided)
			if err := os.RemoveAll(d.path("runs/killed")); err != nil {
				t.Fatal(err)
			}
			complete, decided = complete+1, nil
		default:
			kills--
			decided = d.kept(t, decided)
		}
	}
	if status, out := d.goOn(t, nil); status != 0 {
		t.Fatalf("left in peace it ends with status %d:\n%s", status, out)
	}
	d.eachAcceptedOnce(t, decided)
	t.Logf("%d runs were complete in the end", complete+1)
	d.staysComplete(t)
}

// staysComplete: resumed once more, a complete run is not unsealed.
func (d *desk) staysComplete(t *testing.T) {
	t.Helper()
	signature := d.path("runs/killed/MANIFEST.signature.json") // of a key that each boot makes
	before, err := os.ReadFile(signature)
	if err != nil {
		t.Fatal(err)
	}
	if status, out := d.goOn(t, nil); status != 0 {
		t.Errorf("complete, and resumed, it ends with status %d:\n%s", status, out)
	}
	after, err := os.ReadFile(signature)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("resuming a complete run signed it again: %v", err)
	}
	d.eachAcceptedOnce(t, nil)
}

// eachAcceptedOnce: a complete run has its two trials, each accepted once, and what was
// decided before.
func (d *desk) eachAcceptedOnce(t *testing.T, before []wire.Verdict) {
	t.Helper()
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
func (d *desk) goOn(t *testing.T, meanwhile func(cmd *exec.Cmd, ended <-chan struct{})) (int, string) {
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	if meanwhile != nil {
		meanwhile(cmd, ended)
	}
	<-ended
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

// killOnce lets the rehearsal run for a while and ends it, one way or another, unless it is
// complete before. It returns its status.
func (d *desk) killOnce(t *testing.T, dice *rand.Rand) (status int) {
	t.Helper()
	after := time.Duration(dice.Int64N(int64(15 * time.Second)))
	way := dice.IntN(5)
	want := resumeStatus
	status, out := d.goOn(t, func(cmd *exec.Cmd, ended <-chan struct{}) {
		select {
		case <-ended:
			return
		case <-time.After(after):
		}
		kernels, stubs := d.processes(t)
		if way == 3 && len(stubs) > 0 { // a program in virtual time dies; what is then, is interrupted
			_ = syscall.Kill(stubs[dice.IntN(len(stubs))], syscall.SIGKILL)
			time.Sleep(3 * time.Second)
		}
		switch {
		case way == 0 && len(kernels) == 1:
			_ = syscall.Kill(kernels[0], syscall.SIGKILL) // it may just have ended
		case way == 4 && len(kernels) == 1 && d.driven():
			_ = syscall.Kill(kernels[0], syscall.SIGTERM)
		case way == 1:
			want = -1 // ended by a signal
			_ = cmd.Process.Kill()
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	})
	t.Logf("way %d after %v: status %d", way, after.Round(time.Millisecond), status)
	// Killed with nothing decided between; 0: it was done before.
	twice := (way == 0 || way == 4) && status == 1 && strings.Contains(out, "was killed twice")
	if status != want && status != 0 && !twice {
		t.Errorf("killed, it ends with status %d, want %d:\n%s", status, want, out)
	}
	d.nothingLeft(t)
	return status
}

// driven reports whether an attempt has begun.
func (d *desk) driven() bool {
	_, err := os.Stat(d.path("runs/killed/trials"))
	return err == nil
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
