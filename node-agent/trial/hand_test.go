package trial

import (
	"context"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Somebody at the initiator's machine wants it back while its controller is away: nothing is changed there
// again, nor at a peer where that happens, by itself, by GO, or after a reboot, until a controller takes the run up.
func TestARestoreByHandEndsTheRunThere(t *testing.T) {
	car, road, plan := pair(t, 3)
	car.gps.speed = 0 // the gate stays shut
	car.plan.Trials[0].Gate.TimeoutS = 1
	k, next := wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 1, Attempt: 2}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
		takeLease(t, r, 0)
	}
	car.host.restoreByHand(t, "first")
	road.host.restoreByHand(t, "first")
	await(t, "kept", func() bool { return car.kept(k) })
	await(t, "the run is over at the car", func() bool { _, goesOn := car.mine(); return !goesOn })
	if car.Busy() {
		t.Error("the dead-man timer is held off")
	}
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	g := wire.Go{Type: wire.GoArm, Run: plan.Run, Trial: 1, Attempt: 2, From: "car", Nonce: 1}
	if ack := road.ask(t, plan.Key, g); ack.Ready {
		t.Errorf("the peer obeys GO: %+v", ack)
	}
	for _, r := range []*rig{car, road} {
		if n := r.host.inForce("run") + r.host.inForce("trial"); n != 0 {
			t.Errorf("%d changes are in force at %s", n, r.cfg.Node)
		}
	}

	again := newRig(t, "car", car.dir, testnet.FreePort(t))
	again.host.byHand = "first"
	if _, goesOn := again.mine(); goesOn {
		t.Error("after a reboot the run goes on")
	}
	takeLease(t, again, 60)
	if _, err := again.Arm(ctx, holder, plan.Run, next); err != nil {
		t.Errorf("a controller takes the run up: %v", err)
	}
	takeLease(t, again, 0)
	if again.able(ctx, next) != nil {
		t.Error("what a controller has taken up does not go on alone")
	}

	// While the agent is away, too.
	again = newRig(t, "car", car.dir, testnet.FreePort(t))
	again.host.byHand = "second"
	if again.able(ctx, next) == nil {
		t.Error("the run goes on after a restore by hand while the agent was away")
	}
	if _, goesOn := again.mine(); goesOn {
		t.Error("it has not ended")
	}
}

// A node that was loaded, and put back by hand before its first trial, is left as it is.
func TestARestoreByHandBeforeTheFirstTrial(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.host.restoreByHand(t, "first")
	g := wire.Go{Type: wire.GoArm, Run: plan.Run, Trial: 1, Attempt: 1, From: "car", Nonce: 1}
	if ack := road.ask(t, plan.Key, g); ack.Ready {
		t.Errorf("it obeys GO: %+v", ack)
	}
}

// An initiator that has heard neither its controller nor a peer for long is at home, or everybody else is: it
// begins nothing more by itself, also when its machine was off meanwhile.
func TestAnInitiatorThatHearsNobodyEndsGoingOnAlone(t *testing.T) {
	car := newRig(t, "car", t.TempDir(), testnet.FreePort(t))
	takeLease(t, car, 60)
	plan := twoNodePlan(2, car.port, testnet.FreePort(t)) // nobody listens at the other port
	plan.Trials[0].Gate.TimeoutS = 0.2
	if _, err := car.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := car.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	takeLease(t, car, 0)
	await(t, "kept", func() bool { return car.kept(k) })
	if _, goesOn := car.mine(); !goesOn {
		t.Fatal("a node whose controller has just gone does not go on alone")
	}
	past := car.deps.Clock.BootNs() - (forsakenAfter - 2*time.Second).Nanoseconds()
	car.mu.Lock()
	car.heardNs = past
	car.mu.Unlock()
	k.Attempt = 2
	if err := car.arm(ctx, k); err != nil { // by itself
		t.Fatal(err)
	}
	car.mu.Lock()
	waiting := car.current
	car.mu.Unlock()
	waiting.interrupt(wire.ReasonAgentStopped, "the test ends it")
	await(t, "kept", func() bool { return car.kept(k) })
	car.mu.Lock()
	heard := car.heardNs
	car.mu.Unlock()
	if heard != past {
		t.Error("an attempt in which no peer answered counts as a sign of the run")
	}
	again := newRig(t, "car", car.dir, testnet.FreePort(t))
	if _, goesOn := again.mine(); !goesOn {
		t.Error("a crash within that time ends the run")
	}
	if d := time.Duration(again.heardNs - past); d < -2*time.Second || d > 2*time.Second {
		t.Errorf("after a restart it takes itself to have heard of the run %s later than it had", d)
	}
	again.heardNs = again.deps.Clock.BootNs() - forsakenAfter.Nanoseconds()
	if _, goesOn := again.mine(); goesOn {
		t.Error("a forsaken initiator goes on")
	}
	takeLease(t, again, 0.01)
	await(t, "the lease ends", func() bool { return !again.leaseHeld() })
	if _, goesOn := again.mine(); !goesOn {
		t.Error("a controller that was back for a moment is no sign of the run")
	}
}

