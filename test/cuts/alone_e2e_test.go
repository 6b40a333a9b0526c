//go:build e2e

package cuts

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// client talks to a node beside the controller, without a lease.
func (r *road) client(t *testing.T, node string) *fleet.Client {
	t.Helper()
	identity, err := r.fleet.Identity()
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.fleet.Client(identity, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A controller that is killed comes back once while its trial is under way,
// and once when the nodes have gone on alone for a while: it judges what it
// finds, waits for what is under way, and has nothing driven again.
func TestResumeFindsWhatWentOnAlone(t *testing.T) {
	testnet.Need(t, "ip", "iperf3", "influxd")
	dir := testnet.Folder(t)
	r := newRoad(t, dir, roadCampaign(4, 2))
	c := newCampaign(t, r, newDatabases(t), dir, "alone")
	w := watch(t, filepath.Join(dir, "witness"), r.spools())
	fox := r.client(t, "fox")
	measuring := func(trial int) func() bool {
		return func() bool {
			v, err := fox.View(t.Context(), c.name, 0, 0)
			return err == nil && v.Current != nil && *v.Current == wire.TrialKey{Trial: trial, Attempt: 1} &&
				v.Detail == "measuring"
		}
	}
	killed := func() {
		c.controller.kill(syscall.SIGKILL)
		<-c.controller.Ended()
		c.keepJournal()
	}

	c.start()
	testnet.Await(t, time.Minute, "the first window", measuring(1))
	killed()
	c.start()
	testnet.Await(t, time.Minute, "the second window", measuring(2))
	killed()
	if got, next := decided(t, c.runDir()), inTurn(t, c.runDir()); next != (wire.TrialKey{Trial: 2, Attempt: 1}) {
		t.Fatalf("before the nodes go on alone this was decided: %+v", got)
	}
	testnet.Await(t, 2*time.Minute, "the third window, which nobody orders", measuring(3))
	c.start()
	if made := c.drive(nil); made != 0 || !c.controller.Over() {
		t.Fatal("the run has not come to its end")
	}
	inTurn(t, c.runDir())
	r.judge(c, w)
}

// inTurn checks that each trial was driven once, in its turn, and again only when the
// machine was late: at once, or when the nodes come back that went on alone and did not
// know it of each other. It returns the attempt that is next.
func inTurn(t *testing.T, dir string) wire.TrialKey {
	t.Helper()
	again := func(v wire.Verdict) bool { return v.Outcome != wire.Accepted && testnet.Late(v.Reason) }
	newest := map[int]wire.Verdict{} // by trial
	for i, v := range decided(t, dir) {
		switch before, known := newest[v.Trial]; {
		case !known && v.TrialKey != wire.TrialKey{Trial: len(newest) + 1, Attempt: 1},
			known && (v.Attempt != before.Attempt+1 || !again(before)):
			t.Errorf("decision %d is of %+v, after %+v", i, v.TrialKey, newest)
		}
		newest[v.Trial] = v
	}
	for trial := 1; ; trial++ {
		if v, known := newest[trial]; !known || again(v) {
			return wire.TrialKey{Trial: trial, Attempt: v.Attempt + 1}
		}
	}
}

func decided(t *testing.T, dir string) []wire.Verdict {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a.Decisions()
}
