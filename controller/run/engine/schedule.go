package engine

import (
	"fmt"
	"reflect"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// schedule gives the workers that have nothing to do their next attempts. What
// people decided, and the stopping rule, come first: they may change which.
func (e *Engine) schedule() {
	over := 0
	for _, w := range e.workers {
		if w.over {
			over++
		}
	}
	last := (over == len(e.workers) || e.leaving) && !e.finished
	idle := !e.leaving && slices.ContainsFunc(e.workers, func(w *worker) bool { return w.choosing })
	if e.writing > 0 || !last && !idle {
		return
	}
	if e.applyOverride() {
		return
	}
	if last {
		e.finished = true
		e.do(everybody, "", Finished{}, nil)
		return
	}
	if e.atInterim() {
		return
	}
	for _, w := range e.workers {
		if w.choosing {
			e.choose(w)
		}
	}
}

// choose gives a worker the first trial that is neither decided nor being
// driven. While it depends on the other workers whether any is left, it waits.
func (e *Engine) choose(w *worker) {
	for _, t := range e.cfg.Plan.Trials {
		attempt, more := verdict.Next(e.cfg.Plan.AttemptsMax, e.byTrial[t.Number])
		if !more || e.taken[t.Number] || !e.drives(t) {
			continue
		}
		if e.early(t) {
			return
		}
		w.choosing = false
		e.taken[t.Number] = true
		w.attempt(t, wire.TrialKey{Trial: t.Number, Attempt: attempt})
		return
	}
	w.choosing = false
	w.end()
}

// drives reports whether a trial is driven in this run: not one of another
// shard, and none of a block beyond the one after which the run stopped.
func (e *Engine) drives(t wire.Trial) bool {
	return e.cfg.Has(t.Number) && (e.stopped == 0 || t.Pass != "" || t.Block <= e.stopped)
}

// left is how many trials still have an attempt to come.
func (e *Engine) left() int {
	n := 0
	for _, t := range e.cfg.Plan.Trials {
		if _, more := verdict.Next(e.cfg.Plan.AttemptsMax, e.byTrial[t.Number]); more && e.drives(t) {
			n++
		}
	}
	return n
}

func (e *Engine) trial(number int) (wire.Trial, bool) {
	if number < 1 || number > len(e.cfg.Plan.Trials) {
		return wire.Trial{}, false
	}
	return e.cfg.Plan.Trials[number-1], true
}

// decided takes a decision that is durable, in place of the one on the same
// attempt that it stands over.
func (e *Engine) decided(v wire.Verdict) {
	e.decisions = withVerdict(e.decisions, v)
	e.byTrial[v.Trial] = withVerdict(e.byTrial[v.Trial], v)
}

func withVerdict(vs []wire.Verdict, v wire.Verdict) []wire.Verdict {
	for i := range vs {
		if vs[i].TrialKey == v.TrialKey {
			vs[i] = v
			return vs
		}
	}
	return append(vs, v)
}

func (e *Engine) decision(k wire.TrialKey) (wire.Verdict, bool) {
	for _, v := range e.byTrial[k.Trial] {
		if v.TrialKey == k {
			return v, true
		}
	}
	return wire.Verdict{}, false
}

// keep writes to the journal; nothing is chosen before it is durable.
func (e *Engine) keep(op Op, then func()) {
	e.writing++
	e.write(everybody, op, func() {
		e.writing--
		then()
	})
}

// applyOverride applies the first of people's decisions whose attempt is
// decided, and leaves those whose attempts are under way. One that changes
// nothing is noted in the journal, so that nobody waits for it.
func (e *Engine) applyOverride() bool {
	for i, s := range e.overrides {
		v, known := e.overridden(s)
		if !known {
			continue
		}
		e.overrides = slices.Delete(slices.Clone(e.overrides), i, i+1)
		e.override(v, s.Noted)
		return true
	}
	return false
}

// overridden finds the verdict that a person's decision is about; one about a
// trial and no attempt is about the newest.
func (e *Engine) overridden(s Said) (v wire.Verdict, known bool) {
	if e.taken[s.Key.Trial] { // what comes of it decides too
		return v, false
	}
	for _, had := range e.byTrial[s.Key.Trial] {
		if had.Attempt == s.Key.Attempt || s.Key.Attempt == 0 {
			v, known = had, true
		}
	}
	if !known && s.Noted.Note == "skip" && s.Key.Attempt == 0 {
		if _, planned := e.trial(s.Key.Trial); planned {
			return verdict.Skipped(s.Key.Trial, s.Noted), true
		}
	}
	return v, known
}

// override makes of a verdict what a person decided. One attempt of a trial is
// its result: another is not accepted beside it.
func (e *Engine) override(v wire.Verdict, n wire.Noted) {
	unchanged := func(why string) {
		text := fmt.Sprintf("%s wished to %s trial %d attempt %d, %s: nothing changed",
			n.By, n.Note, v.Trial, v.Attempt, why)
		e.keep(Note{Text: text, NoteID: n.ID}, func() {})
	}
	after, changes := v, true // of a trial that is skipped before its first attempt
	if _, decided := e.decision(v.TrialKey); decided {
		after, changes = verdict.ApplyOverride(v, n)
	}
	beside := slices.IndexFunc(e.byTrial[v.Trial], func(had wire.Verdict) bool {
		return had.Attempt != v.Attempt && had.Outcome == wire.Accepted
	})
	switch {
	case !e.cfg.Has(v.Trial):
		unchanged("which is of another shard")
	case beside >= 0 && (n.Note == "accept" || changes && after.Outcome == wire.Accepted):
		unchanged(fmt.Sprintf("and attempt %d is accepted", e.byTrial[v.Trial][beside].Attempt))
	case !changes:
		unchanged(fmt.Sprintf("which is %s", v.Outcome))
	default:
		e.keep(Decide{after}, func() {
			e.decided(after)
			for _, w := range e.workers {
				if w.choosing { // who is at an attempt catches up after it
					w.tellAll(after, func() {})
				}
			}
		})
	}
}

// atInterim applies the stopping rule where it has an analysis to make, and
// reports whether something has to be known or kept first. Of several that are due,
// in a run that is resumed, it makes the newest, which leaves out nothing driven before.
func (e *Engine) atInterim() bool {
	if e.cfg.Stopping == nil || e.stopped > 0 {
		return false
	}
	due := stopping.Due(*e.cfg.Stopping, e.cfg.Plan, e.driven())
	if len(due) == 0 || due[len(due)-1] <= e.looked {
		return false
	}
	if e.measure() {
		return true
	}
	b := due[len(due)-1]
	look := stopping.Take(*e.cfg.Stopping, e.cfg.Plan, b, e.measured)
	e.looked = b
	last := b == stopping.Plan(*e.cfg.Stopping, e.cfg.Plan).Last
	if look.Enough || last {
		e.keep(Stop{Blocks: b, Look: look, Last: !look.Enough}, func() { e.stopped = b })
		return true
	}
	e.do(everybody, "", Show{Phase: "looked", Detail: "not enough: " + look.String()}, nil)
	return false
}

// measure has every accepted attempt measured that is not yet, and reports
// whether there are any.
func (e *Engine) measure() bool {
	asked := false
	for _, t := range e.cfg.Plan.Trials {
		v, ok := accepted(e.byTrial[t.Number])
		if _, known := e.mbps[v.TrialKey]; !ok || known {
			continue
		}
		asked = true
		e.writing++
		e.do(everybody, "", Measure{t, v.TrialKey}, func(a Answer) {
			if a.Fault != nil {
				e.fail(everybody, "apply the stopping rule", a.Fault.Err)
				return
			}
			e.writing--
			e.mbps[v.TrialKey] = a.Mbps
		})
	}
	return asked
}

func (e *Engine) measured(trial int) *float64 {
	v, ok := accepted(e.byTrial[trial])
	if !ok {
		return nil
	}
	return e.mbps[v.TrialKey]
}

// accepted is the verdict by which a trial counts.
func accepted(verdicts []wire.Verdict) (wire.Verdict, bool) {
	for _, v := range verdicts {
		if v.Outcome == wire.Accepted {
			return v, true
		}
	}
	return wire.Verdict{}, false
}

// early reports whether a trial lies beyond the next interim analysis, which may
// make it unnecessary, while other workers are still at the blocks before.
func (e *Engine) early(t wire.Trial) bool {
	if e.cfg.Stopping == nil || t.Pass != "" || len(e.taken) == 0 || e.stopped > 0 {
		return false
	}
	due := func(blocks int) int { return len(stopping.Due(*e.cfg.Stopping, e.cfg.Plan, blocks)) }
	return due(t.Block-1) > due(e.driven())
}

// driven is how many blocks are decided to the last trial.
func (e *Engine) driven() int {
	return stopping.Driven(e.cfg.Plan, func(trial int) bool {
		_, more := verdict.Next(e.cfg.Plan.AttemptsMax, e.byTrial[trial])
		return more || e.taken[trial]
	})
}

// sameOverride reports whether a node that has one verdict need not be told another.
func sameOverride(had, now wire.Verdict) bool {
	return had.Final && reflect.DeepEqual(had.Word, now.Word)
}
