//go:build e2e

package journeys

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/nodes"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Somebody wants bravo's machine back in the middle of a window, while nobody drives the run: it is put
// back, and left alone until the run is resumed. Nothing that was measured is lost.
func TestARestoreByHandEndsTheRunOnItsMachine(t *testing.T) {
	d := newDesk(t, "")
	bravo, client, alpha := d.nodes["bravo"].Name, d.client(t, "bravo"), d.client(t, "alpha")
	before := testnet.Snapshot(t, bravo)
	c := d.start(t, stationary(t, "by-hand", "[5.6, 16.7]", "duration_s: 3", "duration_s: 6"))
	restored := false
	var during wire.TrialKey
	c.steps = func(step string, k wire.TrialKey) {
		if step != "measuring" || k.Trial != 2 {
			return
		}
		testnet.Await(t, 2*time.Second, "alpha forgets no run that is under way", func() bool {
			var said strings.Builder
			err := nodes.Forget(t.Context(), []*fleet.Client{alpha}, c.name, &said)
			return err != nil && strings.Contains(said.String(), "is steered by") // for once, all may be confirmed
		})
		if err := c.run.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if testnet.Snapshot(t, bravo) == before {
			t.Error("nothing of bravo's is changed in a window")
		}
		if said := d.restoreByHand(t, "bravo"); !strings.Contains(said, "undone: address 10.77.0.2/24 on wlan0\n") {
			t.Errorf("fieldmesh-agent restore:\n%s", said)
		}
		during, restored = k, true
	}
	c.drive(t, 10*time.Minute, func() bool { return restored })
	c.receiver.drive(*c.trials[during.Trial+1].SpeedMps) // the next gate would open
	testnet.Await(t, 30*time.Second, "bravo is as it was", func() bool { return testnet.Snapshot(t, bravo) == before })
	d.agents[slices.Index(deskNodes, "bravo")].Says(t, "the run ends on this node: it was put back by hand")

	// The lease runs out, and alpha goes on alone: bravo, asked by GO, changes nothing.
	testnet.Await(t, 3*time.Minute, "alpha has learnt that the run is over at bravo", func() bool {
		if after := testnet.Snapshot(t, bravo); after != before {
			t.Fatalf("bravo was changed after it was put back by hand:\n%s", testnet.Diff(before, after))
		}
		v, err := alpha.View(t.Context(), c.name, 0, 0)
		return err == nil && strings.Contains(v.Detail, "the run has ended at node bravo")
	})
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if st, err := client.Status(t.Context()); err != nil || len(st.Host.Pending) > 0 {
			t.Fatalf("bravo has changes in force, %v, %v", st.Host.Pending, err)
		}
	}
	if after := testnet.Snapshot(t, bravo); after != before {
		t.Errorf("bravo was changed after it was put back by hand:\n%s", testnet.Diff(before, after))
	}

	had := readRun(t, c.runDir())
	earlier := map[wire.TrialKey][]wire.Record{}
	for _, at := range had.attempts {
		if at.Trial < during.Trial {
			earlier[at.TrialKey] = had.records(t, at.TrialKey)
		}
	}
	if len(earlier) == 0 {
		t.Error("nothing of the first trial is in the archive")
	}
	c.run = begin(t, "run", "--resume", c.runDir(), "--fleet", d.fleetFile())
	c.follow.known, c.follow.last = 0, ""
	c.steps = func(string, wire.TrialKey) {}
	k := c.finish(t, 10*time.Minute)
	k.nothingLost(t, deskNodes...)
	for key, records := range earlier {
		if after := k.records(t, key); len(after) < len(records) || !reflect.DeepEqual(after[:len(records)], records) {
			t.Errorf("trial %d attempt %d had %d records, and now has others", key.Trial, key.Attempt, len(records))
		}
	}
	spoilt := slices.IndexFunc(k.attempts, func(at archive.Attempt) bool { return at.TrialKey == during })
	if spoilt < 0 || accepted(k.attempts[spoilt]) {
		t.Errorf("the attempt in which bravo was put back is accepted, or is not there: %v", k.attempts)
	} else if v := k.attempts[spoilt].Verdict; !strings.Contains(c.run.Said(), v.Reason.String()) {
		t.Errorf("the run does not say that the attempt was %s: %s", v.Outcome, v.Reason)
	}
	for _, node := range []*fleet.Client{alpha, client} { // nobody waits for anything of a run that is over
		if st, err := node.Status(t.Context()); err != nil || len(st.Spool.UnconfirmedRuns) > 0 {
			t.Errorf("%s keeps records of %v, %v", node.Node().Name, st.Spool.UnconfirmedRuns, err)
		}
	}
	d.stopAgents(t)
	d.restored(t)
}

// restoreByHand puts a node back beside its running agent, as its owner does, and returns what that printed.
func (d *desk) restoreByHand(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", d.nodes[name].Name, filepath.Join(programs, "fieldmesh-agent"),
		"restore", "--config", filepath.Join(d.nodeDir(name), "agent.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("restore %s by hand: %v\n%s", name, err, out)
	}
	return string(out)
}
