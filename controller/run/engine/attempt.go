package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// armWithin bounds a node's arming; in a rehearsal all of them share one
// machine, and each needs its share of it.
const (
	armWithin = 30 * time.Second
	armEach   = 500 * time.Millisecond
)

// ErrAway ends a run at whose end a node is away.
var ErrAway = errors.New("a node is out of reach: resume the run when it is back, or run " +
	"`fieldmesh nodes restore` then")

// attempt makes one attempt, from its place to its verdict.
func (w *worker) attempt(t wire.Trial, k wire.TrialKey) {
	w.show(Show{Trial: &t, Attempt: k.Attempt, Phase: "placing"})
	w.do(Place{t, k.Attempt}, fmt.Sprintf("place trial %d", t.Number), func(Answer) {
		w.clocks("clock exchange before the trial", t, k, func() { w.begin(t, k) })
	})
}

// begin arms the nodes, and lets the car set off. A node that is armed already is left as it is.
func (w *worker) begin(t wire.Trial, k wire.TrialKey) {
	w.show(Show{Trial: &t, Attempt: k.Attempt, Phase: "arming"})
	w.arm(t, k, func(faults []*Fault) {
		if len(faults) > 0 {
			w.lookAfter(t, k, faults)
			return
		}
		w.drive(t, k)
	})
}

// drive has the car drive, and the attempt judged when all its nodes have kept it.
func (w *worker) drive(t wire.Trial, k wire.TrialKey) {
	w.do(Drive{}, fmt.Sprintf("drive trial %d", t.Number), func(Answer) {
		w.awaitKept(t, k, t.Nodes(), func() { w.finish(t, k, func() { w.next(t) }) })
	})
}

// next looks for something to do when an attempt is decided.
func (w *worker) next(t wire.Trial) {
	delete(w.e.taken, t.Number)
	w.catchUp(func() { w.choosing = true })
}

func (w *worker) clocks(doing string, t wire.Trial, k wire.TrialKey, then func()) {
	w.e.do(w.index, "", Clocks{t, k}, func(a Answer) {
		if a.Fault != nil {
			w.log(doing, k, a.Fault)
		}
		then()
	})
}

// arm arms the peers and then the initiator, whose call returns when routing is
// ready everywhere, and whose gate may open at once.
func (w *worker) arm(t wire.Trial, k wire.TrialKey, then func([]*Fault)) {
	names := t.Nodes()
	within := armWithin + time.Duration(len(names))*armEach + t.Routing.ReadyLimit()
	returns := time.Duration(t.ReturnArmingS() * float64(time.Second)) // the car, of the initiator's
	some := func(nodes []string, within time.Duration, then func([]*Fault)) {
		w.each(nodes, func(string) Op { return Arm{k, within} }, func(answers map[string]Answer) {
			var faults []*Fault
			for _, n := range nodes {
				if f := answers[n].Fault; f != nil {
					f.Node = n
					faults = append(faults, f)
				}
			}
			then(faults)
		})
	}
	some(names[1:], within, func(faults []*Fault) {
		if len(faults) > 0 {
			then(faults)
			return
		}
		some(names[:1], within+returns, then)
	})
}

// lookAfter asks the nodes how an attempt stands for which not all calls to arm succeeded. A call that failed may have
// reached its node or not. Where all nodes know of the attempt, none refused it and none is late, only an answer was
// lost: the attempt goes on. Otherwise it is called off.
func (w *worker) lookAfter(t wire.Trial, k wire.TrialKey, faults []*Fault) {
	w.views(func(views map[string]wire.CampaignView) {
		w.whoKnows(views, t, k, func(views map[string]wire.CampaignView, names []string, all bool) {
			arming := at(views, k, wire.StateLoaded)
			failed := slices.ContainsFunc(faults, func(f *Fault) bool {
				return !f.Passes() || f.Timeout && slices.Contains(arming, f.Node)
			})
			switch {
			case failed || !all:
				armed := at(views, k, wire.StateArmed, wire.StateRunning)
				late := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(armed, n) })
				w.giveUp(t, k, names, func() { w.notBegun(t, k, faults, late) })
			case len(arming) > 0: // the call is made again, and waits
				w.begin(t, k)
			default:
				w.drive(t, k)
			}
		})
	})
}

// giveUp calls an attempt off that could not be armed everywhere. Where an answer is lost, those are asked that know of
// it by then: one may have been armed late, and a node that ended it knows of it too.
func (w *worker) giveUp(t wire.Trial, k wire.TrialKey, know []string, then func()) {
	again := func() {
		w.views(func(views map[string]wire.CampaignView) { w.giveUp(t, k, takingPart(views, t, k), then) })
	}
	r := wire.AbortRequest{TrialKey: k, Reason: "another node could not be armed", Follows: true}
	w.callOff(t, r, know, again, then)
}

// callOff ends an attempt on the nodes that know of it, and waits until they have kept it. Where one of them does not
// say that it ended it, again asks how the attempt stands.
func (w *worker) callOff(t wire.Trial, r wire.AbortRequest, know []string, again, then func()) {
	w.abort(know, r, func(all bool) {
		if !all {
			w.e.after(200*time.Millisecond, again)
			return
		}
		w.awaitKept(t, r.TrialKey, know, then)
	})
}

// notBegun decides an attempt that was called off because it could not be armed everywhere. What all nodes measured to
// its end all the same is judged.
func (w *worker) notBegun(t wire.Trial, k wire.TrialKey, faults []*Fault, late []string) {
	if missing, gaveUp, _ := w.lacking(k, t.Nodes()); len(missing) == 0 && gaveUp == "" {
		w.finish(t, k, func() { w.next(t) })
		return
	}
	w.decide(t, w.notArmed(k, faults, late), func() {
		if f := unfit(faults); f != nil {
			doing := fmt.Sprintf("trial %d was not begun", t.Number)
			w.e.fail(w.index, doing, fmt.Errorf("%w; then continue with --resume", f.Err))
			return
		}
		w.next(t)
	})
}

