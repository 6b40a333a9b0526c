package preflight

import (
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// transportNeeds are the abilities of a node (wire.Ability) that a transport
// profile asks for.
func transportNeeds(t wire.TCP, st wire.NodeStatus) []string {
	variant := "variant " + t.Variant
	if tcpcc.RunsReno(t) && t.Classic {
		variant = "variant reno, classic"
	}
	needs := []string{variant}
	if st.Privileges == wire.NoPrivileges { // any other agent has these
		for need, is := range map[string]bool{"classic": t.Classic, "sack": t.SACK != nil,
			"delayed_ack": t.DelayedACK != nil && !*t.DelayedACK} {
			if is {
				needs = append(needs, need)
			}
		}
		slices.Sort(needs[1:])
	}
	if t.FixedRTO || t.Variant == "reference" {
		needs = append(needs, "fixed_rto")
	}
	if t.RTOMinMs != nil {
		needs = append(needs, "rto_min_ms")
	}
	if t.RTOMaxMs != nil {
		needs = append(needs, "rto_max_ms")
	}
	if t.WindowPackets != nil {
		needs = append(needs, "window_packets")
	}
	return needs
}

// transportProblems are what a node lacks of a profile.
func transportProblems(t wire.TCP, st wire.NodeStatus) []wire.Problem {
	if t.Variant == "" {
		return nil
	}
	if len(st.Host.TCP) == 0 { // an agent that does not tell has the kernel's own only
		if slices.Contains(st.Congestion, t.Variant) {
			return nil
		}
		return []wire.Problem{notOffered(t.Variant, st.Congestion)}
	}
	var out []wire.Problem
	for _, need := range transportNeeds(t, st) {
		at := slices.IndexFunc(st.Host.TCP, func(a wire.Ability) bool { return a.Feature == need })
		if at < 0 && !strings.HasPrefix(need, "variant ") {
			out = append(out, wire.Problem{Need: "tcp", Found: need + " is not known to the node's agent",
				Cure: "install this version's agent there, or leave tcp." + need + " out"})
			continue
		}
		if at < 0 {
			out = append(out, notOffered(t.Variant, st.Congestion))
			continue
		}
		if a := st.Host.TCP[at]; a.How == "none" {
			out = append(out, wire.Problem{Need: "tcp", Found: fmt.Sprintf("%s cannot be had: %s", need, a.Reason),
				Cure: cureOf(a)})
		}
	}
	return out
}

func notOffered(variant string, have []string) wire.Problem {
	return wire.Problem{Need: "tcp", Found: fmt.Sprintf("congestion control %q is not available, only %s", variant,
		strings.Join(have, ", ")),
		Cure: "load its kernel module on the node, or choose another variant"}
}

func cureOf(a wire.Ability) string {
	if a.Needs == "" {
		return "choose what the node can do: fieldmesh-agent probe there tells"
	}
	return "it needs " + a.Needs + "; or choose what the node can do: fieldmesh-agent probe there tells"
}
