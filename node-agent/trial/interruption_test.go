package trial

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func TestWhatEndsAnAttemptDecidesWhetherItCounts(t *testing.T) {
	aborted := verdict.Interruption{Code: wire.ReasonAborted, Text: "a person"}
	for _, c := range []struct {
		reason error
		want   wire.Outcome
	}{
		{aborted, wire.Interrupted},
		{fault{wire.ReasonArmFailed, aborted}, wire.Interrupted},
		{errors.Join(aborted, errors.New("flow bulk: killed")), wire.Interrupted},
		{join(errors.New("routing_daemon: it ended"), hostRestarted()), wire.Interrupted},
		{faultf(wire.ReasonArmFailed, "arm: %w", fmt.Errorf("%w: connection refused", host.ErrAway)), wire.Interrupted},
		{errors.New("aborted: car: routing_daemon: it ended"), wire.Failed}, // it follows another node
		{errors.New("agent_restarted: only words"), wire.Failed},
		{errors.New("superseded: GO of trial 1 attempt 2 came"), wire.Failed},
		{faultf(wire.ReasonGateTimeout, "the gate did not open within 5 s"), wire.Rejected},
		{errors.New("gate_timeout: only words"), wire.Failed},
	} {
		if got := outcomeOf(c.reason); got != c.want {
			t.Errorf("%v: %s, want %s", c.reason, got, c.want)
		}
	}
}

// A node that leaves an attempt because another one did has nothing to say of
// why; somebody who aborts one has.
func TestAnAbortThatFollowsIsNoInterruption(t *testing.T) {
	_, road, plan := pair(t, 2)
	for trial, want := range map[int]wire.Outcome{1: wire.Failed, 2: wire.Interrupted} {
		k := wire.TrialKey{Trial: trial, Attempt: 1}
		if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
		req := wire.AbortRequest{TrialKey: k, Reason: "test", Follows: trial == 1}
		if _, err := road.Abort(ctx, plan.Run, req); err != nil {
			t.Fatal(err)
		}
		if outcome, reason := road.outcome(t, k); outcome != want || reason != "aborted: test" {
			t.Errorf("follows %v: %s, %s; want %s", trial == 1, outcome, reason, want)
		}
	}
}

// The car's agent is killed at more attempts than the plan has, with no
// controller there: each life buries its attempt and goes on, and the peer,
// which cannot know of what befell the car, takes part.
func TestInterruptedMoreOftenThanThePlanHasAttempts(t *testing.T) {
	t.Parallel()
	road := newRig(t, "road", t.TempDir(), testnet.FreePort(t))
	road.start(t)
	carDir, carPort := t.TempDir(), testnet.FreePort(t)
	plan := twoNodePlan(1, carPort, road.port)
	lives := plan.AttemptsMax + 2
	for life := 1; life <= lives; life++ {
		car := newRig(t, "car", carDir, carPort)
		if life < lives {
			car.gps.speed = 0 // the gate stays shut
		}
		ends := make(chan error, 1)
		living, kill := context.WithCancel(ctx)
		go func() { ends <- car.Run(living) }()
		if life == 1 {
			for _, r := range []*rig{car, road} {
				takeLease(t, r, 60)
				if _, err := r.Load(ctx, holder, plan); err != nil {
					t.Fatal(err)
				}
			}
		}
		k := wire.TrialKey{Trial: 1, Attempt: life}
		if life == lives {
			await(t, "the trial, alone", func() bool { return car.kept(k) && road.kept(k) })
			if outcome, reason := car.outcome(t, k); outcome != wire.Accepted {
				t.Errorf("the last attempt: %s, %s", outcome, reason)
			}
		} else {
			if life == 1 {
				if _, err := car.Arm(ctx, holder, plan.Run, k); err != nil {
					t.Fatal(err)
				}
				takeLease(t, car, 0)
				takeLease(t, road, 0)
			}
			await(t, "armed", func() bool { _, busy := car.Attempt(); return busy })
		}
		kill()
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	again := newRig(t, "car", carDir, carPort)
	v, err := again.View(ctx, plan.Run, 0)
	if err != nil || len(v.Trials) != 1 || len(v.Trials[0].Attempts) != lives {
		t.Fatalf("what the last life knows: %+v, %v", v.Trials, err)
	}
	for i, a := range v.Trials[0].Attempts[:lives-1] {
		if a.Outcome != wire.Interrupted {
			t.Errorf("attempt %d: %+v", i+1, a)
		}
	}
}

// An agent that is killed when an attempt's end is recorded, and not yet in the journal,
// finds the record; one that is killed before finds none, or that of another run.
func TestAnAttemptThatWasKeptIsNotInterrupted(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	end := func(run string) wire.Record {
		return wire.Record{Header: wire.Header{Run: run, Trial: 1, Attempt: 1},
			Body: &wire.TrialState{State: wire.StateKept, Outcome: wire.Rejected, Reason: wire.Reason{Code: "speed"}}}
	}
	begin := end("r1")
	begin.Body = &wire.TrialState{State: wire.StateArmed}
	for name, c := range map[string]struct {
		before, recorded []wire.Record // it was armed
		want             wire.Outcome
		records          int
	}{
		"kept":     {nil, []wire.Record{begin, end("r1")}, wire.Rejected, 2},
		"not kept": {nil, []wire.Record{begin}, wire.Interrupted, 2},
		"kept in a former of its name": {[]wire.Record{begin, end("r1")}, []wire.Record{begin}, wire.Interrupted,
			4},
		"being armed after a former": {[]wire.Record{begin, end("r1")}, nil, wire.Interrupted, 3},
		"kept in another":            {nil, []wire.Record{begin, end("r0")}, wire.Interrupted, 3},
		"nothing of it told":         {nil, nil, wire.Interrupted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			road := newRig(t, "road", t.TempDir(), 0)
			spool := &fakeSpool{}
			record := func(records []wire.Record) {
				for _, r := range records {
					if _, err := spool.Append(r.Header, r.Body); err != nil {
						t.Fatal(err)
					}
				}
			}
			record(c.before)
			if err := errors.Join(road.journal.Load(twoNodePlan(1, 1, 1), ""),
				road.journal.Armed(journal.Attempt{TrialKey: k, After: spool.Position().Seq},
					journal.Heard{})); err != nil {
				t.Fatal(err)
			}
			record(c.recorded)
			deps := road.deps
			deps.Spool = spool
			for range 2 { // lives; the second has it in the journal
				e, err := New(ctx, road.cfg, deps)
				if err != nil {
					t.Fatal(err)
				}
				if got := e.verdicts[1]; len(got) != 1 || got[0].TrialKey != k || got[0].Outcome != c.want {
					t.Errorf("verdicts %+v, want %s", got, c.want)
				}
				if len(spool.records) != c.records {
					t.Errorf("%d records, want %d", len(spool.records), c.records)
				}
			}
		})
	}
}
