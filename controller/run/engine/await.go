package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// compareEvery is how often clocks are compared while the nodes wait for the
	// gate: a drift is known the better the longer it is looked at.
	compareEvery = 10 * time.Second
	// unrecordedEvery is after how many looks nodes are asked whether they are
	// still at the attempt.
	unrecordedEvery = 5
	// quietAfter is for flows that drain after the window's close.
	quietAfter = 500 * time.Millisecond
	// gatePoll is how long the initiator holds a question for what it waits for.
	gatePoll = 20 * time.Second
)

// awaiting is an attempt whose end is waited for.
type awaiting struct {
	w        *worker
	trial    wire.Trial
	key      wire.TrialKey
	names    []string // nodes that are to keep it
	then     func()
	ended    bool
	left     bool // the others have been told that one gave it up
	telling  bool
	looks    int
	compared time.Time
	known    uint64          // version of the view of the node that was asked last
	asks     int             // which of the trial's nodes is asked, over the mesh
	suspects map[string]bool // nodes that seem to have ended it without a record
}

// awaitKept waits until every named node has kept the attempt. When one has
// given it up, the others are told to leave it, again and again while they
// cannot be told: a peer that waits for GO would wait long.
func (w *worker) awaitKept(t wire.Trial, k wire.TrialKey, names []string, then func()) {
	a := &awaiting{w: w, trial: t, key: k, names: names, then: then, compared: w.e.now, suspects: map[string]bool{}}
	w.await = a
	switch w.check(); {
	case a.ended:
	case w.mesh(): // GO may be out at any moment
		a.lookOverMesh()
	default:
		a.lookLater()
	}
}

// keep notes that a node has kept an attempt.
func (w *worker) keep(node string, k wire.TrialKey, st wire.TrialState) {
	put(w.kept, k, node, st)
	w.check()
}

// check looks how the attempt that is waited for stands.
func (w *worker) check() {
	a := w.await
	if a == nil {
		return
	}
	missing, gaveUp, trouble := w.lacking(a.key, a.names)
	if len(missing) == 0 {
		w.await, a.ended = nil, true
		a.then()
		return
	}
	if trouble != "" {
		w.show(Show{Trial: &a.trial, Attempt: a.key.Attempt, Phase: "waiting", Detail: trouble})
	}
	if gaveUp == "" || a.left || a.telling {
		return
	}
	a.telling = true
	w.abort(missing, wire.AbortRequest{TrialKey: a.key, Reason: gaveUp, Follows: true}, func(all bool) {
		again := func() {
			if a.telling = false; !a.ended {
				w.check()
			}
		}
		if a.left = all; all {
			again()
		} else {
			w.e.after(time.Second, again)
		}
	})
}

// lacking lists the nodes that have not kept the attempt, and why one that has
// kept it gave it up; trouble says whose records do not get here. A node that
// rejected what it had measured to the end did not give up: the others measure
// to the end too.
func (w *worker) lacking(k wire.TrialKey, names []string) (missing []string, gaveUp, trouble string) {
	var late []string
	for _, n := range names {
		st, ok := w.kept[k][n]
		_, measured := w.windows[k][n]
		switch {
		case !ok:
			missing = append(missing, n)
			if err := w.late[n]; err != nil {
				late = append(late, err.Error())
			}
		case st.Outcome == wire.Failed, st.Outcome == wire.Interrupted, st.Outcome == wire.Rejected && !measured:
			gaveUp = n + ": " + st.Reason.String()
		}
	}
	return missing, gaveUp, strings.Join(late, "; ")
}

// interrupted says what interrupted the attempt on a node; "" when nothing did.
func (w *worker) interrupted(k wire.TrialKey) string {
	for _, name := range slices.Sorted(maps.Keys(w.kept[k])) {
		if st := w.kept[k][name]; st.Outcome == wire.Interrupted {
			return name + ": " + st.Reason.String()
		}
	}
	return ""
}

func (a *awaiting) lookLater() {
	if a.ended {
		return
	}
	d := a.w.e.cfg.LookEvery
	if quiet := a.w.quietUntil.Sub(a.w.e.now); quiet > 0 {
		d = quiet
	}
	a.w.e.after(d, func() {
		switch {
		case a.ended:
		case a.w.mesh():
			a.lookOverMesh()
		default:
			a.look()
		}
	})
}

// look shows the attempt as the nodes see it, and looks for nodes whose word on
// it will never come.
func (a *awaiting) look() {
	w := a.w
	a.looks++
	w.e.do(w.index, a.trial.Initiator, View{}, func(answer Answer) {
		a.seen(answer, func() {
			if a.looks%unrecordedEvery == 0 {
				a.writeOff(a.lookLater)
			} else {
				a.lookLater()
			}
		})
	})
}

