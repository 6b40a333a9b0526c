package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func (r *rig) outcome(t *testing.T, k wire.TrialKey) (outcome wire.Outcome, reason string) {
	t.Helper()
	await(t, "kept", func() bool { return r.kept(k) })
	rs := r.spool.kinds(k, "trial")
	b := rs[len(rs)-1].Body.(*wire.TrialState)
	return b.Outcome, b.Reason.String()
}

// The initiator gave an attempt up after this node had answered its GO: the
// node must not measure alone while the next attempt is begun and fails.
func TestARunningAttemptGivesWayToALaterGoOnly(t *testing.T) {
	t.Parallel()
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	road.start(t)
	plan := twoNodePlan(2, testnet.FreePort(t), road.port)
	plan.Trials[0].DurationS, plan.Trials[1].DurationS = 60, 60
	takeLease(t, road, 60)
	if _, err := road.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	g := wire.Go{Type: "go", Run: plan.Run, Trial: 2, Attempt: 1, From: "car", Nonce: 1, StartInUs: 1000}
	if ack := road.ask(t, plan.Key, g); !ack.Ready {
		t.Fatalf("the late arm: %+v", ack)
	}
	await(t, "the window", func() bool {
		return len(road.spool.kinds(wire.TrialKey{Trial: 2, Attempt: 1}, "window")) == 1
	})
	old, stranger, next := g, g, g
	old.To, old.Trial, old.Nonce, stranger.From, next.Attempt = "road", 1, 2, "road", 2
	old.Answer = road.askOnce(t, plan.Key, old).Challenge
	road.ask(t, plan.Key, stranger, seal(t, plan.Key, old)) // an older GO, even a new one, has no answer
	if road.kept(wire.TrialKey{Trial: 2, Attempt: 1}) {
		t.Error("an old GO ended the trial")
	}
	if ack := road.ask(t, plan.Key, next); !ack.Ready {
		t.Errorf("the next attempt: %+v", ack)
	}
	if outcome, reason := road.outcome(t, wire.TrialKey{Trial: 2, Attempt: 1}); outcome != "failed" ||
		!strings.HasPrefix(reason, "superseded") {
		t.Errorf("kept as %s, %s", outcome, reason)
	}
}

// The initiator need not wait for the window's time to learn it.
func TestANodeThatCannotTakePartAnswersGoAtOnce(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.spool.fill(errors.New("no space " + strings.Repeat("at all ", 300)))
	ack := road.ask(t, plan.Key, wire.Go{Type: "go", Run: plan.Run, Trial: 1, Attempt: 1, From: "car", Nonce: 1,
		StartInUs: 1_000_000})
	if ack.Ready || !strings.Contains(ack.Reason, "no space") {
		t.Errorf("answer %+v", ack)
	}
}

func TestWhatArmingOpenedIsClosedWhenItFails(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.flows.fail = errors.New("no iperf3")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	_, err := road.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeNotReady)
	if n := road.open.Load(); n != 0 {
		t.Errorf("%d sockets are left open", n)
	}
	if n := road.host.inForce("trial"); n != 0 {
		t.Errorf("%d changes are left in force", n)
	}
}

func TestAbortEndsAnArmingThatHangs(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.host.hangs = true
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	armed := make(chan error, 1)
	go func() {
		_, err := road.Arm(ctx, holder, plan.Run, k)
		armed <- err
	}()
	await(t, "arming", func() bool {
		v, err := road.View(ctx, plan.Run, 0)
		return err == nil && v.State == "loaded" && v.Current != nil
	})
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-armed, wire.CodeNotReady)
	if outcome, reason := road.outcome(t, k); outcome != "interrupted" || reason != "arm_failed: aborted: test" {
		t.Errorf("kept as %s, %s", outcome, reason)
	}
}

// An agent that is stopped while it arms waits for that attempt's end too.
func TestStoppingWaitsForWhatIsBeingArmed(t *testing.T) {
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	plan := twoNodePlan(1, testnet.FreePort(t), road.port)
	takeLease(t, road, 60)
	if _, err := road.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	road.host.hangs = true
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	go func() { _, _ = road.Arm(ctx, holder, plan.Run, k) }()
	await(t, "arming", func() bool { road.mu.Lock(); defer road.mu.Unlock(); return road.current != nil })
	stopping, stop := context.WithCancel(ctx)
	stop()
	if err := road.Run(stopping); err != nil {
		t.Fatal(err)
	}
	if !road.kept(k) {
		t.Error("the agent ended before its attempt")
	}
}

// A controller that never comes back, and an initiator that is gone, must not
// hold the dead-man timer off for ever.
func TestAForsakenNodeIsNotBusy(t *testing.T) {
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	takeLease(t, road, 60)
	if _, err := road.Load(ctx, holder, twoNodePlan(2, testnet.FreePort(t), road.port)); err != nil {
		t.Fatal(err)
	}
	road.started = true
	takeLease(t, road, 0)
	if !road.Busy() {
		t.Error("a node in the middle of a run is not busy")
	}
	road.heardNs = road.deps.Clock.BootNs() - forsakenAfter.Nanoseconds()
	if road.Busy() {
		t.Error("a forsaken node is busy")
	}
}

// Alone, the trials' initiators need not agree on which is next: who is not a trial's initiator takes it for accepted.
// The later trial gives way, and neither uses up an attempt that nobody drove.
func TestTwoInitiatorsUseUpNoAttempt(t *testing.T) {
	t.Parallel()
	car, road, _ := pair(t, 2)
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		r.plan.AttemptsMax = 2
		for i := range r.plan.Trials {
			r.plan.Trials[i].Gate.SpeedBand = false
			r.plan.Trials[i].Gate.AfterS = ptr(1.0)
		}
		r.plan.Trials[0].Acceptance.FixAgeMsMax = ptr(0.001)
		r.plan.Trials[1].Initiator = "road"
		r.started = true
		r.mu.Unlock()
	}
	takeLease(t, road, 0)
	takeLease(t, car, 0)
	outcomes := func(r *rig, trial int) (out []wire.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, v := range r.verdicts[trial] {
			if v.Outcome != wire.Interrupted {
				out = append(out, v.Outcome)
			}
		}
		return out
	}
	done := func() bool { return slices.Contains(outcomes(road, 2), wire.Accepted) && len(outcomes(car, 1)) == 2 }
	for begun := time.Now(); !done() && time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		continue
	}
	if first := outcomes(car, 1); !slices.Equal(first, []wire.Outcome{wire.Rejected, wire.Rejected}) {
		t.Errorf("the first trial's attempts: %v", first)
	}
	if second := outcomes(road, 2); !slices.Equal(second, []wire.Outcome{wire.Accepted}) {
		t.Errorf("the second trial's attempts: %v", second)
	}
}

// Two initiators that wait for each other while they arm, as for routing, do so no longer than for a GO.
func TestAnInitiatorThatArmsGivesWayToAnEarlierTrial(t *testing.T) {
	t.Parallel()
	for trial, want := range map[int]string{1: "interrupted", 3: ""} {
		r := newRig(t, "car", t.TempDir(), 0)
		a := newAttempt(r.Engine, wire.TrialKey{Trial: 2, Attempt: 1}, wire.Trial{Number: 2, Initiator: "car"})
		a.giveWay(wire.TrialKey{Trial: trial, Attempt: 2}, wire.StateLoaded)
		got := ""
		if a.ctx.Err() != nil {
			got = string(outcomeOf(context.Cause(a.ctx)))
		}
		if got != want {
			t.Errorf("GO of trial %d came: %q, want %q", trial, got, want)
		}
	}
}
