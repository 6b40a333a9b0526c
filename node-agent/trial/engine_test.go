package trial

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var ctx = context.Background()

// pair is a car's and a roadside node's engine, loaded with n trials.
func pair(t *testing.T, n int, changes ...func(*wire.RunPlan)) (car, road *rig, plan wire.RunPlan) {
	t.Helper()
	car = newRig(t, "car", t.TempDir(), testnet.FreePort(t))
	road = newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	plan = twoNodePlan(n, car.port, road.port)
	for _, change := range changes {
		change(&plan)
	}
	for _, r := range []*rig{car, road} {
		r.start(t)
		takeLease(t, r, 60)
		if _, err := r.Load(ctx, holder, plan); err != nil {
			t.Fatal(err)
		}
	}
	return car, road, plan
}

func takeLease(t *testing.T, r *rig, ttl float64) {
	t.Helper()
	if _, err := r.Lease(ctx, holder, wire.Lease{Holder: holder, TTLS: ttl}); err != nil {
		t.Fatal(err)
	}
}

func TestTrialGoesThroughItsStates(t *testing.T) {
	car, road, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*rig{car, road} {
		await(t, "kept", func() bool { return r.kept(k) })
		if got := r.spool.states(k); !slices.Equal(got, []string{"armed", "running", "restoring", "kept"}) {
			t.Errorf("%s went through %v", r.cfg.Node, got)
		}
		var sampled []string
		for _, rec := range r.spool.kinds(k, "tcp") {
			sampled = append(sampled, rec.Body.(*wire.TCPSample).Edge)
		}
		if !slices.Equal(sampled, []string{"before_open", "open", "before_close", "close"}) {
			t.Errorf("%s recorded the samples %v", r.cfg.Node, sampled)
		}
		if r.host.inForce("trial") != 0 {
			t.Errorf("%s did not restore", r.cfg.Node)
		}
		if r.host.inForce("run") == 0 {
			t.Errorf("%s put the run's changes back between trials", r.cfg.Node)
		}
	}
	w := road.spool.kinds(k, "window")[0].Body.(*wire.Window)
	if w.CloseBootNs-w.OpenBootNs != int64(100*time.Millisecond) || w.GoPath != "control" {
		t.Errorf("window %+v", w)
	}
	cw := car.spool.kinds(k, "window")[0].Body.(*wire.Window)
	if d := w.OpenBootNs - cw.OpenBootNs; d < 0 || d > int64(200*time.Millisecond) {
		t.Errorf("windows open %d ns apart", d)
	}
	want := []string{"client bulk", "server bulk"}
	if got := append(car.flows.started, road.flows.started...); !slices.Equal(got, want) {
		t.Errorf("started %v", got)
	}
	v, err := car.View(ctx, plan.Run, 0)
	if err != nil || v.Trials[0].Attempts[0].Outcome != "accepted" || v.Trials[0].Attempts[0].Final {
		t.Errorf("view %+v, %v", v, err)
	}
	if _, err := car.End(ctx, holder, plan.Run); err != nil || car.host.inForce("run") != 0 {
		t.Errorf("end: %v, %d changes in force", err, car.host.inForce("run"))
	}
}

