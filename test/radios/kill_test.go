//go:build guest

package radios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// moment is a step of a trial at a node: so many lines of a kind in its files.
type moment struct {
	name, files, text string
	count             int
}

func changed(n int) moment {
	return moment{fmt.Sprintf("change %d", n), "host/journal*", `"prepared"`, n}
}

func undone(n int) moment { return moment{fmt.Sprintf("undo %d", n), "host/journal*", `"undone"`, n} }

var measuring = moment{"the window", "face/spool/*", `"state":"running"`, 1}

// moments of a trial: all changes of a run and of its trial are made one after
// another, it measures, and the trial's changes are undone.
func moments() []moment {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		return []moment{changed(3), changed(7)} // the radio's, and one of the last
	}
	var all []moment
	for i := range 8 {
		all = append(all, changed(i+1))
	}
	return append(all, measuring, undone(1), undone(2), undone(3))
}

// Two nodes lose their power at a step of a trial: all processes of both are
// killed, the controller's too. One is put back by hand, the other by starting
// its agent again; both are as before the run.
func TestGuestPowerLost(t *testing.T) {
	r := newRig(t, "fox", "owl")
	file := r.write(t, "road.yaml", fmt.Sprintf(campaign, 6.0, "{protocol: none}", "", ""))
	before := map[*node]string{}
	for _, n := range r.nodes {
		before[n] = n.snapshot(t)
	}
	inForce := 0
	for i, m := range moments() {
		for _, n := range r.nodes {
			n.start(t)
		}
		fox, owl := r.nodes[0], r.nodes[1]
		earlier := owl.count(t, m)
		if m != measuring {
			earlier = 0 // a journal starts over with each life
		}
		run := testnet.Start(t, exec.Command(filepath.Join(programs, "fieldmesh"), "run", file, "--fleet", r.fleet(),
			"--place", "bench",
			"--runs", filepath.Join(r.dir, "runs"), "--name", fmt.Sprintf("lost-%d", i), "--patience", "2m"))
		testnet.Await(t, 10*time.Minute, m.name+" at owl, before the run ends", func() bool {
			if owl.count(t, m) < earlier+m.count && run.Over() {
				t.Fatalf("the run has ended before %s at owl", m.name)
			}
			return owl.count(t, m) >= earlier+m.count
		})
		owl.kill(t) // first: a controller that hangs up has the trial given up in order
		fox.kill(t)
		_ = run.Stop(t, syscall.SIGKILL)
		if owl.snapshot(t) != before[owl] {
			inForce++
		}
		byHand, byStart := owl, fox
		if i%2 == 1 {
			byHand, byStart = fox, owl
		}
		out, err := byHand.ns.Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "restore", "--config",
			filepath.Join(byHand.dir, "agent.yaml")).CombinedOutput()
		if err != nil {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		t.Logf("killed at %s; fieldmesh-agent restore at %s:\n%s", m.name, byHand.name, out)
		byHand.becomes(t, "killed at "+m.name+", put back by hand", before[byHand])
		byStart.start(t)
		testnet.Await(t, time.Minute, "the next life of "+byStart.name, func() bool { return byStart.changes(t) == 0 })
		byStart.becomes(t, "killed at "+m.name+", started again", before[byStart])
		byStart.stop()
	}
	t.Logf("%d of %d kills left changes in force at owl until the restore", inForce, len(moments()))
	if inForce < len(moments())/2 {
		t.Error("hardly a kill hit a moment with changes in force")
	}
}

// changes counts the changes that the privileged half's journal names.
func (n *node) changes(t *testing.T) int { return n.count(t, changed(0)) }

// count is how often a moment's text is in its files.
func (n *node) count(t *testing.T, m moment) int {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(n.dir, "state", m.files)) // only a bad pattern is an error
	count := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		count += strings.Count(string(text), m.text)
	}
	return count
}