// seen shows the initiator's view, with what the receiver gets.
func (a *awaiting) seen(answer Answer, then func()) {
	v := answer.View
	if answer.Fault != nil || v.Current == nil || *v.Current != a.key || a.ended {
		then()
		return
	}
	shown := func() {
		a.show(v)
		// While the car drives up: it is not begun in a window.
		if a.ended || v.State != wire.StateArmed || a.w.e.now.Sub(a.compared) <= compareEvery {
			then()
			return
		}
		a.compared = a.w.e.now
		a.w.clocks("clock exchange while armed", a.trial, a.key, then)
	}
	if a.trial.Receiver == a.trial.Initiator || v.Live == nil {
		shown()
		return
	}
	a.w.e.do(a.w.index, a.trial.Receiver, View{}, func(r Answer) {
		if r.Fault == nil && r.View.Live != nil {
			live := *v.Live
			live.ThroughputBps = r.View.Live.ThroughputBps
			v.Live = &live
		}
		shown()
	})
}

func (a *awaiting) show(v wire.CampaignView) {
	if !a.ended { // nothing is shown of an attempt that has ended
		a.w.show(Show{Trial: &a.trial, Attempt: a.key.Attempt, Phase: string(v.State), Detail: v.Detail, Live: v.Live})
	}
}

// lookOverMesh is look where the mesh under test carries control too: the
// controller's own packets would be measured. It follows a node until GO is out, of which each
// hears before the window, or another where that does not answer, and has all be quiet until the
// window has closed. The car is the last: it may be out of reach by then.
func (a *awaiting) lookOverMesh() {
	w, nodes := a.w, a.trial.Nodes()
	slices.SortStableFunc(nodes, func(x, y string) int { return isCar(a.trial, x) - isCar(a.trial, y) })
	w.e.do(w.index, nodes[a.asks%len(nodes)], View{Known: a.known, Wait: gatePoll}, func(answer Answer) {
		v := answer.View
		switch {
		case a.ended:
		case answer.Fault != nil:
			a.asks, a.known = a.asks+1, 0
			a.lookLater()
		case v.Current == nil || *v.Current != a.key || v.State == wire.StateKept:
			a.writeOff(a.lookLater)
		default:
			a.known = v.Version
			a.show(v)
			if v.State == wire.StateRunning && v.Live != nil && v.Live.RemainingS != nil && *v.Live.RemainingS > 0 {
				left := time.Duration(*v.Live.RemainingS * float64(time.Second))
				d, opens := left+quietAfter, w.e.now.Add(left-a.trial.Duration())
				w.quietUntil = w.e.now.Add(d)
				w.e.do(w.index, "", Quiet{d}, func(Answer) {
					w.quiet[a.key] = w.quiet[a.key] || !w.e.now.After(opens)
				})
				a.lookLater()
				return
			}
			a.lookOverMesh()
		}
	})
}

func isCar(t wire.Trial, node string) int {
	if node == t.Car {
		return 1
	}
	return 0
}

// writeOff fails the attempt for nodes that have ended it and could not record
// that: their disk was full, or was replaced. A node is written off when it is
// found so twice, as its last records may still be on their way.
func (a *awaiting) writeOff(then func()) {
	w := a.w
	if a.ended {
		return
	}
	missing, _, _ := w.lacking(a.key, a.names)
	w.each(missing, func(string) Op { return View{Leased: true} }, func(answers map[string]Answer) {
		for _, n := range missing {
			v := answers[n]
			if v.Fault != nil || underWay(map[string]wire.CampaignView{n: v.View}, a.key) || !v.Held {
				delete(a.suspects, n)
				continue
			}
			if !a.suspects[n] {
				a.suspects[n] = true
				continue
			}
			st := unrecorded(n, v.View, a.key)
			w.e.write(w.index, WriteOff{a.key, n, st}, func() {
				if _, known := w.kept[a.key][n]; !known {
					w.keep(n, a.key, st)
				}
			})
		}
		then()
	})
}

// unrecorded is the end of an attempt of which a node has no record. That it was interrupted needs none but the node's
// word; of any other end, what was measured is missing.
func unrecorded(node string, view wire.CampaignView, k wire.TrialKey) wire.TrialState {
	for _, t := range view.Trials {
		for _, v := range t.Attempts {
			if v.TrialKey == k && v.Outcome == wire.Interrupted {
				return wire.TrialState{State: wire.StateKept, Outcome: v.Outcome, Reason: v.Reason}
			}
		}
	}
	return wire.TrialState{State: wire.StateKept, Outcome: wire.Failed, Reason: wire.Reason{
		Code: wire.ReasonUnrecorded, Text: "node " + node + " ended the attempt without a record of it"}}
}
