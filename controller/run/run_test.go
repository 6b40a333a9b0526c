package run

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Fields side by side share the schedule, and their nodes have the same names.
// None takes the other's records for its own, or waits for them.
func TestFieldsSideBySideShareTheSchedule(t *testing.T) {
	left, leftField := newLane(t, "left")
	right, rightField := newLane(t, "right")
	const trials = 12
	r := newRunner(t, trials, 2, left, right)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.Archive.Finish(); err != nil {
		t.Fatal(err)
	}
	verdicts := r.Archive.Decisions()
	seen := map[int]bool{}
	for _, v := range verdicts {
		if v.Outcome != "accepted" || v.Attempt != 1 || seen[v.Trial] {
			t.Errorf("decided %+v", v)
		}
		seen[v.Trial] = true
	}
	if len(verdicts) != trials {
		t.Errorf("%d decisions, want %d", len(verdicts), trials)
	}
	epochs := map[string]bool{}
	for trial := 1; trial <= trials; trial++ {
		records, err := r.Archive.All(trial, 1)
		if err != nil {
			t.Fatal(err)
		}
		sides := map[string]bool{}
		for _, rec := range records {
			if side, _, of := strings.Cut(rec.Epoch, "-"); of {
				sides[side] = true
				epochs[rec.Epoch] = true
			}
		}
		if len(sides) != 1 {
			t.Errorf("trial %d has records of the fields %v", trial, sides)
		}
	}
	if len(epochs) != 4 {
		t.Errorf("spools %v, want those of four nodes", epochs)
	}
	for _, f := range []*fakeField{leftField, rightField} {
		for name, n := range f.nodes {
			if n.lease.Holder != "run today" || n.lease.TTLS != 0 {
				t.Errorf("node %s is left with the lease %+v", name, n.lease)
			}
		}
	}
	findings, err := archive.Verify(r.Archive.Dir())
	if err != nil || len(findings) != 0 {
		t.Errorf("findings %v, %v", findings, err)
	}
}

// Nodes learn which shard is theirs, for when they go on alone.
// What a damaged journal has lost is lost for every later run, too: a run ends all the same, other than with what a
// restore may yet put back.
func TestDamageOfANodesJournalIsNoFaultOfTheRunsEnd(t *testing.T) {
	lost := wire.RestoreReport{Failed: []string{"journal line 1: checksum does not hold"}, Damaged: 1}
	stuck := lost
	stuck.Failed = append([]string{"route 10.78.0.0/24: no such device"}, lost.Failed...)
	for says, report := range map[string]wire.RestoreReport{"": lost,
		`node road could not put back: ["route 10.78.0.0/24: no such device"]`: stuck} {
		lane, field := newLane(t, "field")
		field.nodes["road"].restored = report
		r := newRunner(t, 1, 1, lane)
		var log testnet.Output
		r.Log = slog.New(slog.NewTextHandler(&log, nil))
		err := r.Run(within(t))
		if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("with %q the run ends with %v, want %q", report.Failed, err, says)
		}
		if !strings.Contains(log.String(), lost.Failed[0]) {
			t.Errorf("with %q the log says\n%s", report.Failed, log.String())
		}
	}
}

func TestNodesLearnTheirShard(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 3, 1, lane)
	info := r.Archive.Info()
	info.Shard = &archive.Shard{Number: 2, Of: 2}
	a, err := archive.Create(filepath.Join(t.TempDir(), "shard"), info)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r.Archive = a
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	for name, n := range field.nodes {
		if n.plan.Shard == nil || *n.plan.Shard != *info.Shard {
			t.Errorf("node %s has shard %v, want %v", name, n.plan.Shard, info.Shard)
		}
	}
}

// A node whose disk is full cannot say that it has kept an attempt. The run
// must not wait for that word for ever.
func TestANodeThatCannotRecordFailsItsTrial(t *testing.T) {
	lane, field := newLane(t, "only")
	field.mute = "road"
	r := newRunner(t, 1, 1, lane)
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	v := r.Archive.Decisions()
	if len(v) != 1 || v[0].TrialKey != (wire.TrialKey{Trial: 1, Attempt: 1}) || v[0].Outcome != "failed" ||
		!strings.HasPrefix(v[0].Reason.String(), "unrecorded") || !strings.Contains(v[0].Reason.String(), "node road") {
		t.Errorf("decided %+v", v)
	}
}

// A node that knows nothing of a long run, after its storage was replaced for
// instance, is told all of it, in calls that it takes.
func TestANodeLearnsALongRunInPieces(t *testing.T) {
	lane, field := newLane(t, "only")
	const trials = 250
	r := newRunner(t, trials, 1, lane)
	for n := 1; n <= trials; n++ {
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: n, Attempt: 1}, Outcome: "accepted", Final: true}
		if err := r.Archive.Decide(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Run(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := len(field.nodes["road"].trials); got != trials {
		t.Errorf("the node knows of %d trials, want %d", got, trials)
	}
}
