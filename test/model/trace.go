package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Trace is what a run did: what its controller decided, and what each node did, each in
// its own order. How those of two nodes lie to each other, no journal tells.
type Trace struct {
	Trials  []wire.Trial
	Journal []Entry
	Nodes   map[string][]Did
	// WrittenOff are the attempts that nodes ended without a record of it.
	WrittenOff map[string][]wire.TrialKey
	Over       bool // the run is at its end, and all of it is here
}

// Entry is of the controller's journal: a verdict, or that an attempt is sealed.
type Entry struct {
	Verdict *wire.Verdict
	Sealed  *wire.TrialKey
}

// Did is something that a node did of an attempt: it entered a state, its window opened,
// or a change was made or undone.
type Did struct {
	Key     wire.TrialKey
	State   wire.State
	Outcome wire.Outcome    // with state kept
	Code    wire.ReasonCode // with state kept
	Opened  bool
	Made    int // 1: a change of the trial was made; -1: it was undone
}

// Violation is a promise of the model that a trace breaks.
type Violation struct {
	Promise string // as the model names it
	What    string
}

func (v *Violation) Error() string { return v.Promise + " is violated: " + v.What }

// attemptOf is what a node has done of an attempt.
type attemptOf struct {
	state   wire.State
	opened  int
	made    int
	outcome wire.Outcome
}

// Check returns the first promise that a trace breaks, as a *Violation.
func (t Trace) Check() error {
	steps, err := table("Steps")
	if err != nil {
		return err
	}
	restarts, err := table("RestartSteps")
	if err != nil {
		return err
	}
	did := map[string]map[wire.TrialKey]*attemptOf{}
	for _, name := range slices.Sorted(maps.Keys(t.Nodes)) {
		n := observed{name: name, steps: steps, restarts: restarts, writtenOff: t.WrittenOff[name],
			attempts: map[wire.TrialKey]*attemptOf{}}
		for _, d := range t.Nodes[name] {
			if err := n.saw(d); err != nil {
				return err
			}
		}
		n.writeOff()
		did[name] = n.attempts
	}
	decided, err := t.decisions(did)
	if err != nil || !t.Over {
		return err
	}
	return atEnd(did, decided)
}

// observed is a node as its trace has it so far.
type observed struct {
	name            string
	steps, restarts map[step]bool
	attempts        map[wire.TrialKey]*attemptOf
	busy            *wire.TrialKey // the attempt that is under way
	writtenOff      []wire.TrialKey
}

// writeOff ends the attempt under way, if it is one of whose end there is no record.
func (n *observed) writeOff() {
	if n.busy != nil && slices.Contains(n.writtenOff, *n.busy) {
		n.attempts[*n.busy].state, n.busy = wire.StateKept, nil
	}
}

func (n *observed) saw(d Did) error {
	a := n.attempts[d.Key]
	if a == nil {
		a = &attemptOf{state: none}
		n.attempts[d.Key] = a
	}
	switch {
	case d.Made != 0:
		a.made += d.Made
		return nil
	case d.Opened:
		return n.window(d, a)
	}
	return n.enter(d, a)
}

func (n *observed) window(d Did, a *attemptOf) error {
	if a.state != wire.StateRunning {
		return &Violation{"WindowsOpenByGo",
			fmt.Sprintf("the window of attempt %v opens on %s, where it is %s", d.Key, n.name, a.state)}
	}
	if a.opened++; a.opened > 1 {
		return &Violation{"OpenedOnce", fmt.Sprintf("the window of attempt %v opens again on %s", d.Key, n.name)}
	}
	return nil
}

// enter has an attempt enter a state.
func (n *observed) enter(d Did, a *attemptOf) error {
	if n.busy != nil && *n.busy != d.Key {
		n.writeOff()
	}
	if n.busy != nil && *n.busy != d.Key {
		return &Violation{"OneAttemptAtATime",
			fmt.Sprintf("attempt %v is %s on %s, which is at %v", d.Key, d.State, n.name, *n.busy)}
	}
	if !n.may(d, a.state) {
		return &Violation{"StepsAreOfTheTable",
			fmt.Sprintf("attempt %v goes from %s to %s on %s (%s)", d.Key, a.state, d.State, n.name, d.Code)}
	}
	a.state, a.outcome, n.busy = d.State, d.Outcome, nil
	if a.state != wire.StateKept {
		n.busy = &d.Key
		return nil
	}
	if a.outcome == wire.Accepted && a.opened == 0 {
		return &Violation{"AcceptedWasMeasured",
			fmt.Sprintf("%s keeps attempt %v as accepted, and its window did not open", n.name, d.Key)}
	}
	if a.outcome == wire.Accepted && a.made != 0 {
		return &Violation{"TrialIsUndone", fmt.Sprintf("%s keeps attempt %v with %+d changes", n.name, d.Key, a.made)}
	}
	return nil
}