func TestArmingTwiceIsArmingOnce(t *testing.T) {
	_, road, plan := pair(t, 2)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for range 2 {
		if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	if got := road.spool.states(k); !slices.Equal(got, []string{"armed"}) {
		t.Errorf("states %v", got)
	}
	_, err := road.Arm(ctx, holder, plan.Run, wire.TrialKey{Trial: 2, Attempt: 1})
	wantCode(t, err, wire.CodeBusy)
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil { // kept: nothing is done again
		t.Fatal(err)
	}
	kept := road.spool.kinds(k, "trial")
	last := kept[len(kept)-1].Body.(*wire.TrialState)
	if last.State != "kept" || last.Outcome != "interrupted" ||
		!strings.HasPrefix(last.Reason.String(), "aborted: test") {
		t.Errorf("last state %+v", last)
	}
}

func TestANodeNeedsNoRoomForTheTrialsOfOthers(t *testing.T) {
	car, _, plan := pair(t, 1)
	car.spool.fill(&wire.Error{Message: "full"})
	plan.Run = "other"
	plan.Trials = slices.Clone(plan.Trials)
	for i := range plan.Trials {
		x := &plan.Trials[i]
		x.Initiator, x.Sender, x.Receiver, x.Car, x.Roadside = "road", "road", "road", "", "road"
	}
	if _, err := car.Load(ctx, holder, plan); err != nil {
		t.Error(err)
	}
}

//attack:controller a stale lease, or that of another run | holder and time to live
//attack:controller a plan that is changed after an attempt of it was driven | a run with a verdict keeps its plan
//attack:controller trials and attempts that the plan does not have | they are not armed
func TestRefusals(t *testing.T) {
	car, _, plan := pair(t, 1)
	_, err := car.Arm(ctx, "somebody", plan.Run, wire.TrialKey{Trial: 1, Attempt: 1})
	wantCode(t, err, wire.CodeLeaseHeld)
	_, err = car.Lease(ctx, "somebody", wire.Lease{TTLS: 10})
	wantCode(t, err, wire.CodeLeaseHeld)
	_, err = car.Lease(ctx, holder, wire.Lease{Holder: "another run of the same controller", TTLS: 10})
	wantCode(t, err, wire.CodeLeaseHeld)
	_, err = car.Lease(ctx, holder, wire.Lease{Holder: "who asks whether somebody has it"})
	wantCode(t, err, wire.CodeLeaseHeld)
	_, err = car.Arm(ctx, holder, "other", wire.TrialKey{Trial: 1, Attempt: 1})
	wantCode(t, err, wire.CodeNotFound)
	_, err = car.Arm(ctx, holder, plan.Run, wire.TrialKey{Trial: 9, Attempt: 1})
	wantCode(t, err, wire.CodeBadRequest)
	_, err = car.Arm(ctx, holder, plan.Run,
		wire.TrialKey{Trial: 1, Attempt: plan.AttemptsMax + verdict.InterruptionsMax + 1})
	wantCode(t, err, wire.CodeBadRequest)
	changed := plan
	changed.Seed++
	if _, err := car.Load(ctx, holder, changed); err != nil { // nothing has happened in it yet
		t.Error(err)
	}
	car.spool.full = &wire.Error{Message: "full"}
	other := plan
	other.Run = "other"
	_, err = car.Load(ctx, holder, other)
	wantCode(t, err, wire.CodeDiskFull)
	if run, _ := car.Held(); run != plan.Run {
		t.Error("a run that was refused is held")
	}
	_, err = car.Arm(ctx, holder, plan.Run, wire.TrialKey{Trial: 1, Attempt: 1})
	wantCode(t, err, wire.CodeDiskFull)
	decided := []wire.Verdict{{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "failed"}}
	if _, err := car.Verdicts(ctx, holder, plan.Run, decided); err != nil {
		t.Fatal(err)
	}
	_, err = car.Load(ctx, holder, plan)
	wantCode(t, err, wire.CodeConflict)
}

// What passes when the agent's halves are started again, or the lease is taken, has codes of its own: a controller
// waits for it, and for no other refusal.
func TestRefusalsThatPassAreToldApart(t *testing.T) {
	car, _, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	takeLease(t, car, 0)
	_, err := car.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeLeaseNeeded)
	takeLease(t, car, 60)
	car.host.keep(errors.New("the privileged half is away"))
	other := plan
	other.Run = "other"
	_, err = car.Load(ctx, holder, other)
	wantCode(t, err, wire.CodeHost)
	car.stop()
	_, err = car.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeStopping)
	_, err = car.Restore(ctx)
	wantCode(t, err, wire.CodeHost)
	car.host.keep(nil)
}

// Also the same plan again may be of a run that was over; what it records from then on is waited for.
func TestALoadedRunIsWaitedFor(t *testing.T) {
	car, _, plan := pair(t, 1)
	if _, err := car.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	want := []string{"reopened " + plan.Run, "begun " + plan.Run, "reopened " + plan.Run}
	if !slices.Equal(car.spool.awaited, want) {
		t.Errorf("the spool has %v, want %v", car.spool.awaited, want)
	}
	if _, err := car.Restore(ctx); err != nil {
		t.Fatal(err)
	}
	car.spool.unnoted = errors.New("full")
	if _, err := car.Load(ctx, holder, plan); err == nil || !car.ended {
		t.Errorf("the run goes on, though a restarted node would take it for over: %v", err)
	}
}

