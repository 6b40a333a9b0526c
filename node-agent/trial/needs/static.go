package needs

import (
	"fmt"
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// staticRoutes are a node's part in a chain whose way the plan fixes: from the
// sender by the relays in their order to the receiver. Every node has a route
// to each that is not its neighbour, and forwards. Without relays there is
// nothing to fix.
func staticRoutes(plan wire.RunPlan, t wire.Trial, p tcp.Profile, node, iface string) ([]change.Change, error) {
	chain := slices.Concat([]string{t.Sender}, t.Relays, []string{t.Receiver})
	here := slices.Index(chain, node)
	if t.Routing.Protocol != "static" || len(t.Relays) == 0 || here < 0 {
		return nil, nil
	}
	addresses := map[string]netip.Addr{}
	for _, n := range plan.Nodes {
		prefix, err := netip.ParsePrefix(n.MeshPrefix)
		if err != nil {
			return nil, fmt.Errorf("read address of node %q: %w", n.Name, err)
		}
		addresses[n.Name] = prefix.Addr()
	}
	out := append(change.RouterSysctls(iface, true), change.Forward{Interface: iface})
	own := addresses[node]
	for there, name := range chain {
		next := here + 1
		if there < here {
			next = here - 1
		}
		if there == here || there == next {
			continue
		}
		to, via := addresses[name], addresses[chain[next]]
		out = append(out, change.Route{Destination: netip.PrefixFrom(to, to.BitLen()), Interface: iface,
			Via: &via, Source: &own, QuickAck: p.Immediate})
	}
	return out, nil
}
