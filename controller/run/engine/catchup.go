package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// catchUp makes archive and nodes agree: what the nodes did while no
// controller was there is waited for, judged and decided, and the nodes learn
// the verdicts that they have missed. What they did while they were waited for
// comes after.
func (w *worker) catchUp(then func()) {
	w.settled(func(views map[string]wire.CampaignView) {
		keys := w.e.undecided(views)
		if len(keys) == 0 {
			w.tellMissing(views, then)
			return
		}
		w.catchUpWith(views, keys, func() { w.catchUp(then) })
	})
}

// catchUpWith finishes attempts one after the other.
func (w *worker) catchUpWith(views map[string]wire.CampaignView, keys []wire.TrialKey, then func()) {
	if len(keys) == 0 {
		then()
		return
	}
	k := keys[0]
	rest := func() { w.catchUpWith(views, keys[1:], then) }
	t, _ := w.e.trial(k.Trial)
	if _, decided := w.e.decision(k); decided {
		rest()
		return
	}
	w.show(Show{Trial: &t, Attempt: k.Attempt, Phase: "catching up"})
	if !w.e.taken[k.Trial] {
		w.e.taken[k.Trial] = true
		next := rest
		rest = func() { delete(w.e.taken, k.Trial); next() }
	}
	w.catchUpAt(views, t, k, rest)
}

// catchUpAt finishes an attempt, and ends one first that is half armed.
func (w *worker) catchUpAt(views map[string]wire.CampaignView, t wire.Trial, k wire.TrialKey, then func()) {
	w.whoKnows(views, t, k, func(views map[string]wire.CampaignView, names []string, all bool) {
		finish := func() { w.finish(t, k, then) }
		w.quiet[k] = w.quiet[k] || !underWay(views, k)
		if all || !underWay(views, k) {
			w.awaitKept(t, k, names, finish)
			return
		}
		again := func() { w.views(func(views map[string]wire.CampaignView) { w.catchUpAt(views, t, k, then) }) }
		r := wire.AbortRequest{TrialKey: k, Reason: "the controller came back and found the trial half armed"}
		w.callOff(t, r, names, again, finish)
	})
}

// whoKnows tells which nodes of a trial know of an attempt: one that all of them know need not be ended. Those that do
// not know it are asked again, after the others have answered. No window opens before all know of it, so that by then
// they do where it was measured.
func (w *worker) whoKnows(views map[string]wire.CampaignView, t wire.Trial, k wire.TrialKey,
	then func(views map[string]wire.CampaignView, names []string, all bool)) {
	know := takingPart(views, t, k)
	rest := slices.DeleteFunc(t.Nodes(), func(n string) bool { return slices.Contains(know, n) })
	if len(rest) == 0 {
		then(views, know, true)
		return
	}
	w.viewsOf(rest, func(newer map[string]wire.CampaignView) {
		views := maps.Clone(views)
		maps.Copy(views, newer)
		know := takingPart(views, t, k)
		then(views, know, len(know) == len(t.Nodes()))
	})
}

// settled asks for the nodes' views until none is at an attempt that is decided
// already: an order to arm can arrive after it was given up.
func (w *worker) settled(then func(map[string]wire.CampaignView)) {
	w.views(func(views map[string]wire.CampaignView) {
		var busy []string
		for _, n := range w.nodes {
			v := views[n]
			if v.Current == nil || v.State == wire.StateKept {
				continue
			}
			if _, decided := w.e.decision(*v.Current); decided {
				busy = append(busy, n)
			}
		}
		if len(busy) == 0 {
			then(views)
			return
		}
		left := len(busy)
		for _, n := range busy {
			r := wire.AbortRequest{TrialKey: *views[n].Current, Reason: "the attempt is decided already", Follows: true}
			w.abort([]string{n}, r, func(bool) {
				if left--; left == 0 {
					w.e.after(100*time.Millisecond, func() { w.settled(then) })
				}
			})
		}
	})
}

// undecided lists, in order, the attempts at trials of this shard that nodes know
// and the archive has not decided.
func (e *Engine) undecided(views map[string]wire.CampaignView) []wire.TrialKey {
	seen := map[wire.TrialKey]bool{}
	var out []wire.TrialKey
	add := func(k wire.TrialKey) {
		_, planned := e.trial(k.Trial)
		_, decided := e.decision(k)
		if planned && e.cfg.Has(k.Trial) && !decided && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for _, v := range views {
		for _, t := range v.Trials {
			for _, a := range t.Attempts {
				add(a.TrialKey)
			}
		}
		if v.Current != nil {
			add(*v.Current)
		}
	}
	slices.SortFunc(out, inOrder)
	return out
}

// orphan is the first attempt that is undecided and has records.
func (e *Engine) orphan() (first wire.TrialKey, found bool) {
	look := func(k wire.TrialKey) {
		_, planned := e.trial(k.Trial)
		_, decided := e.decision(k)
		if decided || !e.cfg.Has(k.Trial) || !planned && !slices.Contains(e.orphans, k) {
			return
		}
		if !found || inOrder(k, first) < 0 {
			first, found = k, true
		}
	}
	for _, k := range e.orphans {
		look(k)
	}
	for _, w := range e.workers {
		for k := range w.kept {
			look(k)
		}
		for k := range w.windows {
			look(k)
		}
	}
	return first, found
}

func inOrder(a, b wire.TrialKey) int {
	return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Attempt, b.Attempt))
}