// Where the plan cannot be written, the run that is held goes on, and so do its signatures.
func TestARunThatCannotBeWrittenIsNotBegun(t *testing.T) {
	car, _, plan := pair(t, 1)
	if err := os.Mkdir(filepath.Join(car.dir, "run", "plan.json.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	plan.Seed++
	if _, err := car.Load(ctx, holder, plan); err == nil {
		t.Fatal("the plan was written")
	}
	if want := []string{"reopened " + plan.Run, "begun " + plan.Run, "reopened " + plan.Run}; !slices.Equal(
		car.spool.awaited, want) {
		t.Errorf("the spool has %v, want %v", car.spool.awaited, want)
	}
}

// What a node has of a run stays while that is under way there: steered, in an attempt or between two of them.
func TestARunThatIsUnderWayIsNotForgotten(t *testing.T) {
	car, road, plan := pair(t, 2)
	dropped := 0
	forget := func(run string) error { return car.Forget(run, func() error { dropped++; return nil }) }
	refused := func(code, says string) {
		t.Helper()
		err := forget(plan.Run)
		wantCode(t, err, code)
		if !strings.Contains(err.Error(), says) || dropped > 0 {
			t.Errorf("dropped %d times: %v", dropped, err)
		}
	}
	refused(wire.CodeLeaseHeld, "node car is steered by "+holder)
	keepFirst(t, car, road, plan)
	takeLease(t, car, 0)
	refused(wire.CodeBusy, "run "+plan.Run+" is under way at node car")
	if err := forget("another"); err != nil || dropped != 1 {
		t.Errorf("of another run: %v", err)
	}
	if _, err := car.Restore(ctx); err != nil {
		t.Fatal(err)
	}
	if err := forget(plan.Run); err != nil || dropped != 2 {
		t.Errorf("after its end: %v", err)
	}
}

func TestNodeThatCannotArmFailsTheTrial(t *testing.T) {
	car, _, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	car.host.fail = &wire.Error{Code: "refused", Message: "no such interface"}
	_, err := car.Arm(ctx, holder, plan.Run, k)
	wantCode(t, err, wire.CodeNotReady)
	if got := car.spool.states(k); !slices.Equal(got, []string{"restoring", "kept"}) {
		t.Errorf("states %v", got)
	}
}

// Either end of a flow is looked at when it arms; the car has the client only.
func TestNodeWhoseGeneratorHasNoPlaceDoesNotArm(t *testing.T) {
	car, _, plan := pair(t, 1)
	car.flows.unready = errors.New("make a temporary folder for iperf3: permission denied")
	_, err := car.Arm(ctx, holder, plan.Run, wire.TrialKey{Trial: 1, Attempt: 1})
	wantCode(t, err, wire.CodeNotReady)
	if !strings.Contains(err.Error(), "flow bulk: make a temporary folder") {
		t.Error(err)
	}
}

// The initiator whose client could not run does not take the attempt for a
// connection that was not there.
func TestAClientThatCannotStartFailsTheAttempt(t *testing.T) {
	car, road, plan := pair(t, 1)
	car.flows.deaf = errors.New("no more processes")
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "kept", func() bool { return car.kept(k) })
	if outcome, reason := car.outcome(t, k); outcome != "failed" ||
		reason != "generator: on car: iperf3's client of flow bulk could not start: no more processes" {
		t.Errorf("%s %q", outcome, reason)
	}
}

func TestHostStartedAnewInterruptsTheTrial(t *testing.T) {
	armedRoadEnds(t, "interrupted", "host_restarted", func(road *rig) {
		road.host.mu.Lock()
		road.host.instance = "2"
		road.host.mu.Unlock()
	})
}

// A person told the privileged half to restore, beside the agent.
func TestMachinePutBackInATrialInterruptsIt(t *testing.T) {
	armedRoadEnds(t, "interrupted", "host_restored", func(road *rig) {
		if _, err := road.host.Restore(ctx, ""); err != nil {
			t.Fatal(err)
		}
	})
}

// armedRoadEnds arms both nodes, lets something happen to the roadside one, and holds
// how its trial ends against an outcome and a reason's beginning.
func armedRoadEnds(t *testing.T, outcome wire.Outcome, reason string, happens func(road *rig)) {
	t.Helper()
	car, road, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	happens(road)
	await(t, "kept", func() bool { return road.kept(k) })
	rs := road.spool.kinds(k, "trial")
	if b := rs[len(rs)-1].Body.(*wire.TrialState); b.Outcome != outcome ||
		!strings.HasPrefix(b.Reason.String(), reason) {
		t.Errorf("kept as %+v", b)
	}
}

func TestAgentStartedAnewBuriesItsTrial(t *testing.T) {
	car, _, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	car.gps.speed = 0 // the gate stays shut
	if _, err := car.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	again := newRig(t, "car", car.dir, testnet.FreePort(t)) // as after SIGKILL: nobody told the first one to stop
	if got := again.spool.states(k); !slices.Equal(got, []string{"kept"}) {
		t.Fatalf("states %v", got)
	}
	v, err := again.View(ctx, plan.Run, 0)
	if err != nil || len(v.Trials) != 1 || v.Trials[0].Attempts[0].Outcome != "interrupted" {
		t.Errorf("view %+v, %v", v, err)
	}
}

// A node starts though it cannot record how its last attempt ended, as on a full disk. It knows the end, and records it
// at a later start, whatever a controller without that record has decided meanwhile.
func TestANodeStartsThatCannotRecordAnEnd(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for name, fail := range map[string]func(r *rig, err error){
		"the spool is full":      func(r *rig, err error) { r.spool.fill(err) },
		"the spool is not read":  func(r *rig, err error) { r.spool.unread = err },
		"the disk takes nothing": func(r *rig, err error) { r.spool.unsynced = err },
	} {
		t.Run(name, func(t *testing.T) {
			car := newRig(t, "car", t.TempDir(), 0)
			if err := errors.Join(car.journal.Load(twoNodePlan(1, 1, 1), ""),
				car.journal.Armed(journal.Attempt{TrialKey: k}, journal.Heard{})); err != nil {
				t.Fatal(err)
			}
			decided := wire.Verdict{TrialKey: k, Outcome: wire.Interrupted}
			for life, err := range []error{syscall.ENOSPC, syscall.ENOSPC, nil, nil} {
				fail(car, err)
				again, newErr := New(ctx, car.cfg, car.deps)
				if newErr != nil {
					t.Fatalf("while it is %v: %v", err, newErr)
				}
				v, viewErr := again.View(ctx, "r1", 0)
				if viewErr != nil || len(v.Trials) != 1 || v.Trials[0].Attempts[0].Outcome != wire.Interrupted {
					t.Errorf("while it is %v: view %+v, %v", err, v, viewErr)
				}
				if told := strings.Contains(car.log.String(), "record unfinished trial"); !told {
					t.Errorf("the log says %q", car.log.String())
				}
				if life == 0 {
					if _, err := again.Lease(ctx, holder, wire.Lease{Holder: holder, TTLS: 60}); err != nil {
						t.Fatal(err)
					}
					if _, err := again.Verdicts(ctx, holder, "r1", []wire.Verdict{decided}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := car.spool.states(k); len(got) == 0 {
				t.Error("its end is not recorded when that can be done")
			}
			_, state, err := journal.Open(filepath.Join(car.dir, "run"))
			if err != nil || state.Unfinished != nil {
				t.Errorf("unfinished is %v, %v", state.Unfinished, err)
			}
		})
	}
}

// What could not be recorded at the start is recorded when a verdict comes, and before another attempt is armed.
func TestAnEndIsRecordedBeforeAnotherAttemptIsArmed(t *testing.T) {
	k, next := wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 1, Attempt: 2}
	for name, decided := range map[string]bool{"by the next arm": false, "by the controller's word": true} {
		t.Run(name, func(t *testing.T) {
			car := newRig(t, "car", t.TempDir(), 0)
			if err := errors.Join(car.journal.Load(twoNodePlan(1, 1, 1), ""),
				car.journal.Armed(journal.Attempt{TrialKey: k}, journal.Heard{})); err != nil {
				t.Fatal(err)
			}
			car.spool.unsynced = syscall.EIO
			again, err := New(ctx, car.cfg, car.deps)
			if err != nil {
				t.Fatal(err)
			}
			takeLease(t, &rig{Engine: again}, 60)
			if err := again.arm(ctx, next); !errors.Is(err, syscall.EIO) {
				t.Errorf("armed without a record of the last attempt: %v", err)
			}
			car.spool.unsynced = nil
			if decided {
				_, err = again.Verdicts(ctx, holder, "r1", []wire.Verdict{{TrialKey: k, Outcome: wire.Failed}})
			} else {
				_ = again.arm(ctx, next) // it may fail
				defer again.stop()
			}
			_, state, openErr := journal.Open(filepath.Join(car.dir, "run"))
			if err := errors.Join(err, openErr); err != nil || again.unburied != nil ||
				state.Unfinished != nil && state.Unfinished.TrialKey == k || len(state.Verdicts[1]) == 0 {
				t.Errorf("the journal holds %+v, %v", state, err)
			}
		})
	}
}

func TestNodesGoOnAlone(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 3)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
		takeLease(t, r, 0) // the controller is gone
	}
	for n := 1; n <= 3; n++ {
		k := wire.TrialKey{Trial: n, Attempt: 1}
		await(t, "the trial", func() bool { return car.kept(k) && road.kept(k) })
	}
	if car.Busy() {
		t.Error("the car is busy after the last trial")
	}
}

// Alone, a peer takes its time to arm: it may have a network to join at each trial.
func TestAPeerThatArmsSlowlyTakesPartAlone(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 2)
	keepFirst(t, car, road, plan)
	road.host.mu.Lock()
	road.host.takes = lateArm * 3 / 4 // the changes of the run, and those of the trial
	road.host.mu.Unlock()
	for _, r := range []*rig{road, car} {
		takeLease(t, r, 0) // the controller is gone
	}
	k := wire.TrialKey{Trial: 2, Attempt: 1}
	await(t, "the trial", func() bool { return car.kept(k) && road.kept(k) })
	for _, r := range []*rig{road, car} {
		if outcome, reason := r.outcome(t, k); outcome != wire.Accepted {
			t.Errorf("%s: %s, %s", r.cfg.Node, outcome, reason)
		}
	}
}

