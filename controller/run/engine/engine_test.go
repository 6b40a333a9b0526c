package engine

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func twoNodes(decisions ...wire.Verdict) Config {
	t := wire.Trial{Number: 1, Block: 1, Car: "car", Roadside: "roadside", Sender: "car", Receiver: "roadside",
		Initiator: "car"}
	return Config{Plan: wire.RunPlan{Run: "today", AttemptsMax: 2, Trials: []wire.Trial{t}}, LookEvery: time.Second,
		Has: func(int) bool { return true }, Workers: []Worker{{Nodes: []string{"car", "roadside"}}},
		Decisions: decisions}
}

// What nodes drove of another shard is that shard's to judge.
func TestAnotherShardsAttemptsAreNotDecided(t *testing.T) {
	c := twoNodes()
	other := c.Plan.Trials[0]
	other.Number = 2
	c.Plan.Trials = append(c.Plan.Trials, other)
	c.Has = func(trial int) bool { return trial == 1 }
	k := wire.TrialKey{Trial: 2, Attempt: 1}
	view := wire.CampaignView{Current: &k, State: wire.StateKept,
		Trials: []wire.TrialView{{Number: 2, Attempts: []wire.Verdict{{TrialKey: k}}}}}
	e := New(c)
	if got := e.undecided(map[string]wire.CampaignView{"car": view}); len(got) > 0 {
		t.Errorf("undecided: %v", got)
	}
	e.recall([]Attempt{{TrialKey: k}})
	e.Step(time.Unix(0, 0), Kept{Node: "car", Key: k, State: wire.TrialState{State: wire.StateKept}})
	if got, found := e.orphan(); found {
		t.Errorf("orphan: %v", got)
	}
}

// Who skips a trial of another shard is told that nothing changed.
func TestAnotherShardsTrialIsNotSkipped(t *testing.T) {
	c := twoNodes()
	c.Has = func(int) bool { return false }
	e := New(c)
	e.workers[0].choosing = true
	said := Said{Key: wire.TrialKey{Trial: 1}, Noted: wire.Noted{ID: "n", Note: "skip", By: "phone"}}
	actions := e.Step(time.Unix(0, 0), said)
	if len(actions) != 1 {
		t.Fatalf("%+v", actions)
	}
	if n, is := actions[0].Op.(Note); !is || n.NoteID != "n" || !strings.Contains(n.Text, "of another shard: nothing") {
		t.Errorf("%+v", actions[0].Op)
	}
}

// A node that rejected what it measured to the end must not have the others
// aborted, which would make a failed trial of a rejected one.
func TestWhoGivesUpEndsTheOthersAndWhoRejectsDoesNot(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, c := range []struct {
		name     string
		outcome  wire.Outcome
		measured bool
		gaveUp   bool
	}{
		{"accepted", wire.Accepted, true, false},
		{"rejected after its window", wire.Rejected, true, false},
		{"rejected for the gate", wire.Rejected, false, true},
		{"failed before its window", wire.Failed, false, true},
		{"failed in its window", wire.Failed, true, true},
	} {
		e := New(twoNodes())
		if c.measured {
			e.Step(time.Unix(0, 0), Opened{Node: "car", Key: k, Window: wire.Window{OpenBootNs: 1, CloseBootNs: 2}})
		}
		st := wire.TrialState{State: wire.StateKept, Outcome: c.outcome, Reason: wire.Reason{Code: "why"}}
		e.Step(time.Unix(0, 0), Kept{Node: "car", Key: k, State: st})
		missing, gaveUp, _ := e.workers[0].lacking(k, []string{"car", "roadside"})
		if !slices.Equal(missing, []string{"roadside"}) || (gaveUp == "car: why") != c.gaveUp {
			t.Errorf("%s: missing %v, given up %q", c.name, missing, gaveUp)
		}
	}
}

// The rules accepted the first attempt, a person had it repeated, and the second
// was accepted. Whatever is decided of the first then, the trial has one result.
func TestNoDecisionAcceptsASecondAttempt(t *testing.T) {
	first := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Rejected, Final: true,
		Word: &wire.Word{Decision: "repeat", By: "phone", Judged: wire.Accepted}}
	second := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 2}, Outcome: wire.Accepted, Final: true}
	for _, decision := range []string{"accept", "skip", "repeat"} {
		e := New(twoNodes(first, second))
		e.workers[0].choosing = true
		said := Said{Key: first.TrialKey, Noted: wire.Noted{Note: decision, By: "phone", Text: "after all"}}
		var noted string
		for _, a := range e.Step(time.Unix(0, 0), said) {
			switch op := a.Op.(type) {
			case Note:
				noted = op.Text
			case Decide:
				if op.Verdict.Outcome == wire.Accepted {
					t.Errorf("%s: decided %+v", decision, op.Verdict)
				}
			}
		}
		if decision != "repeat" && !strings.Contains(noted, "attempt 2 is accepted") {
			t.Errorf("%s: noted %q", decision, noted)
		}
	}
}

