package engine

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// armedBadly is a run of one trial in which the initiator's arming ends in a fault, and what the nodes say of the
// attempt when they are asked next. Without a fault a controller that comes back finds it so, and its first call to end
// the attempt is lost.
type armedBadly struct {
	fault *Fault
	views []map[string]wire.State // one after the other, the last of them from then on; "": the node knows nothing
	// The first answer to ending the attempt is lost, and the last view is what is found then.
	unheard bool
}

// decided has the run drive until its first decision, and tells what it asked for on the way. The nodes keep the
// attempt as accepted, unless one is told to end it.
func (c armedBadly) decided(t *testing.T) (v wire.Verdict, asked []Op) {
	t.Helper()
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	e, now := New(twoNodes()), time.Unix(0, 0)
	failed := c.fault == nil // the call to arm has
	var events []Event
	kept := func(node string, o wire.Outcome) {
		if o == wire.Accepted {
			events = append(events, Opened{Node: node, Key: k, Window: wire.Window{OpenBootNs: 1, CloseBootNs: 2}})
		}
		events = append(events, Kept{Node: node, Key: k, State: wire.TrialState{State: wire.StateKept, Outcome: o}})
	}
	ended, whole := map[string]bool{}, 0 // nodes of which the archive has that they measured to the end
	state := func(node string) wire.State { return c.views[0][node] }
	answer := func(a Action) Answer {
		switch op := a.Op.(type) {
		case Arm:
			if a.Node == "car" && !failed {
				failed = true
				return Answer{Fault: c.fault}
			}
		case View:
			v := wire.CampaignView{State: wire.StateLoaded}
			if s := state(a.Node); failed && s != "" {
				v.State, v.Current = s, &k
			}
			return Answer{View: v, Held: true}
		case Abort:
			if c.fault == nil && len(c.views) > 1 {
				c.views = c.views[1:]
				return Answer{Fault: &Fault{Err: errAway}}
			}
			if s := state(a.Node); s != "" && s != wire.StateKept && !ended[a.Node] {
				ended[a.Node] = true
				kept(a.Node, wire.Failed)
			}
			if c.unheard {
				c.unheard, c.views = false, c.views[len(c.views)-1:]
				return Answer{Fault: &Fault{Err: errAway}}
			}
		case Judge:
			if whole < 2 {
				return Answer{Verdict: wire.Verdict{TrialKey: op.Key, Outcome: wire.Failed}}
			}
			return Answer{Verdict: wire.Verdict{TrialKey: op.Key, Outcome: wire.Accepted}}
		}
		return Answer{}
	}
	seen, measuring := map[string]bool{}, []string{"car", "roadside"}
	for events = []Event{Begin{}}; len(events) > 0; {
		ev := events[0]
		events = events[1:]
		if k, is := ev.(Kept); is && k.State.Outcome == wire.Accepted {
			whole++
		}
		for _, a := range e.Step(now, ev) {
			asked = append(asked, a.Op)
			if d, is := a.Op.(Decide); is {
				return d.Verdict, asked
			}
			ans := answer(a)
			ans.ID = a.ID
			events = append(events, ans)
			if _, is := a.Op.(View); is && failed && c.fault != nil {
				if seen[a.Node] = true; len(seen) == 2 && len(c.views) > 1 {
					c.views, seen = c.views[1:], map[string]bool{}
				}
			}
		}
		if len(events) == 0 && len(ended) == 0 && len(measuring) > 0 { // nothing to do but to wait
			kept(measuring[0], wire.Accepted)
			measuring = measuring[1:]
		}
		if next, wanted := e.Next(); len(events) == 0 && wanted && now.Before(time.Unix(600, 0)) {
			now = next
			events = append(events, Tick{})
		}
	}
	t.Fatalf("nothing is decided; asked for %+v", asked)
	return v, asked
}

func asksFor[T Op](asked []Op) bool {
	return slices.ContainsFunc(asked, func(op Op) bool { _, is := op.(T); return is })
}