func TestSpeedThatNeverComesIsRejectedForTheGate(t *testing.T) {
	car, _, plan := pair(t, 1)
	car.plan.Trials[0].Gate.TimeoutS = 0.2
	car.gps.speed = 2
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := car.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	await(t, "kept", func() bool { return car.kept(k) })
	rs := car.spool.kinds(k, "trial")
	if b := rs[len(rs)-1].Body.(*wire.TrialState); b.Outcome != "rejected" ||
		!strings.HasPrefix(b.Reason.String(), errGateTimeout.Error()) {
		t.Errorf("kept as %+v", b)
	}
}

// seal is a GO as a datagram.
func seal(t *testing.T, key []byte, g wire.Go) []byte {
	t.Helper()
	d, err := wire.Seal(key, g)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ask sends GO to a node until it answers, and answers its challenges, as an
// initiator does. What is sent before, from the same socket, must stay without an
// answer.
func (to *rig) ask(t *testing.T, planKey []byte, g wire.Go, before ...[]byte) wire.Ack {
	t.Helper()
	g.To, g.Exchange = to.cfg.Node, 7
	for {
		ack := to.askOnce(t, planKey, g, before...)
		if before = nil; ack.Challenge == 0 {
			return ack
		}
		g.Answer = ack.Challenge
	}
}

// askOnce sends the same GO until there is any answer.
func (to *rig) askOnce(t *testing.T, planKey []byte, g wire.Go, before ...[]byte) wire.Ack {
	t.Helper()
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to.port})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var ack wire.Ack
	buf := make([]byte, 2000)
	await(t, "an answer to GO", func() bool {
		for _, d := range append(before, seal(t, planKey, g)) {
			if _, err := conn.Write(d); errors.Is(err, syscall.ECONNREFUSED) {
				return false // the node does not listen yet: all of it again
			} else if err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := conn.Read(buf)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false
		}
		before = nil
		if err != nil {
			return false
		}
		if err := wire.Open(planKey, buf[:n], &ack); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if ack.Trial != g.Trial || ack.Attempt != g.Attempt || ack.Nonce != g.Nonce || ack.Of != g.Type ||
		ack.Exchange != g.Exchange {
		t.Fatalf("asked %+v, answered %+v", g, ack)
	}
	return ack
}

//attack:air a forged GO, or of another run | HMAC with the run's key
//attack:air a GO, or the answer to one, that was heard and is sent again, to whomever and whenever | it names
//attack:and its receiver and its exchange; one that would arm a node, or end what it does, has to answer the
//attack:and node's challenge, once; who takes no part, and whose run has ended, does not obey
//attack:face whoever has taken over a node of the run gives GO in the initiator's place | only the trial's initiator
//attack:and is obeyed
func TestForgedAndReplayedGo(t *testing.T) {
	t.Parallel()
	_, road, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	g := wire.Go{Type: "go", Run: plan.Run, Trial: 1, Attempt: 1, From: "car", Nonce: 1, StartInUs: 100_000}
	forged, stranger := g, g
	forged.Nonce, stranger.From = 99, "road"
	if ack := road.ask(t, plan.Key, stranger, seal(t, []byte("another key, also of 32 bytes..."), forged)); ack.Ready {
		t.Errorf("a GO from another than the initiator: %+v", ack)
	}
	if !strings.Contains(road.log.String(), "GO refused") {
		t.Error("a forged GO is not logged")
	}
	if ack := road.ask(t, plan.Key, g); !ack.Ready {
		t.Errorf("the late arm: %+v", ack)
	}
	await(t, "kept", func() bool { return road.kept(k) })
	if ack := road.ask(t, plan.Key, g); ack.Ready {
		t.Errorf("a replayed GO: %+v", ack)
	}
	// At most one refusal a second is logged, so that a flood cannot fill the disk.
	await(t, "the replay is logged", func() bool {
		road.ask(t, plan.Key, g)
		return strings.Contains(road.log.String(), "GO not obeyed")
	})
	if n := len(road.spool.kinds(k, "window")); n != 1 {
		t.Errorf("%d windows", n)
	}
}

// A run is resumed, and its nodes have other addresses on the control link.
func TestSamePlanMayComeWithOtherControlAddresses(t *testing.T) {
	car, _, plan := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := car.Verdicts(ctx, holder, plan.Run, []wire.Verdict{{TrialKey: k, Outcome: "failed"}}); err != nil {
		t.Fatal(err)
	}
	moved := plan
	moved.Nodes = slices.Clone(plan.Nodes)
	moved.Nodes[1].ControlAddr = "127.0.0.3"
	v, err := car.Load(ctx, holder, moved)
	if err != nil || len(v.Trials) != 1 {
		t.Fatalf("view %+v, %v", v, err)
	}
	again := newRig(t, "car", car.dir, testnet.FreePort(t))
	if n, _ := again.planNode("road"); n.ControlAddr != "127.0.0.3" {
		t.Errorf("after a restart the control address is %q", n.ControlAddr)
	}
	if v, err := again.View(ctx, plan.Run, 0); err != nil || len(v.Trials) != 1 {
		t.Errorf("after a restart the view is %+v, %v", v, err)
	}
	moved.Trials = slices.Clone(plan.Trials)
	moved.Trials[0].DurationS = 7
	_, err = car.Load(ctx, holder, moved)
	wantCode(t, err, wire.CodeConflict)
}

// Who watches the view learns that nothing more comes, and that the run is taken up again.
func TestTheViewTellsThatTheRunHasEnded(t *testing.T) {
	car, _, plan := pair(t, 1)
	view := func(r *rig) wire.CampaignView {
		v, err := r.View(ctx, plan.Run, 0)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if view(car).Ended {
		t.Error("it has ended before it began")
	}
	if _, err := car.End(ctx, holder, plan.Run); err != nil {
		t.Fatal(err)
	}
	ended := view(car)
	if !ended.Ended || !view(newRig(t, "car", car.dir, testnet.FreePort(t))).Ended {
		t.Errorf("its end is not told, or not after a restart: %+v", ended)
	}
	if _, err := car.Load(ctx, holder, plan); err != nil {
		t.Fatal(err)
	}
	if v := view(car); v.Ended || v.Version == ended.Version {
		t.Errorf("that it is taken up is not told, or not to who waits for a change: %+v", v)
	}
}

// The shards of a run bear one name, and may be driven on the same nodes, one after the other.
func TestAShardThatIsDoneGivesWayToAnother(t *testing.T) {
	car, _, plan := pair(t, 2)
	plan.Shard = &wire.Shard{Number: 1, Of: 2}
	load := func(p wire.RunPlan) error { _, err := car.Load(ctx, holder, p); return err }
	if err := load(plan); err != nil {
		t.Fatal(err)
	}
	other := plan
	other.Shard, other.Key = &wire.Shard{Number: 2, Of: 2}, bytes.Repeat([]byte{7}, 32)
	decide := func(o wire.Outcome) {
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: o}
		if _, err := car.Verdicts(ctx, holder, plan.Run, []wire.Verdict{v}); err != nil {
			t.Fatal(err)
		}
	}
	end := func() {
		if _, err := car.End(ctx, holder, plan.Run); err != nil {
			t.Fatal(err)
		}
	}
	decide(wire.Rejected)
	end()
	wantCode(t, load(other), wire.CodeConflict) // its trial has attempts left
	decide(wire.Accepted)
	if err := load(plan); err != nil {
		t.Fatal(err)
	}
	wantCode(t, load(other), wire.CodeConflict) // it has not ended
	end()
	car.verdicts[1][0].Final = false
	wantCode(t, load(other), wire.CodeConflict) // its controller has not heard of it
	car.verdicts[1][0].Final = true
	changed := other
	changed.Seed++
	wantCode(t, load(changed), wire.CodeConflict)
	changed = plan
	changed.Key = other.Key
	wantCode(t, load(changed), wire.CodeConflict) // the same shard, begun again
	if err := load(other); err != nil {
		t.Fatal(err)
	}
	again := newRig(t, "car", car.dir, testnet.FreePort(t))
	run, shard := again.Held()
	if v, err := again.View(ctx, plan.Run, 0); err != nil || len(v.Trials) != 0 || run != plan.Run ||
		shard.Number != 2 {
		t.Errorf("it holds shard %v of %q: %+v, %v", shard, run, v, err)
	}
}

// Alone, a node uses up no attempt that it could not even arm for.
func TestNodeGoesOnAloneOnlyWhenItCan(t *testing.T) {
	car, _, _ := pair(t, 1)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if err := car.able(ctx, k); err != nil {
		t.Errorf("a node in order: %v", err)
	}
	car.plan.Trials[0].Radio = wire.Radio{Mode: "adhoc"} // of which nothing is known
	if err := car.able(ctx, k); err == nil {
		t.Error("a node without its radio would begin")
	}
}

// What a former attempt left would be in the air of the next window: no attempt
// begins as long as it cannot be destroyed.
func TestNoAttemptBeginsAmongAnothersSockets(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.host.stuck = "destroy socket of port 5000: operation not supported"
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err == nil || !strings.Contains(err.Error(), "sockets_left: ") {
		t.Errorf("armed: %v", err)
	}
	if outcome, reason := road.outcome(t, k); outcome != wire.Failed ||
		!strings.Contains(reason, "operation not supported; wait until it is gone") {
		t.Errorf("%s: %s", outcome, reason)
	}
}

// A node tells for how long it stood still in its window.
func TestAStandstillIsRecorded(t *testing.T) {
	car, road, plan := pair(t, 1)
	k := keepFirst(t, car, road, plan)
	for _, r := range []*rig{car, road} {
		told := map[string]*wire.Lateness{}
		for _, rec := range r.spool.kinds(k, "lateness") {
			l := rec.Body.(*wire.Lateness)
			told[l.Source] = l
		}
		if l := told[wire.LateAgent]; l == nil || l.Events == 0 || l.SuspendedMs == nil || l.SlewedMs == nil ||
			told[wire.LateSampler] == nil {
			t.Errorf("%s: %+v", r.cfg.Node, told)
		}
	}
}

// Samples before an edge stand for it only if they were before it, and have every
// socket that the edge's own have and that lives.
func TestSamplesBeforeAnEdge(t *testing.T) {
	socket := func(cookie uint64, state string) wire.Body {
		return &wire.TCPSample{Flow: "bulk", Stream: ptr(0), Cookie: cookie, State: state}
	}
	stranger := &wire.TCPSample{Flow: "bulk", Cookie: 9, Stranger: true}
	e := &early{samples: []wire.Body{socket(1, "ESTABLISHED"), socket(2, "ESTABLISHED")}}
	for name, c := range map[string]struct {
		atEdge []wire.Body
		want   bool
	}{
		"the same":        {[]wire.Body{socket(1, "ESTABLISHED"), socket(2, "ESTABLISHED")}, true},
		"one has ended":   {[]wire.Body{socket(1, "ESTABLISHED"), socket(2, "CLOSE")}, true},
		"ended before":    {[]wire.Body{socket(1, "ESTABLISHED"), socket(3, "CLOSE")}, true},
		"a new one":       {[]wire.Body{socket(1, "ESTABLISHED"), socket(3, "ESTABLISHED")}, false},
		"only a stranger": {[]wire.Body{stranger}, true},
		"none":            {nil, true},
	} {
		if got := e.has(c.atEdge); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	r := newRig(t, "car", t.TempDir(), 0)
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	a.sockets = fakeSockets{&r.open}
	now := r.deps.Clock.BootNs()
	for answeredNs, want := range map[int64]bool{now: true, now + 1: false} { // a GO may put the opening earlier
		a.early = &early{askedNs: now - 1e6, answeredNs: answeredNs, samples: []wire.Body{socket(0, "ESTABLISHED")}}
		if err := a.edge("open", now); err != nil {
			t.Fatal(err)
		}
		edges := r.spool.kinds(a.key, "edge")
		if got := edges[len(edges)-1].Body.(*wire.Edge).EarlyMs != nil; got != want || a.early != nil {
			t.Errorf("answered %d ns after the edge: taken %v, want %v", answeredNs-now, got, want)
		}
	}
}

// That the reference TCP may have lacked causes is a warning in the attempt; other undos are none.
func TestMissingCausesAreAWarning(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	lacks := "bpf congestion control reference (" + change.CausesMissing + ": 3)"
	r.host.undone = []string{lacks, "address 10.77.0.1/24 on wlan0"}
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	if _, err := a.restore(); err != nil {
		t.Fatal(err)
	}
	told, undone := r.spool.kinds(a.key, "event"), r.spool.kinds(a.key, "change")
	warning := wire.Event{Level: "warning", Text: lacks}
	if len(told) != 1 || *told[0].Body.(*wire.Event) != warning || len(undone) != 2 {
		t.Errorf("events %+v, changes %+v; want a warning, %q, and both changes", told, undone, lacks)
	}
}

// Every node records how late it was at each moment at which it had to act, the
// late included, keeps its flows' ports for their peers, and destroys its sockets
// at the end.
func TestEdgesAreRecordedAndSocketsEnd(t *testing.T) {
	car, road, plan := pair(t, 1, func(p *wire.RunPlan) { p.Control = wire.ControlOwn })
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		r.host.left, r.host.stopped = 1, []flows.Filtered{{Packets: 4, Wholly: true}}
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
	for r, want := range map[*rig][]string{car: {"open", "start", "close", "end"}, road: {"open", "close", "end"}} {
		var got []string
		for _, rec := range r.spool.kinds(k, "edge") {
			e := rec.Body.(*wire.Edge)
			got = append(got, e.Edge)
			sampled := e.Edge == "open" || e.Edge == "close"
			if e.LateMs < 0 || rec.TBootNs < e.DueBootNs || (e.EarlyMs != nil) != sampled ||
				sampled && (*e.EarlyMs < 0 || *e.EarlyMs > 1e3*approachTime.Seconds()) ||
				e.Edge == "end" && (e.Sockets != 2 || e.Refused == nil || *e.Refused != 3 ||
					e.Filtered == nil || *e.Filtered != 4 || e.FilteredFlow != "bulk") {
				t.Errorf("%s: %+v at %d", r.cfg.Node, e, rec.TBootNs)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: edges %q, want %q", r.cfg.Node, got, want)
		}
		r.host.mu.Lock()
		severed := r.host.severed
		r.host.mu.Unlock()
		if len(severed) != 2 || len(severed[1].Flows) != 1 || severed[1].Flows[0].Server != (r == road) ||
			severed[1].Flows[0].Port != 5000 {
			t.Errorf("%s: severed %+v", r.cfg.Node, severed)
		}
		left := r.spool.kinds(k, "event")
		if len(left) != 1 || left[0].Body.(*wire.Event).Text != "sockets of a former attempt were still there, and "+
			"are destroyed: 1" {
			t.Errorf("%s: events %+v", r.cfg.Node, left)
		}
	}
	if outcome, reason := car.outcome(t, k); outcome != wire.Failed ||
		!strings.HasPrefix(reason, "firewall: car stopped all of flow bulk (port 5000) by its own packet filter") {
		t.Errorf("%s: %s", outcome, reason)
	}
	var made []string
	for _, rec := range road.spool.kinds(k, "change") {
		made = append(made, rec.Body.(*wire.HostChange).What)
	}
	for _, want := range []string{"admission of 1 flows at 127.0.0.2",
		"control port 7443 closed on wlan0 and at 127.0.0.2"} {
		if !slices.Contains(made, want) {
			t.Errorf("the road keeps no stranger from a port: no %q among %q", want, made)
		}
	}
}