// Without its host process a node cannot know of a restore by hand, and does not arm: that interrupts the attempt, as
// it does everywhere else, and uses none of the trial's up.
func TestGOWithoutTheHostProcessInterruptsTheAttempt(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.host.mu.Lock()
	road.host.away = true
	road.host.mu.Unlock()
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	g := wire.Go{Type: wire.GoArm, Run: plan.Run, Trial: 1, Attempt: 1, From: "car", Nonce: 1}
	if ack := road.ask(t, plan.Key, g); ack.Ready {
		t.Errorf("it obeys GO: %+v", ack)
	}
	if rs := road.spool.kinds(k, "trial"); len(rs) == 0 {
		t.Error("the attempt is not recorded")
	}
	road.host.mu.Lock()
	road.host.away = false
	road.host.mu.Unlock()
	if outcome, reason := road.outcome(t, k); outcome != wire.Interrupted {
		t.Errorf("kept as %s: %s", outcome, reason)
	}
}

// Nodes that go on alone drive their own shard, and leave the other trials to other fleets.
func TestGoingOnAloneKeepsToTheShard(t *testing.T) {
	plan := twoNodePlan(3, 1, 2)
	plan.Shard = &wire.Shard{Number: 1, Of: 2}
	accepted := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Accepted}
	e := &Engine{plan: &plan, verdicts: map[int][]wire.Verdict{1: {accepted}}}
	if k, more := e.next(); !more || k.Trial != 3 {
		t.Errorf("next is %+v (%v), want trial 3", k, more)
	}
	accepted.Trial = 3
	e.verdicts[3] = []wire.Verdict{accepted}
	if k, more := e.next(); more {
		t.Errorf("next is %+v, and nothing is left", k)
	}
}

// A controller that told no shard began the run, and a newer one continues it: its nodes keep what they hold, and
// drive only the shard from then on.
func TestARunThatIsHeldTakesItsShard(t *testing.T) {
	car, road, plan := pair(t, 3)
	keepFirst(t, car, road, plan)
	plan.Shard = &wire.Shard{Number: 1, Of: 2}
	if v, err := car.Load(ctx, holder, plan); err != nil || len(v.Trials) != 1 {
		t.Fatalf("view %+v, %v", v, err)
	}
	for _, e := range []*Engine{car.Engine, newRig(t, "car", car.dir, testnet.FreePort(t)).Engine} {
		e.mu.Lock()
		if k, more := e.next(); !more || k.Trial != 3 {
			t.Errorf("next is %+v (%v), want trial 3", k, more)
		}
		e.mu.Unlock()
	}
}

// A peer that was put back by hand refuses every GO. That uses up no attempt of the trials that are left: the initiator
// holds off until a controller is there.
func TestAPeerWhoseRunHasEndedUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 2)
	k := keepFirst(t, car, road, plan)
	road.host.restoreByHand(t, "first")
	takeLease(t, car, 0)
	takeLease(t, road, 0)
	k.Trial = 2
	outcome, reason := car.outcome(t, k)
	if outcome != wire.Interrupted || !strings.Contains(reason, "road: the run has ended") {
		t.Errorf("kept as %s: %s", outcome, reason)
	}
	if _, goesOn := car.mine(); goesOn || car.Busy() {
		t.Error("the initiator does not hold off")
	}
	wantHoldingOff(t, car, "the run has ended at node road")
	past := car.deps.Clock.BootNs() - time.Minute.Nanoseconds()
	car.mu.Lock()
	car.heardNs = past
	car.mu.Unlock()
	k.Attempt = 2 // which the peer refuses at once
	if err := car.arm(ctx, k); err != nil {
		t.Fatal(err)
	}
	if outcome, reason := car.outcome(t, k); outcome != wire.Interrupted {
		t.Errorf("kept as %s: %s", outcome, reason)
	}
	car.mu.Lock()
	if next, more := car.next(); !more || next.Trial != 2 || car.heardNs != past {
		t.Errorf("next is %+v (%v), heard %d ns later", next, more, car.heardNs-past)
	}
	car.mu.Unlock()
	takeLease(t, car, 0.01)
	await(t, "the lease ends", func() bool { return !car.leaseHeld() })
	if _, goesOn := car.mine(); !goesOn {
		t.Error("after a controller was there it does not go on")
	}
}