// The answer to arming is lost, and the nodes do what they were asked for, or had begun alone meanwhile: the attempt
// goes on, and what they measured is judged. One that was refused, or that not all of them know, is called off.
func TestALostAnswerToArmingEndsNoAttempt(t *testing.T) {
	both := func(s wire.State) map[string]wire.State { return map[string]wire.State{"car": s, "roadside": s} }
	car := func(s wire.State) map[string]wire.State {
		return map[string]wire.State{"car": s, "roadside": wire.StateArmed}
	}
	away, late := &Fault{Err: errors.New("away")}, &Fault{Err: errors.New("late"), Timeout: true}
	for name, c := range map[string]struct {
		armedBadly
		want    wire.Outcome
		code    wire.ReasonCode
		aborted bool
	}{
		"armed": {armedBadly{fault: away, views: []map[string]wire.State{both(wire.StateArmed)}},
			wire.Accepted, "", false},
		"armed, by the end of the call": {armedBadly{fault: late,
			views: []map[string]wire.State{both(wire.StateArmed)}},
			wire.Accepted, "", false},
		"in the window": {armedBadly{fault: away, views: []map[string]wire.State{both(wire.StateRunning)}},
			wire.Accepted, "", false},
		"measured meanwhile": {armedBadly{fault: late, views: []map[string]wire.State{both(wire.StateKept)}},
			wire.Accepted, "", false},
		"begun alone, and not yet known to the peer when it was asked": {armedBadly{fault: away,
			views: []map[string]wire.State{{"car": wire.StateArmed}, both(wire.StateArmed)}}, wire.Accepted, "", false},
		"the lease had run out, and it began alone": {armedBadly{
			fault: &Fault{Err: errHeld, Code: wire.CodeLeaseNeeded},
			views: []map[string]wire.State{both(wire.StateArmed)}},
			wire.Accepted, "", false},
		"still arming": {armedBadly{fault: away,
			views: []map[string]wire.State{car(wire.StateLoaded), both(wire.StateArmed)}},
			wire.Accepted, "", false},
		"still arming, and too late": {armedBadly{fault: late, views: []map[string]wire.State{car(wire.StateLoaded)}},
			wire.Failed, wire.ReasonArmFailed, true},
		"not asked": {armedBadly{fault: away, views: []map[string]wire.State{car("")}}, wire.Interrupted,
			wire.ReasonNodeAway, true},
		"refused": {armedBadly{fault: &Fault{Err: errBusy, Code: wire.CodeNotReady},
			views: []map[string]wire.State{both(wire.StateArmed)}}, wire.Failed, wire.ReasonArmFailed, true},
		"refused, and measured all the same": {armedBadly{fault: &Fault{Err: errBusy, Code: wire.CodeLeaseHeld},
			views: []map[string]wire.State{both(wire.StateKept)}}, wire.Accepted, "", true},
		"called off, and known to the other when that is asked for again": {armedBadly{fault: away,
			views:   []map[string]wire.State{car(""), car(""), {"car": wire.StateArmed, "roadside": wire.StateKept}},
			unheard: true}, wire.Interrupted, wire.ReasonNodeAway, true},
		"found half armed, and measured before it could be ended": {armedBadly{
			views: []map[string]wire.State{{"car": wire.StateArmed}, both(wire.StateRunning)}},
			wire.Accepted, "", true},
	} {
		v, asked := c.decided(t)
		if v.Outcome != c.want || v.Reason.Code != c.code || asksFor[Abort](asked) != c.aborted ||
			c.fault != nil && asksFor[Judge](asked) != (c.want == wire.Accepted) {
			t.Errorf("%s: %s (%s), want %s (%s); aborted %t, want %t", name, v.Outcome, v.Reason, c.want, c.code,
				asksFor[Abort](asked), c.aborted)
		}
	}
}

