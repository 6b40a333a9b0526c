package engine

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// mutant is a deviation of the engine, planted at its boundary: in what it is
// told, and in what it asks for.
type mutant struct {
	name   string
	config func(*Config)
	event  func(*simulation, Event) []Event
	action func(*simulation, Action) []Action
}

func (m *mutant) is(name string) bool { return m != nil && m.name == name }

func (m *mutant) configure(c *Config) {
	if m != nil && m.config != nil {
		m.config(c)
	}
}

func (m *mutant) events(w *simulation, ev Event) []Event {
	if m == nil || m.event == nil {
		return []Event{ev}
	}
	return m.event(w, ev)
}

func (m *mutant) actions(w *simulation, a Action) []Action {
	if m == nil || m.action == nil {
		return []Action{a}
	}
	return m.action(w, a)
}

// skip has the engine believe that an action was done.
func skip(w *simulation, a Action) []Action {
	life := w.life
	w.at(time.Millisecond, func() { w.give(life, Answer{ID: a.ID}) })
	return nil
}

func without[T Op](keep func(T) bool) func(*simulation, Action) []Action {
	return func(w *simulation, a Action) []Action {
		if op, is := a.Op.(T); is && (keep == nil || !keep(op)) {
			return skip(w, a)
		}
		return []Action{a}
	}
}

func changed[T Op](change func(T) Op) func(*simulation, Action) []Action {
	return func(_ *simulation, a Action) []Action {
		if op, is := a.Op.(T); is {
			a.Op = change(op)
		}
		return []Action{a}
	}
}

// views changes what nodes say of themselves.
func views(change func(*Answer)) func(*simulation, Event) []Event {
	return func(_ *simulation, ev Event) []Event {
		if a, is := ev.(Answer); is {
			change(&a)
			ev = a
		}
		return []Event{ev}
	}
}

// planted are deviations of lease, arm, GO, decide and resume. Each is found.
var planted = []mutant{
	{name: "lease: it is not given up at the end", action: without[Release](nil)},
	{name: "lease: it is renewed after it was given up", action: func(_ *simulation, a Action) []Action {
		if _, is := a.Op.(Release); is {
			return []Action{a, {ID: 1 << 60, Worker: a.Worker, Node: a.Node, Op: Renew{TTL: leaseTTL}}}
		}
		return []Action{a}
	}},
	{name: "lease: it is taken for longer than a controller may be away",
		action: changed(func(r Renew) Op { return Renew{TTL: 4 * r.TTL} })},
	{name: "lease: it is never renewed", action: without[Renew](nil)},
	{name: "arm: the initiator before its peers", action: func(w *simulation, a Action) []Action {
		op, is := a.Op.(Arm)
		if t := w.trial(max(op.Key.Trial, 1)); is && a.Node != t.Initiator {
			return []Action{{ID: 1 << 60, Worker: a.Worker, Node: t.Initiator, Op: op}, a}
		}
		return []Action{a}
	}},
	{name: "arm: a peer is left out", action: func(w *simulation, a Action) []Action {
		if op, is := a.Op.(Arm); is && a.Node != w.trial(op.Key.Trial).Initiator {
			return skip(w, a)
		}
		return []Action{a}
	}},
	{name: "arm: a refusal is taken for success", event: views(func(a *Answer) {
		if a.Fault != nil && (a.Fault.Err == errBusy || a.Fault.Err == errAway) {
			a.Fault = nil
		}
	})},
	{name: "arm: for the next attempt", action: changed(func(a Arm) Op { a.Key.Attempt++; return a })},
	{name: "go: the car does not set off", action: without[Drive](nil)},
	{name: "go: the car sets off before the nodes are armed", action: func(_ *simulation, a Action) []Action {
		if _, is := a.Op.(Place); is {
			return []Action{a, {ID: 1 << 60, Worker: a.Worker, Op: Drive{}}}
		}
		return []Action{a}
	}},
	{name: "go: the end is awaited of one node only", event: func(w *simulation, ev Event) []Event {
		k, is := ev.(Kept)
		if !is {
			return []Event{ev}
		}
		var all []Event
		for _, n := range w.nodes[k.Worker] {
			k.Node = n.name
			all = append(all, k)
		}
		return all
	}},
	{name: "go: a node that is late is written off", event: views(func(a *Answer) { a.Held = true })},
	{name: "decide: it is not written", action: without[Decide](nil)},
	{name: "decide: nodes are told before it is durable", action: func(_ *simulation, a Action) []Action {
		if d, is := a.Op.(Decide); is && a.Worker >= 0 {
			return []Action{{ID: 1 << 60, Worker: a.Worker, Node: "a", Op: Tell{[]wire.Verdict{d.Verdict}}}, a}
		}
		return []Action{a}
	}},
	{name: "decide: nodes are told something else", action: changed(func(t Tell) Op {
		told := t.Verdicts[0]
		told.Outcome = wire.Interrupted
		return Tell{[]wire.Verdict{told}}
	})},
	{name: "decide: whatever is measured is accepted", event: views(func(a *Answer) {
		if a.Verdict.Trial > 0 {
			a.Verdict.Outcome = wire.Accepted
		}
	})},
	{name: "decide: another attempt", event: views(func(a *Answer) { a.Verdict.Attempt++ })},
	{name: "decide: what is accepted is sealed only", action: without(func(s Seal) bool { return s.Key.Trial != 1 })},
	{name: "resume: what the archive holds is not recalled"},
	{name: "resume: what people decided is not recalled"},
	{name: "resume: the newest decision is forgotten", config: func(c *Config) {
		if n := len(c.Decisions); n > 0 {
			c.Decisions = c.Decisions[:n-1]
		}
	}},
	{name: "resume: what nodes did alone is passed over", event: views(func(a *Answer) {
		a.View.Trials = nil
		if a.View.State == wire.StateKept {
			a.View.Current = nil
		}
	})},
	{name: "resume: what no node knows is left undecided", event: views(func(a *Answer) { a.Attempts = nil })},
	{name: "resume: the last trial is not driven", config: func(c *Config) {
		last := len(c.Plan.Trials)
		c.Has = func(trial int) bool { return trial < last }
	}},
	{name: "resume: it drives where it is only to pull", config: func(c *Config) { c.PullOnly = false }},
	{name: "quiet: looks go on over the mesh", event: func(_ *simulation, ev Event) []Event {
		if a, is := ev.(Answer); is && a.View.Live != nil {
			a.View.Live = nil
			ev = a
		}
		return []Event{ev}
	}},
	{name: "end: nodes are not told", action: without[End](nil)},
	{name: "end: the last records are not waited for", action: without[Drain](nil)},
}