// takingPart lists the nodes that know of an attempt.
func takingPart(views map[string]wire.CampaignView, t wire.Trial, k wire.TrialKey) []string {
	var out []string
	for _, name := range t.Nodes() {
		v := views[name]
		knows := v.Current != nil && *v.Current == k
		for _, tv := range v.Trials {
			for _, a := range tv.Attempts {
				knows = knows || a.TrialKey == k
			}
		}
		if knows {
			out = append(out, name)
		}
	}
	return out
}

// at lists the nodes that are at an attempt, in one of some states.
func at(views map[string]wire.CampaignView, k wire.TrialKey, states ...wire.State) (out []string) {
	for n, v := range views {
		if v.Current != nil && *v.Current == k && slices.Contains(states, v.State) {
			out = append(out, n)
		}
	}
	return out
}

func underWay(views map[string]wire.CampaignView, k wire.TrialKey) bool {
	for _, v := range views {
		if v.Current != nil && *v.Current == k && v.State != wire.StateKept {
			return true
		}
	}
	return false
}

// verdictsAtOnce keeps a call within what a node takes, 1 MiB.
const verdictsAtOnce = 200

// tellMissing gives every node the final verdicts that it does not have. One
// that cannot be told now is told the next time.
func (w *worker) tellMissing(views map[string]wire.CampaignView, then func()) {
	left := 1
	told := func() {
		if left--; left == 0 {
			then()
		}
	}
	for _, n := range w.nodes {
		has := map[wire.TrialKey]wire.Verdict{}
		for _, t := range views[n].Trials {
			for _, a := range t.Attempts {
				has[a.TrialKey] = a
			}
		}
		var missing []wire.Verdict
		for _, v := range w.e.decisions {
			if !sameOverride(has[v.TrialKey], v) {
				missing = append(missing, v)
			}
		}
		if len(missing) > 0 {
			left++
			w.tell(n, missing, told)
		}
	}
	told()
}

func (w *worker) tell(node string, vs []wire.Verdict, then func()) {
	some := vs[:min(len(vs), verdictsAtOnce)]
	w.e.do(w.index, node, Tell{some}, func(a Answer) {
		if a.Fault != nil {
			w.log("tell verdicts to "+node, wire.TrialKey{}, a.Fault)
		}
		if rest := vs[len(some):]; len(rest) > 0 {
			w.tell(node, rest, then)
			return
		}
		then()
	})
}

// recall takes the attempts that the archive has records of when the run begins.
func (e *Engine) recall(attempts []Attempt) {
	for _, a := range attempts {
		_, decided := e.decision(a.TrialKey)
		switch {
		case !decided:
			e.orphans = append(e.orphans, a.TrialKey)
		case !a.Sealed:
			e.do(everybody, "", Seal{a.TrialKey}, nil)
		}
	}
}

// decideOrphans decides the attempts that the archive had records of when the run began, or
// has got since from nodes that know nothing of them any more: another run was loaded, or the
// field that they were driven in is gone. One that all its nodes have kept is judged as any
// other. Those which nodes began since are theirs.
func (e *Engine) decideOrphans(then func()) {
	k, found := e.orphan()
	if !found {
		then()
		return
	}
	e.orphans = slices.DeleteFunc(e.orphans, func(o wire.TrialKey) bool { return o == k })
	if t, planned := e.trial(k.Trial); planned && len(e.workers) == 1 {
		w := e.workers[0]
		if missing, _, _ := w.lacking(k, t.Nodes()); len(missing) == 0 {
			w.quiet[k] = true
			w.finish(t, k, func() { e.decideOrphans(then) })
			return
		}
	}
	const text = "the controller ended during the attempt, and no node knows of it"
	v := wire.Verdict{TrialKey: k, Outcome: wire.Interrupted, Final: true,
		Reason: wire.Reason{Code: wire.ReasonControllerRestarted, Text: text}}
	e.keep(Decide{v}, func() {
		e.decided(v)
		e.do(everybody, "", Seal{k}, nil)
		e.decideOrphans(then)
	})
}