// notArmed is the verdict on an attempt that could not be armed everywhere. The nodes that are late knew of it, and
// were not armed when they were asked.
func (w *worker) notArmed(k wire.TrialKey, faults []*Fault, late []string) wire.Verdict {
	var texts []string
	away := true // none of them was reached
	for _, f := range faults {
		texts = append(texts, f.Err.Error())
		// One that knows of it was reached, and did not arm in time.
		away = away && !(f.Timeout && slices.Contains(late, f.Node))
	}
	if i := slices.IndexFunc(faults, func(f *Fault) bool { return f.Code != "" }); i >= 0 {
		away = away && (faults[i].Passes() || faults[i].Code == wire.CodeLeaseHeld) // another run took it
	}
	text := strings.Join(texts, "\n")
	v := wire.Verdict{TrialKey: k, Outcome: wire.Failed, Reason: wire.Reason{Code: wire.ReasonArmFailed, Text: text}}
	if why := w.interrupted(k); why != "" {
		v.Outcome, v.Reason.Text = wire.Interrupted, why
	} else if away {
		v.Outcome, v.Reason.Code = wire.Interrupted, wire.ReasonNodeAway
	}
	v.Reason = v.Reason.Fit()
	return v
}

// unfit is the refusal of a trial for a reason that every further attempt would
// meet too: a person has to see to it first.
func unfit(faults []*Fault) *Fault {
	i := slices.IndexFunc(faults, func(f *Fault) bool { return f.Code != "" })
	if i < 0 || faults[i].Code != wire.CodeDiskFull && faults[i].Code != wire.CodeUnfit {
		return nil
	}
	return faults[i]
}

// AbortWithin is how long a node may take to leave an attempt.
const AbortWithin = 20 * time.Second

// abort tells nodes to end an attempt; then is told whether all of them have.
func (w *worker) abort(names []string, r wire.AbortRequest, then func(all bool)) {
	w.each(names, func(string) Op { return Abort{r} }, func(answers map[string]Answer) {
		all := true
		for _, n := range names {
			if f := answers[n].Fault; f != nil {
				all = false
				w.log("abort trial on "+n, r.TrialKey, f)
			}
		}
		then(all)
	})
}

// finish judges an attempt whose nodes have all kept it.
func (w *worker) finish(t wire.Trial, k wire.TrialKey, then func()) {
	w.show(Show{Trial: &t, Attempt: k.Attempt, Phase: "settling"})
	w.clocks("clock exchange after the trial", t, k, func() {
		window := w.windows[k][t.Initiator]
		settle := Settle{t, k, window.OpenBootNs, window.CloseBootNs}
		w.do(settle, fmt.Sprintf("settle trial %d", t.Number), func(Answer) {
			w.do(Captures{k}, "", func(Answer) {
				w.do(Judge{t, k}, "", func(a Answer) { w.decide(t, w.vouched(a), then) })
			})
		})
	})
}

// vouched is the judge's verdict, unless nobody knows how late the emulated
// medium was: the controller was killed between the window and the field's
// account of it, and the field ended with it, or arming was late, and the window
// opened before the field drove. Nor is an attempt accepted in whose
// window the controller may have spoken over the mesh, as it learnt too late of GO.
func (w *worker) vouched(a Answer) wire.Verdict {
	v := a.Verdict
	switch {
	case v.Outcome != wire.Accepted:
	case w.e.cfg.Emulated && !a.Vouched:
		const text = "the field did not drive when the window opened, or has ended since"
		v.Outcome, v.Reason = wire.Interrupted, wire.Reason{Code: wire.ReasonFieldGone, Text: text}
	case w.mesh() && !w.quiet[v.TrialKey]:
		const text = "the controller learnt too late of GO, and may have spoken over the mesh in the window"
		v.Outcome, v.Reason = wire.Interrupted, wire.Reason{Code: wire.ReasonNotQuiet, Text: text}
	}
	return v
}

// decide makes the final verdict durable, tells the nodes, and closes the attempt.
func (w *worker) decide(t wire.Trial, v wire.Verdict, then func()) {
	v.Final = true
	if beside, is := accepted(w.e.byTrial[v.Trial]); is && v.Outcome == wire.Accepted {
		// A person accepted an earlier one, and the nodes went on alone before they were told.
		text := fmt.Sprintf("attempt %d of the trial is accepted already", beside.Attempt)
		v.Outcome, v.Reason = wire.Rejected, wire.Reason{Code: wire.ReasonSuperseded, Text: text}
	}
	w.e.write(w.index, Decide{v}, func() {
		w.e.decided(v)
		w.e.do(everybody, "", Seal{v.TrialKey}, nil)
		w.tellAll(v, func() {
			w.show(Show{Trial: &t, Attempt: v.Attempt, Phase: "judged", Verdict: &v})
			then()
		})
	})
}

// tellAll tells the nodes a verdict. One that cannot be told now learns it when the worker catches up.
func (w *worker) tellAll(v wire.Verdict, then func()) {
	w.each(w.nodes, func(string) Op { return Tell{[]wire.Verdict{v}} }, func(answers map[string]Answer) {
		for _, n := range w.nodes {
			if f := answers[n].Fault; f != nil {
				w.log("tell verdict to "+n, v.TrialKey, f)
			}
		}
		then()
	})
}