// may reports whether a state may be entered. That an attempt is loaded is not recorded.
func (n *observed) may(d Did, from wire.State) bool {
	table := n.steps
	if d.Code == wire.ReasonAgentRestarted {
		table = n.restarts
	}
	if d.Code == wire.ReasonUnrecorded || d.Code == wire.ReasonDiskFull {
		return from != wire.StateKept && d.State == wire.StateKept // its other records may be missing
	}
	loaded := n.steps[step{none, wire.StateLoaded}] && table[step{wire.StateLoaded, d.State}]
	return table[step{from, d.State}] || from == none && loaded
}

// decisions checks what the controller decided, and returns what stands in the end.
func (t Trace) decisions(did map[string]map[wire.TrialKey]*attemptOf) (map[wire.TrialKey]wire.Verdict, error) {
	standing := map[wire.TrialKey]wire.Verdict{}
	accepted := map[int]wire.TrialKey{}
	for _, e := range t.Journal {
		if k := e.Sealed; k != nil {
			if _, is := standing[*k]; !is {
				return nil, &Violation{"OnlyRises", fmt.Sprintf("attempt %v is sealed, and not decided", *k)}
			}
			continue
		}
		v := *e.Verdict
		had, again := standing[v.TrialKey]
		if again && v.Word == nil {
			return nil, &Violation{"OnlyRises",
				fmt.Sprintf("attempt %v is %s, and then %s", v.TrialKey, had.Outcome, v.Outcome)}
		}
		standing[v.TrialKey] = v
		if other, is := accepted[v.Trial]; is && other == v.TrialKey && v.Outcome != wire.Accepted {
			delete(accepted, v.Trial)
		}
		if v.Outcome != wire.Accepted {
			continue
		}
		if other, is := accepted[v.Trial]; is && other != v.TrialKey {
			return nil, &Violation{"AcceptedOnce", fmt.Sprintf("attempts %v and %v are accepted", other, v.TrialKey)}
		}
		accepted[v.Trial] = v.TrialKey
		if err := t.measured(v, did); err != nil {
			return nil, err
		}
	}
	return standing, nil
}

// measured checks that an accepted attempt was measured by all who take part in it.
func (t Trace) measured(v wire.Verdict, did map[string]map[wire.TrialKey]*attemptOf) error {
	nodes := partakers(t.Trials, v.Trial)
	if nodes == nil {
		return &Violation{"AcceptedWasMeasured", fmt.Sprintf("attempt %v is of no trial of the plan", v.TrialKey)}
	}
	for _, name := range nodes {
		a := did[name][v.TrialKey]
		if a == nil || a.opened != 1 {
			return &Violation{"AcceptedWasMeasured",
				fmt.Sprintf("attempt %v is accepted, and its window did not open on %s", v.TrialKey, name)}
		}
	}
	return nil
}

// atEnd checks what is to be true when a run is over.
func atEnd(did map[string]map[wire.TrialKey]*attemptOf, decided map[wire.TrialKey]wire.Verdict) error {
	for _, name := range slices.Sorted(maps.Keys(did)) {
		byKey := func(x, y wire.TrialKey) int {
			return cmp.Or(cmp.Compare(x.Trial, y.Trial), cmp.Compare(x.Attempt, y.Attempt))
		}
		for _, k := range slices.SortedFunc(maps.Keys(did[name]), byKey) {
			if did[name][k].state != wire.StateKept {
				return &Violation{"AttemptsEnd",
					fmt.Sprintf("attempt %v is left %s on %s", k, did[name][k].state, name)}
			}
			if _, is := decided[k]; !is {
				return &Violation{"AttemptsEnd", fmt.Sprintf("%s was at attempt %v, and it is not decided", name, k)}
			}
		}
	}
	return nil
}