// An attempt that could not be armed because a node was out of reach uses up none
// of the trial's attempts; one that a node was asked for, and did not arm, does.
func TestALinkThatDiesUsesUpNoAttempt(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	away := errors.New("no answer")
	for name, c := range map[string]struct {
		faults []*Fault
		late   []string
		want   wire.Outcome
	}{
		"not reached": {[]*Fault{{Node: "car", Err: away}}, nil, wire.Interrupted},
		"silent, and not asked": {[]*Fault{{Node: "car", Err: away, Timeout: true}}, []string{"roadside"},
			wire.Interrupted},
		"asked, and silent": {[]*Fault{{Node: "car", Err: away, Timeout: true}}, []string{"car"}, wire.Failed},
		"one of both": {[]*Fault{{Node: "car", Err: away}, {Node: "roadside", Err: away, Timeout: true}},
			[]string{"roadside"}, wire.Failed},
		"refused": {[]*Fault{{Node: "car", Err: away, Code: wire.CodeUnfit}}, nil, wire.Failed},
		"another run took it": {[]*Fault{{Node: "car", Err: away, Code: wire.CodeLeaseHeld}}, nil,
			wire.Interrupted},
		"its other half is starting": {[]*Fault{{Node: "car", Err: away, Code: "host"}}, nil, wire.Interrupted},
	} {
		if v := New(twoNodes()).workers[0].notArmed(k, c.faults, c.late); v.Outcome != c.want {
			t.Errorf("%s: %s (%s), want %s", name, v.Outcome, v.Reason, c.want)
		}
	}
}

// A node whose agent was restarted on a full disk knows that its attempt was interrupted, and has no record of it: the
// attempt is not used up. Without its record nothing else that it says of an end holds.
func TestAnInterruptedAttemptNeedsNoRecord(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 2}
	restarted := wire.Reason{Code: wire.ReasonAgentRestarted}
	for said, want := range map[wire.Outcome]wire.TrialState{
		wire.Interrupted: {Outcome: wire.Interrupted, Reason: restarted},
		wire.Accepted: {Outcome: wire.Failed, Reason: wire.Reason{Code: wire.ReasonUnrecorded,
			Text: "node car ended the attempt without a record of it"}},
	} {
		view := wire.CampaignView{Current: &k, State: wire.StateKept, Trials: []wire.TrialView{{Number: 1,
			Attempts: []wire.Verdict{{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Interrupted},
				{TrialKey: k, Outcome: said, Reason: restarted}}}}}
		e := New(twoNodes())
		a := &awaiting{w: e.workers[0], key: k, names: []string{"car"}, suspects: map[string]bool{"car": true}}
		a.writeOff(func() {})
		e.pending[e.out[0].ID](Answer{View: view, Held: true})
		off, is := e.out[1].Op.(WriteOff)
		if !is || off.State.Outcome != want.Outcome || off.State.Reason != want.Reason {
			t.Errorf("%s: written off as %+v, want %+v", said, off.State, want)
		}
	}
}

// A node that stays out of the controller's reach does not stop the run: the others' leases are
// left to run out, and all go on alone.
func TestNodesGoOnWhileOneIsOutOfReach(t *testing.T) {
	const from, to = 5 * time.Second, 30 * time.Minute
	var alone atomic.Int32
	seeds(600, func(seed uint64) bool {
		w := newSimulation(seed, nil)
		if w.calm || len(w.nodes) > 1 {
			return true
		}
		peer := w.node(0, "b")
		for at := from; at < to; at += time.Second { // a mishap may bring it back
			w.at(at, func() { peer.cut = true })
		}
		w.at(to, func() {
			begun := !slices.ContainsFunc(w.nodes[0], func(n *node) bool { return !n.started })
			if !begun || w.pulls {
				return
			}
			alone.Add(1)
			k, more := peer.next()
			for _, n := range w.nodes[0] { // who disagree on what is next wait for the controller
				other, is := n.next()
				more = more && is && other == k
			}
			if more {
				t.Errorf("seed %d: the nodes have not begun %v", seed, k)
			}
		})
		w.at(to, func() {
			peer.cut, w.whole = false, w.now
			w.collect(peer)
		})
		if failure := w.run(); failure != "" {
			t.Errorf("seed %d: %s", seed, failure)
		}
		return !t.Failed()
	})
	if alone.Load() < 40 {
		t.Errorf("only in %d schedules the nodes had begun by then", alone.Load())
	}
}

// What a person decides between two attempts is told to the nodes at once: they may go on alone before the next is
// over.
func TestNodesAreToldWhatAPersonDecided(t *testing.T) {
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Rejected, Final: true}
	e := New(twoNodes(v))
	e.workers[0].choosing = true
	said := Said{Key: v.TrialKey, Noted: wire.Noted{ID: "n", Note: "skip", By: "phone"}}
	told := map[string]bool{}
	for events := []Event{said}; len(events) > 0; events = events[1:] {
		for _, a := range e.Step(time.Unix(0, 0), events[0]) {
			switch op := a.Op.(type) {
			case Decide:
				events = append(events, Answer{ID: a.ID})
			case Tell:
				told[a.Node] = op.Verdicts[0].Word != nil
			}
		}
	}
	if !told["car"] || !told["roadside"] {
		t.Errorf("told are %v", told)
	}
}
