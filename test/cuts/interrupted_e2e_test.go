//go:build e2e

package cuts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// oneTrial is a campaign of a single trial with few attempts.
func oneTrial(attempts int, routing string) string {
	return strings.NewReplacer("duration_s: 1\n", "duration_s: 3\n", "repetitions: 5", "repetitions: 1",
		"      B: {sender: roadside, receiver: car}\n", "", "attempts_max: 20",
		fmt.Sprintf("attempts_max: %d", attempts), "protocol: none", routing).Replace(emulatedCampaign)
}

// rehearsed is a rehearsal of a campaign's text that is to be interrupted.
func rehearsed(t *testing.T, run, text string) (*campaign, *emulated) {
	t.Helper()
	testnet.Need(t, "ip", "gpsd", "iperf3", "influxd")
	dir := testnet.Folder(t)
	e := newEmulated(t, dir, run, text)
	return newCampaign(t, e, newDatabases(t), dir, run), e
}

// windowOpen reports whether the archive has the window of the trial's attempt.
func (c *campaign) windowOpen(attempt int) bool {
	text, err := os.ReadFile(filepath.Join(c.runDir(), "trials", fmt.Sprintf("0001-a%d", attempt), "records",
		nodes[0]+".ndjson"))
	return err == nil && bytes.Contains(text, []byte(`"kind":"window"`))
}

// awaitEnd waits for the present controller to end.
func (c *campaign) awaitEnd() {
	c.t.Helper()
	select {
	case <-c.controller.Ended():
	case <-time.After(endsWithin):
		c.giveUp()
		c.t.FailNow()
	}
	c.keepJournal()
}

// The controller and the field are killed and interrupted, and the agents'
// halves killed, in the window of one attempt after the other, of which the plan
// has two: none of them is used up, and the trial is driven in the end.
func TestInterruptedMoreOftenThanThereAreAttempts(t *testing.T) {
	c, e := rehearsed(t, "interrupted", oneTrial(2, "protocol: none"))
	before := machine(t)
	kinds := []cut{{kind: controllerInterrupted}, {kind: controllerKilled}, {kind: fieldKilled},
		{kind: faceKilled, node: nodes[1]}, {kind: hostKilled, node: nodes[0]}, {kind: controllerInterrupted}}
	for i, x := range kinds {
		if i == 0 || c.controller.Over() {
			c.start()
		}
		testnet.Await(t, time.Minute, fmt.Sprintf("the window of attempt %d", i+1), func() bool {
			return c.windowOpen(i+1) || c.controller.Over()
		})
		if !c.inflict(x) {
			t.Fatalf("nothing to be cut: %s", x)
		}
		t.Logf("attempt %d: %s", i+1, x)
		if x.node == "" {
			c.awaitEnd()
		}
	}
	c.start()
	c.awaitEnd()
	if err := c.controller.Wait(t, time.Minute); err != nil {
		t.Errorf("the last controller: %v", err)
	}
	a, err := archive.Read(c.runDir())
	if err != nil {
		t.Fatal(err)
	}
	decided := a.Decisions()
	// One that the nodes have begun alone when a controller comes back is interrupted, too.
	if n := len(decided); n < len(kinds)+1 || n > 2*len(kinds)+1 {
		t.Errorf("%d attempts, want %d, and one more for each controller at most", n, len(kinds)+1)
	}
	for i, v := range decided {
		want := wire.Interrupted
		if i == len(decided)-1 {
			want = wire.Accepted
		}
		t.Logf("attempt %d: %s (%s)", v.Attempt, v.Outcome, v.Reason)
		if v.Attempt != i+1 || v.Outcome != want && !testnet.Late(v.Reason) {
			t.Errorf("attempt %d: %s (%s), want %s", v.Attempt, v.Outcome, v.Reason, want)
		}
	}
	must(t, fieldmesh("verify", c.runDir()))
	c.nothingRuns()
	e.gone(t)
	same(t, "the machine", before, machine(t))
}

// A trial that was given up is driven again when somebody says so, in a run
// that was complete; the journal keeps who did and why.
func TestRetryReopensATrial(t *testing.T) {
	c, e := rehearsed(t, "retried", oneTrial(1, "protocol: olsr, ready_s: 1")) // its second HELLO comes after 2 s
	attempts := func() (n int, words []string) {
		t.Helper()
		a, err := archive.Read(c.runDir())
		if err != nil {
			t.Fatal(err)
		}
		entries, err := a.Journal()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range entries {
			if j.Verdict != nil && j.Verdict.Word != nil {
				words = append(words, fmt.Sprintf("%d.%d %s by %s: %s", j.Verdict.Trial, j.Verdict.Attempt,
					j.Verdict.Word.Decision, j.Verdict.Word.By, j.Verdict.Word.Text))
			}
		}
		return len(a.Decisions()), words
	}
	rehearse := func(args ...string) string {
		t.Helper()
		cmd := fieldmesh(append([]string{"rehearse", "--field-dir", e.dir, "--runs", c.runs()}, args...)...)
		cmd.Env = append(os.Environ(), "SUDO_USER=ada")
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("%v: it went well\n%s", args, out)
		}
		return string(out)
	}
	if said := rehearse(e.file, "--name", c.name); !strings.Contains(said, "1 given up after at most 1 attempts that "+
		"count, or skipped: trials 1; ") || !strings.Contains(said, "--retry TRIAL") {
		t.Errorf("a trial that is given up:\n%s", said)
	}
	if said := rehearse("--resume", c.name); !strings.Contains(said, "1 given up") {
		t.Errorf("resumed:\n%s", said)
	}
	if said := rehearse("--resume", c.name, "--retry", "7"); !strings.Contains(said, "retry trial 7: the run has "+
		"trials 1 to 1") {
		t.Errorf("no such trial:\n%s", said)
	}
	if n, words := attempts(); n != 1 || len(words) != 0 {
		t.Errorf("%d attempts, words %v", n, words)
	}
	rehearse("--resume", c.name, "--retry", "1", "--why", "the battery was flat")
	if n, words := attempts(); n != 2 || strings.Join(words, "; ") != "1.1 retry by ada: the battery was flat" {
		t.Errorf("%d attempts, words %v", n, words)
	}
	must(t, fieldmesh("verify", c.runDir()))
	e.gone(t)
}