// slowWall is a machine whose wall clock is behind until it is set.
type slowWall struct {
	clock.System
	behind time.Duration
}

func (c slowWall) Wall() time.Time { return c.System.Wall().Add(-c.behind) }

// A wall clock that is set while a run is under way, and a restart of the agent after that, do not end the run; what
// was heard during an attempt outlives the agent too.
func TestASteppedWallClockForsakesNobody(t *testing.T) {
	t.Parallel()
	car := newRig(t, "car", t.TempDir(), testnet.FreePort(t))
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	plan := twoNodePlan(2, car.port, road.port)
	for _, r := range []*rig{car, road} {
		r.deps.Clock = slowWall{behind: 72 * time.Hour}
		r.start(t)
		takeLease(t, r, 60)
		if _, err := r.Load(ctx, holder, plan); err != nil {
			t.Fatal(err)
		}
	}
	keepFirst(t, car, road, plan)
	car.mu.Lock()
	heard := car.heardNs
	car.mu.Unlock()
	again := newRig(t, "car", car.dir, testnet.FreePort(t))
	if _, goesOn := again.mine(); !goesOn || again.heardNs != heard {
		t.Errorf("it goes on: %v; it takes itself to have heard of the run %s later than it had", goesOn,
			time.Duration(again.heardNs-heard))
	}
}

// What a finished attempt finds out of the host process, or puts back, is no word on the attempt that a controller arms
// meanwhile.
func TestALateWordOnARestoreSparesTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(*fakeHost, func()){
		"an old status":  func(h *fakeHost, wait func()) { h.told = wait },
		"a late restore": func(h *fakeHost, wait func()) { h.restores = wait },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			car, road, plan := pair(t, 2)
			k := keepFirst(t, car, road, plan)
			k.Trial = 2
			reached, goOn, ended, armed := make(chan bool), make(chan bool), make(chan error, 1), make(chan error, 1)
			if name == "a late restore" {
				road.host.restoreByHand(t, "first")
			}
			road.host.mu.Lock()
			hold(road.host, func() { close(reached); <-goOn })
			road.host.mu.Unlock()
			go func() { ended <- road.endIfRestoredByHand(ctx) }()
			<-reached
			if name == "an old status" {
				road.host.mu.Lock()
				road.host.byHand = "first"
				road.host.mu.Unlock()
			}
			go func() { _, err := road.Arm(ctx, holder, plan.Run, k); armed <- err }()
			time.Sleep(200 * time.Millisecond) // it waits, or has armed
			close(goOn)
			<-ended
			if err := <-armed; err != nil {
				t.Fatal(err)
			}
			changes := road.host.inForce("trial") + road.host.inForce("run")
			if at, busy := road.Attempt(); !busy || at != k || changes == 0 {
				t.Errorf("it is at %+v (%v), with %d changes in force", at, busy, changes)
			}
		})
	}
}

// wantHoldingOff: why a node begins nothing more by itself is in its view, and once in its log.
func wantHoldingOff(t *testing.T, r *rig, why string) {
	t.Helper()
	await(t, "the view tells", func() bool {
		run, _ := r.Held()
		v, err := r.View(ctx, run, 0)
		return err == nil && strings.Contains(v.Detail, why)
	})
	await(t, "the log tells", func() bool { return strings.Contains(r.log.String(), why) })
	time.Sleep(3 * autopilotEvery)
	if n := strings.Count(r.log.String(), "begins nothing more by itself"); n != 1 {
		t.Errorf("the log tells it %d times:\n%s", n, r.log.String())
	}
}

func TestAForsakenNodeSaysSo(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 2)
	keepFirst(t, car, road, plan)
	v, err := car.View(ctx, plan.Run, 0)
	if err != nil || v.Detail != "" {
		t.Errorf("while its controller is there: %q, %v", v.Detail, err)
	}
	car.mu.Lock()
	car.lease, car.heardNs = lease{}, car.deps.Clock.BootNs()-forsakenAfter.Nanoseconds()
	car.mu.Unlock()
	watching, enough := context.WithTimeout(ctx, 10*time.Second)
	defer enough()
	if seen, err := car.View(watching, plan.Run, v.Version); err != nil || seen.Version == v.Version {
		t.Errorf("who watches is not told: %+v, %v", seen, err)
	}
	wantHoldingOff(t, car, "neither a controller nor a peer was heard for an hour")
}
