package preflight

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestTransportProblems(t *testing.T) {
	told := wire.NodeStatus{Congestion: []string{"reno", "cubic"}, Host: wire.HostStatus{TCP: []wire.Ability{
		{Feature: "variant reno", How: "native"}, {Feature: "variant sack", How: "native"},
		{Feature: "variant tahoe", How: "bpf"},
		{Feature: "variant reno, classic", How: "none", Reason: "the kernel does not describe its own types",
			Needs: "a kernel with BTF"},
		{Feature: "variant reference", How: "none", Reason: "it is not there", Needs: "a rehearsal"},
		{Feature: "fixed_rto", How: "none", Reason: "this is Linux 6.1", Needs: "Linux 6.15"},
		{Feature: "rto_min_ms", How: "none", Reason: "there is no such sysctl", Needs: "Linux 6.11"},
	}}}
	silent := wire.NodeStatus{Congestion: []string{"reno", "cubic"}}
	for name, c := range map[string]struct {
		tcp    wire.TCP
		status wire.NodeStatus
		want   []string // in the one problem; nil: none
	}{
		"native":        {wire.TCP{Variant: "reno"}, told, nil},
		"by program":    {wire.TCP{Variant: "tahoe", Classic: true}, told, nil},
		"sack, by name": {wire.TCP{Variant: "sack"}, told, nil},
		"classic needs the program": {wire.TCP{Variant: "reno", Classic: true}, told,
			[]string{"describe its own types", "BTF"}},
		"so does classic sack": {wire.TCP{Variant: "sack", Classic: true}, told,
			[]string{"variant reno, classic", "BTF"}},
		"fixed rto": {wire.TCP{Variant: "reno", FixedRTO: true}, told,
			[]string{"this is Linux 6.1", "Linux 6.15"}},
		"least rto": {wire.TCP{Variant: "reno", RTOMinMs: new(500)}, told,
			[]string{"no such sysctl", "Linux 6.11"}},
		"an older agent, least rto": {wire.TCP{Variant: "reno", RTOMinMs: new(500)},
			wire.NodeStatus{Host: wire.HostStatus{TCP: told.Host.TCP[:1]}}, []string{"rto_min_ms is not known",
				"leave tcp.rto_min_ms out"}},
		"unknown to the node": {wire.TCP{Variant: "vegas"}, told, []string{`"vegas" is not available`,
			"reno, cubic", "module"}},
		"an older agent, its own":   {wire.TCP{Variant: "cubic"}, silent, nil},
		"an older agent, a program": {wire.TCP{Variant: "tahoe"}, silent, []string{`"tahoe" is not available`}},
		"reference outside of field": {wire.TCP{Variant: "reference"},
			wire.NodeStatus{Host: wire.HostStatus{TCP: []wire.Ability{{Feature: "variant reference", How: "none",
				Needs: "a rehearsal"}, {Feature: "fixed_rto", How: "bpf"}}}}, []string{"a rehearsal"}},
	} {
		got := transportProblems(c.tcp, c.status)
		if (len(got) == 1) != (c.want != nil) || len(got) > 1 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, part := range c.want {
			if text := got[0].Found + "; " + got[0].Cure; !strings.Contains(text, part) {
				t.Errorf("%s: %q has no %q", name, text, part)
			}
		}
	}
}

// A protocol whose routes go without data has to hear of data; another does not.
func TestRoutesInUseMustBeKnown(t *testing.T) {
	for protocol, want := range map[string]string{"aodv": Unmet, "aodv-ns2": Unmet, "aodv-p3": Unmet, "aomdv": Unmet,
		"adv": Unmet, "dsr": Met, "dsr-ns2": Met, "dsdv": Met, "olsr": Met, "olsr-etx": Met, "babeld": Met} {
		plan, node := need(), well()
		plan.Trials[0].Routing.Protocol = protocol
		node.Status.Host.TCP = append(node.Status.Host.TCP, wire.Ability{Feature: wire.RoutesInUse, How: "none",
			Reason: "protocol not supported", Needs: "a kernel with nftables"})
		states, words := told(Judge(plan, "car", 3600, node), "routing")
		cured := strings.Contains(words, "use a kernel with nftables; or plan olsr")
		if !slices.Equal(states, []string{want}) || cured != (want == Unmet) {
			t.Errorf("%s: %v %s", protocol, states, words)
		}
		node.Status.Host.TCP[len(node.Status.Host.TCP)-1].How = "native"
		if states, words := told(Judge(plan, "car", 3600, node), "routing"); !slices.Equal(states, []string{Met}) {
			t.Errorf("%s with nftables: %v %s", protocol, states, words)
		}
	}
}

// Where sockets cannot be destroyed, no window after the first is silent.
func TestANodeMustBeAbleToEndConnections(t *testing.T) {
	for how, want := range map[string]string{"native": Met, "none": Unmet} {
		node := well()
		node.Status.Host.TCP = []wire.Ability{{Feature: "variant reno", How: "native"},
			{Feature: wire.DestroySockets, How: how, Reason: "operation not supported",
				Needs: "a kernel with CONFIG_INET_DIAG_DESTROY"}}
		states, words := told(Judge(need(), "car", 3600, node), "tcp")
		if len(states) != 1 || states[0] != want ||
			(want == Unmet) != strings.Contains(words, "use a kernel with CONFIG_INET_DIAG_DESTROY") {
			t.Errorf("%s: %v %s", how, states, words)
		}
	}
}
