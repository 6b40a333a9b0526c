// Package design says what a schedule of trials lets a model estimate: which
// terms it has, which of them changed together, and how many degrees of freedom
// judge each. It knows what was set, not what came out, so that a plan is judged
// before it is driven by the code that analyses it afterwards.
package design

import (
	"fmt"
	"maps"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Pass is one window as the model sees it.
type Pass struct {
	Trial   wire.Trial
	Section string // A, B …; empty when the campaign has none
	Unit    string // hardware in the car
	Sender  string // hardware that sends the data; empty when it is not known
	Session string // one stretch of driving: see Sessions
}

// Of is a trial of a plan with these nodes as a pass, without its session.
func Of(nodes []wire.PlanNode, t wire.Trial) Pass {
	return Pass{Trial: t, Section: sectionOf(t), Unit: unitOf(nodes, t), Sender: senderOf(nodes, t)}
}

// Sessions numbers the stretches of driving without another unit being put into
// the car and without a pause; paused reports whether there was one before a
// pass since the one before it.
func Sessions(passes []Pass, paused func(i int) bool) []string {
	out := make([]string, len(passes))
	n := 0
	for i, p := range passes {
		if i == 0 || p.Unit != passes[i-1].Unit || paused(i) {
			n++
		}
		out[i] = fmt.Sprint(n)
	}
	return out
}

// sectionOf follows the campaign's own factor or, without one, P1's meaning of
// the letters: in A the car sends, in B it receives.
func sectionOf(t wire.Trial) string {
	if s := t.Factors["section"]; s != "" {
		return s
	}
	switch {
	case t.Car == "":
		return ""
	case t.Sender == t.Car:
		return "A"
	case t.Receiver == t.Car:
		return "B"
	}
	return ""
}

// unitOf is the hardware in the car.
func unitOf(nodes []wire.PlanNode, t wire.Trial) string {
	if u := t.Factors["car_unit"]; u != "" {
		return u
	}
	for _, n := range nodes {
		if n.Name == t.Car && n.Unit != "" {
			return n.Unit
		}
	}
	return t.Car
}

// senderOf is the hardware that sends the data. Where a factor says which unit
// is in the car, the roadside has the one that the car's node would have had.
func senderOf(nodes []wire.PlanNode, t wire.Trial) string {
	units := map[string]string{}
	for _, n := range nodes {
		units[n.Name] = n.Unit
	}
	car := unitOf(nodes, t)
	switch {
	case t.Sender == t.Car && t.Car != "":
		return car
	case t.Sender == t.Roadside && units[t.Sender] == car:
		return units[t.Car]
	}
	return units[t.Sender]
}

// levels lists what a property takes on among passes, sorted; numbers by their
// value.
func levels(passes []Pass, of func(Pass) string) []string {
	seen := map[string]bool{}
	for _, p := range passes {
		if v := of(p); v != "" {
			seen[v] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), wire.CompareLevels)
}