// A control link that goes while the initiator is being armed, and comes back some time, ends no attempt that the nodes
// make. It uses up none where the controller may have spoken over the mesh in the window.
func TestALinkThatGoesWhileArmingCostsNoAttempt(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	var lost atomic.Int32
	seeds(600, func(seed uint64) bool {
		var call uint64
		w := drawn(seed, &mutant{
			action: func(w *simulation, a Action) []Action {
				op, is := a.Op.(Arm)
				if is && op.Key == k && call == 0 && a.Node == w.trial(k.Trial).Initiator {
					n := w.node(a.Worker, a.Node)
					call = a.ID
					w.at(21*time.Millisecond, func() { n.cut = true }) // when the call has arrived
					w.at(w.between(time.Second, time.Minute), func() {
						n.cut, w.whole = false, w.now
						w.collect(n)
					})
				}
				return []Action{a}
			},
			event: func(_ *simulation, ev Event) []Event {
				if a, is := ev.(Answer); is && a.ID == call && a.Fault != nil {
					lost.Add(1)
				}
				return []Event{ev}
			},
		})
		if len(w.nodes) > 1 {
			return true
		}
		w.calm, w.calmAt, w.road = false, 0, true // nothing else goes wrong
		w.start()
		failure := w.run()
		v, _ := w.decision(k)
		fine := v.Outcome == wire.Accepted || v.Outcome == wire.Rejected && w.spoilt(k) ||
			v.Reason.Code == wire.ReasonNotQuiet && w.cfg.Plan.Control == wire.ControlMesh
		if failure != "" || !fine {
			t.Errorf("seed %d: attempt %v is %s (%s); %s", seed, k, v.Outcome, v.Reason, failure)
		}
		return !t.Failed()
	})
	if lost.Load() < 300 {
		t.Errorf("only %d answers to arming were lost", lost.Load())
	}
}

// Over the mesh, a controller that did not see GO come speaks in the window: while it asks how an attempt stands to
// whose arming an answer was lost. No such attempt is accepted. Where a car goes out of its reach before GO, it is
// quiet: it asks a peer.
func TestNoAttemptIsAcceptedInWhoseWindowTheControllerSpokeOverTheMesh(t *testing.T) {
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for name, c := range map[string]struct {
		cuts  func(w *simulation, a Action) bool // the initiator
		after time.Duration
		until time.Duration // it is in reach again
	}{
		"arming": {func(w *simulation, a Action) bool {
			op, is := a.Op.(Arm)
			return is && op.Key == k && a.Node == w.trial(k.Trial).Initiator
		}, 21 * time.Millisecond, 3 * time.Second}, // when the call has arrived
		"armed": {func(w *simulation, a Action) bool {
			_, is := a.Op.(Drive)
			return is && w.placed[a.Worker] == k
		}, 0, 70 * time.Second},
	} {
		var spoke, quiet atomic.Int32
		seeds(600, func(seed uint64) bool {
			cut := false
			w := drawn(8*seed, &mutant{action: func(w *simulation, a Action) []Action {
				if !cut && c.cuts(w, a) {
					cut = true
					n := w.node(a.Worker, w.trial(k.Trial).Initiator)
					w.at(c.after, func() { n.cut = true })
					w.at(c.until, func() {
						n.cut, w.whole = false, w.now
						w.collect(n)
					})
				}
				return []Action{a}
			}})
			if w.cfg.Plan.Control != wire.ControlMesh {
				return true
			}
			w.calm, w.calmAt, w.road, w.slow = false, 0, true, c.after == 0 // nothing else goes wrong
			w.start()
			if failure := w.run(); failure != "" {
				t.Errorf("%s, seed %d: %s", name, seed, failure)
			}
			if v, _ := w.decision(k); w.spoke[k] {
				spoke.Add(1)
			} else if v.Outcome == wire.Accepted {
				quiet.Add(1)
			}
			return !t.Failed()
		})
		// A car that goes out of reach is not asked when GO comes.
		if c.after > 0 && spoke.Load() < 20 || c.after == 0 && quiet.Load() < 300 {
			t.Errorf("%s: the controller spoke in %d schedules; accepted without in %d", name, spoke.Load(),
				quiet.Load())
		}
	}
}
