package preflight

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node without root says, need by need, what only root can do; it has nothing to say of
// a plan that leaves everything as it is but what its records will lack.
func TestANodeWithoutRoot(t *testing.T) {
	node := well()
	node.Status.Privileges, node.Status.Absent, node.Status.AllowedPrefixes = wire.NoPrivileges,
		[]string{"interface wlan0", "radio"}, nil
	node.Status.Host.TCP = []wire.Ability{{Feature: "variant reno", How: "native"}, {Feature: "classic", How: "none",
		Reason: "only root can do that", Needs: "root"}, {Feature: "delayed_ack", How: "none",
		Reason: "only root can do that", Needs: "root"}}
	plan := need()
	trial := &plan.Trials[0]
	trial.Capture = &wire.CapturePlan{SnapBytes: 96}
	trial.TCP = wire.TCP{Variant: "vegas", Classic: true, DelayedACK: new(false)}
	items := Judge(plan, "car", 3600, node)
	for needed, says := range map[string][]string{
		"radio":   {"adhoc mode", "which leaves the radio as it is", "radio: {mode: none}", "privileges: root"},
		"routing": {"the plan wants babeld", "routing: {protocol: none}"},
		"capture": {"captured", "leave `capture` out"},
		"tcp":     {`"vegas" is not available`, "classic cannot be had: only root", "delayed_ack cannot be had: only root"},
	} {
		states, words := told(items, needed)
		if len(states) == 0 || slices.ContainsFunc(states, func(s string) bool { return s != Unmet }) {
			t.Errorf("%s: %v %s", needed, states, words)
		}
		for _, text := range says {
			if !strings.Contains(words, text) {
				t.Errorf("%s: %q has no %q", needed, words, text)
			}
		}
	}
	trial.Radio, trial.Routing, trial.Capture = wire.Radio{Mode: "none"}, wire.Routing{Protocol: "none"}, nil
	trial.TCP = wire.TCP{Variant: "reno"}
	items = Judge(plan, "car", 3600, node)
	for _, i := range items {
		if i.State == Unmet {
			t.Errorf("%+v", i)
		}
	}
	if states, words := told(items, "host"); !slices.Equal(states, []string{Met}) ||
		!strings.Contains(words, "without root and changes nothing; its records will lack: interface wlan0, radio") {
		t.Errorf("host: %v %s", states, words)
	}
	trial.Routing, trial.Relays = wire.Routing{Protocol: "static"}, []string{"other"}
	if states, words := told(Judge(plan, "car", 3600, node), "routing"); !slices.Equal(states, []string{Unmet}) {
		t.Errorf("a chain's routes: %v %s", states, words)
	}
}
