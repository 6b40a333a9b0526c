//go:build guest

package road

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Two nodes lose their power at a step of a trial: all processes of both are
// killed, the controller's too. One is put back by hand, the other by starting
// its agent again; both are as before the run.
func TestGuestPowerLost(t *testing.T) {
	r := newRig(t, "fox", "owl")
	file := r.write(t, "road.yaml", fmt.Sprintf(campaign, 30.0, "{protocol: none}", "", ""))
	before := map[*node]string{}
	for _, n := range r.nodes {
		before[n] = n.snapshot(t)
	}
	// The radio's change is the third of a run; with eight the trial is armed.
	steps := []int{3, 7}
	if os.Getenv("FIELDMESH_SOAK") != "" {
		steps = []int{1, 2, 3, 4, 5, 6, 7}
	}
	for i, step := range steps {
		for _, n := range r.nodes {
			n.start(t)
		}
		run := exec.CommandContext(t.Context(), filepath.Join(programs, "fieldmesh"), "run", file, "--fleet", r.fleet(), "--place", "bench",
			"--runs", filepath.Join(r.dir, "runs"), "--name", fmt.Sprintf("lost-%d", i))
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, 2*time.Minute, fmt.Sprintf("change %d at owl", step), func() bool { return r.nodes[1].changes(t) >= step })
		fox, owl := r.nodes[0], r.nodes[1]
		owl.kill(t) // first: a controller that hangs up has the trial given up in order
		fox.kill(t)
		_ = run.Process.Kill()
		_ = run.Wait()
		if owl.snapshot(t) == before[owl] {
			t.Errorf("killed at change %d, nothing was in force", step)
		}
		byHand, byStart := owl, fox
		if i%2 == 1 {
			byHand, byStart = fox, owl
		}
		out, err := byHand.ns.Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "restore", "--config", filepath.Join(byHand.dir, "agent.yaml")).CombinedOutput()
		if err != nil {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		t.Logf("killed at change %d; fieldmesh-agent restore at %s:\n%s", step, byHand.name, out)
		byHand.becomes(t, fmt.Sprintf("killed at change %d, put back by hand", step), before[byHand])
		byStart.start(t)
		await(t, time.Minute, "the next life of "+byStart.name, func() bool { return byStart.changes(t) == 0 })
		byStart.becomes(t, fmt.Sprintf("killed at change %d, started again", step), before[byStart])
		byStart.stop()
	}
}

// changes counts the changes that the privileged half's journal names.
func (n *node) changes(t *testing.T) int {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(n.dir, "state", "host", "journal*")) // only a bad pattern is an error
	count := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		count += strings.Count(string(text), `"prepared"`)
	}
	return count
}
