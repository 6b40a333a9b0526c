package trial

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// changes is what a trial needs changed on this node: what stays between
// trials of a run, and what is put back after each. It is a pure function of
// the plan, so that arming again asks for the same.
func changes(plan wire.RunPlan, t wire.Trial, p tcp.Profile, node, iface string) (run, trial []change.Change,
	err error) {
	run = []change.Change{
		// Router solicitations and neighbour discovery of IPv6 would be in the
		// air of the measuring window.
		change.Sysctl{Key: "net.ipv6.conf." + iface + ".disable_ipv6", Value: "1"},
		change.Link{Interface: iface, Up: ptr(true)},
	}
	var own netip.Prefix
	for _, n := range plan.Nodes {
		if n.Name != node {
			continue
		}
		if own, err = netip.ParsePrefix(n.MeshPrefix); err != nil {
			return nil, nil, fmt.Errorf("read address of node %q: %w", node, err)
		}
		run = append(run, change.Address{Interface: iface, Prefix: own}, change.Rule{Network: own.Masked()})
	}
	if t.EndsTCP(node) {
		trial = transportChanges(p, own, iface)
	}
	if t.Capture != nil && t.Capture.Offloads == wire.OffloadsOff {
		trial = append(trial, change.Offloads{Interface: iface})
	}
	if hasDaemon(t.Routing) {
		if change.Forwards(t.Routing.Protocol) {
			trial = append(trial, change.Forward{Interface: iface})
		}
		trial = append(trial, change.Daemon{Name: t.Routing.Protocol, Interface: iface, Announce: own.Masked(),
			HelloS: t.Routing.HelloS, NoLinkFeedback: !t.Routing.BreaksByLostFrames(), QuickAck: p.Immediate})
	}
	static, err := staticRoutes(plan, t, p, node, iface)
	return run, append(trial, static...), err
}

// hasDaemon tells the routing that a daemon does.
func hasDaemon(r wire.Routing) bool { return r.Protocol != "none" && r.Protocol != "static" }

func ptr[T any](v T) *T { return &v }
