package model

import (
	"errors"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var first, second, third = wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 1, Attempt: 2},
	wire.TrialKey{Trial: 2, Attempt: 1}

func entered(k wire.TrialKey, states ...wire.State) (out []Did) {
	for _, s := range states {
		out = append(out, Did{Key: k, State: s})
	}
	return out
}

func kept(k wire.TrialKey, o wire.Outcome, code wire.ReasonCode) Did {
	return Did{Key: k, State: wire.StateKept, Outcome: o, Code: code}
}

// whole is an attempt that is measured: 0 made, 1 armed, 2 running, 3 opened, 4 restoring, 5 undone, 6 kept.
func whole(k wire.TrialKey) []Did {
	return []Did{{Key: k, Made: 1}, {Key: k, State: wire.StateArmed}, {Key: k, State: wire.StateRunning},
		{Key: k, Opened: true}, {Key: k, State: wire.StateRestoring}, {Key: k, Made: -1}, kept(k, wire.Accepted, "")}
}

func verdictOn(k wire.TrialKey, o wire.Outcome) Entry {
	return Entry{Verdict: &wire.Verdict{TrialKey: k, Outcome: o, Final: true}}
}

// good is a run of two trials. In the first attempt one agent is restarted while its window
// is open, and the other gives up; the second attempt and the next trial are accepted.
func good() Trace {
	a := append(entered(first, wire.StateArmed, wire.StateRunning),
		kept(first, wire.Interrupted, wire.ReasonAgentRestarted))
	b := append(entered(first, wire.StateRestoring), kept(first, wire.Failed, wire.ReasonArmFailed))
	trial := wire.Trial{Initiator: "a", Sender: "a", Receiver: "b"}
	one, two := trial, trial
	one.Number, two.Number = 1, 2
	return Trace{
		Trials: []wire.Trial{one, two},
		Nodes: map[string][]Did{
			"a": slices.Concat(a, whole(second), whole(third)),
			"b": slices.Concat(b, whole(second), whole(third)),
		},
		Journal: []Entry{verdictOn(first, wire.Interrupted), {Sealed: &first}, verdictOn(second, wire.Accepted),
			verdictOn(third, wire.Accepted), {Sealed: &third}},
		Over: true,
	}
}

// Steps of good()'s second attempt on a.
const (
	made = 3 + iota
	armed
	running
	opened
	restoring
	undone
	keptAt
)

func drop(node string, i int) func(*Trace) {
	return func(t *Trace) { t.Nodes[node] = slices.Delete(t.Nodes[node], i, i+1) }
}

func insert(node string, i int, d Did) func(*Trace) {
	return func(t *Trace) { t.Nodes[node] = slices.Insert(t.Nodes[node], i, d) }
}

func TestWhatARunMayDoIsAccepted(t *testing.T) {
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	lost := good() // its last record, and the controller has written it off
	lost.Nodes["a"] = append(lost.Nodes["a"][:2], lost.Nodes["a"][3:]...)
	if lost.Check() == nil {
		t.Error("an attempt has no end, and another is begun")
	}
	lost.WrittenOff = map[string][]wire.TrialKey{"a": {first}}
	if err := lost.Check(); err != nil {
		t.Error(err)
	}
}

// Each promise of the model that a trace can break is held against it.
func TestWhatNoRunDoesIsRefused(t *testing.T) {
	word := &wire.Word{Decision: "accept", By: "phone", Judged: wire.Rejected}
	for _, c := range []struct {
		name, promise string
		plant         func(*Trace)
	}{
		{"running before it is armed", "StepsAreOfTheTable", drop("a", armed)},
		{"kept before it is restored", "StepsAreOfTheTable", drop("a", restoring)},
		{"kept twice", "StepsAreOfTheTable", insert("a", keptAt+1, kept(second, wire.Failed, wire.ReasonNoGo))},
		{"armed again after its end", "StepsAreOfTheTable",
			insert("a", keptAt+1, Did{Key: second, State: wire.StateArmed})},
		{"running again while it is restored", "StepsAreOfTheTable",
			insert("a", restoring+1, Did{Key: second, State: wire.StateRunning})},
		{"cut short, and no agent was restarted", "StepsAreOfTheTable",
			func(t *Trace) { t.Nodes["a"][2].Code = wire.ReasonNoGo }},
		{"ended by a restart that an attempt survived", "StepsAreOfTheTable",
			insert("a", armed+1, Did{Key: second, State: wire.StateArmed, Code: wire.ReasonAgentRestarted})},
		{"a state that there is not", "StepsAreOfTheTable", insert("a", armed+1, Did{Key: second, State: "paused"})},
		{"at two attempts", "OneAttemptAtATime", insert("a", armed+1, Did{Key: third, State: wire.StateArmed})},
		{"an attempt without an end", "OneAttemptAtATime", drop("a", keptAt)},
		{"the end of another attempt", "OneAttemptAtATime",
			insert("a", running, kept(third, wire.Failed, wire.ReasonNoGo))},
		{"a window before GO", "WindowsOpenByGo", func(t *Trace) {
			a := t.Nodes["a"]
			a[running], a[opened] = a[opened], a[running]
		}},
		{"a window after the end", "WindowsOpenByGo", insert("b", 2, Did{Key: first, Opened: true})},
		{"a window while it is restored", "WindowsOpenByGo", insert("a", undone, Did{Key: second, Opened: true})},
		{"a second window", "OpenedOnce", insert("a", opened, Did{Key: second, Opened: true})},
		{"accepted by a node that opened no window", "AcceptedWasMeasured", drop("a", opened)},
		{"a change that is left", "TrialIsUndone", drop("a", undone)},
		{"a change that is undone twice", "TrialIsUndone", insert("a", undone, Did{Key: second, Made: -1})},
		{"accepted without one of its nodes", "AcceptedWasMeasured", func(t *Trace) { delete(t.Nodes, "b") }},
		{"accepted of no trial", "AcceptedWasMeasured", func(t *Trace) { t.Trials = t.Trials[:1] }},
		{"accepted by a person, and not measured", "AcceptedWasMeasured", func(t *Trace) {
			e := verdictOn(first, wire.Accepted)
			e.Verdict.Word = word
			t.Journal = slices.Insert(t.Journal, 1, e)
		}},
		{"decided again", "OnlyRises",
			func(t *Trace) { t.Journal = append(t.Journal, verdictOn(second, wire.Rejected)) }},
		{"sealed before it is decided", "OnlyRises",
			func(t *Trace) { t.Journal = slices.Insert(t.Journal, 0, t.Journal[1]) }},
		{"two attempts of a trial accepted", "AcceptedOnce", func(t *Trace) {
			again := wire.TrialKey{Trial: 1, Attempt: 3}
			for name := range t.Nodes {
				t.Nodes[name] = append(t.Nodes[name], whole(again)...)
			}
			t.Journal = append(t.Journal, verdictOn(again, wire.Accepted))
		}},
		{"over, and an attempt is under way", "AttemptsEnd",
			func(t *Trace) {
				t.Nodes["b"] = append(t.Nodes["b"], entered(wire.TrialKey{Trial: 2, Attempt: 2}, wire.StateArmed)...)
			}},
		{"over, and an attempt is not decided", "AttemptsEnd", func(t *Trace) { t.Journal = t.Journal[2:] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := good()
			c.plant(&trace)
			var v *Violation
			if err := trace.Check(); !errors.As(err, &v) || v.Promise != c.promise {
				t.Errorf("%v, and %s should be violated", err, c.promise)
			}
		})
	}
}
