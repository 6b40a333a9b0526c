// Package needs is what a trial needs changed on a node, as a function of the plan alone.
package needs

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Changes is what a trial needs changed on this node: what stays between
// trials of a run, and what is put back after each. It is a pure function of
// the plan, so that arming again asks for the same.
func Changes(plan wire.RunPlan, t wire.Trial, p tcp.Profile, node, iface string) (run, trial []change.Change,
	err error) {
	run = []change.Change{
		// Router solicitations and neighbour discovery of IPv6 would be in the
		// air of the measuring window.
		change.Sysctl{Key: "net.ipv6.conf." + iface + ".disable_ipv6", Value: "1"},
		change.Link{Interface: iface, Up: new(true)},
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
	if HasDaemon(t.Routing) {
		if change.Forwards(t.Routing.Protocol) {
			trial = append(trial, change.Forward{Interface: iface})
		}
		trial = append(trial, change.Daemon{Name: t.Routing.Protocol, Interface: iface, Announce: own.Masked(),
			HelloS: t.Routing.HelloS, NoLinkFeedback: !t.Routing.BreaksByLostFrames(),
			HostUnreachable: t.Routing.HostUnreachable, QuickAck: p.Immediate})
	}
	static, err := staticRoutes(plan, t, p, node, iface)
	return run, append(trial, static...), err
}

// HasDaemon tells the routing that a daemon does.
func HasDaemon(r wire.Routing) bool { return r.Protocol != "none" && r.Protocol != "static" }

// transportChanges makes a profile. The congestion control comes when what it
// needs is there, so that it is the first to go; the route comes last, as
// nothing else depends on it.
func transportChanges(p tcp.Profile, own netip.Prefix, iface string) []change.Change {
	var out []change.Change
	for _, s := range p.Settings {
		out = append(out, change.Sysctl{Key: s.Key, Value: s.Value})
	}
	// After tcp_no_metrics_save, from which on nothing is learned.
	out = append(out, change.TCPMetrics{Peers: own.Masked()})
	if p.Program != "" {
		out = append(out, change.BPFCongestion{Program: p.Program})
	}
	if p.HoldRTO {
		out = append(out, change.HeldRTO{Peers: own.Masked(), Reference: p.Reference})
	}
	if p.Window != nil {
		out = append(out, change.WindowClamp{Peers: own.Masked(), Segments: *p.Window})
	}
	out = append(out, change.Sysctl{Key: "net.ipv4.tcp_congestion_control", Value: p.Kernel})
	if p.Immediate {
		// In place of the kernel's own route to the tested network: what comes
		// from there is acknowledged by the route back.
		source := own.Addr()
		out = append(out, change.Route{Destination: own.Masked(), Interface: iface, Source: &source, QuickAck: true})
	}
	return out
}

// TracedFlows are a node's flows of TCP as its sockets show them.
func TracedFlows(flows []wire.Flow, node string) []change.TracedFlow {
	var out []change.TracedFlow
	for _, f := range flows {
		if f.Kind == "iperf3_tcp" && (node == f.Client() || node == f.Server()) {
			out = append(out, change.TracedFlow{Port: f.Port, ClientPort: f.ClientPort, Streams: f.Streams,
				Server: node == f.Server()})
		}
	}
	return out
}
