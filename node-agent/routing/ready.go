package routing

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Missing asks the daemon, and says in words what it lacks of routes to nodes,
// and of a neighbour that hears this node; "" for nothing.
func (w *Watch) Missing(ctx context.Context, routes []netip.Addr, neighbor bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := w.driver.ask(ctx)
	if err != nil {
		return "", err
	}
	return s.missing(routes, neighbor), nil
}

func (s state) missing(routes []netip.Addr, neighbor bool) string {
	var out []string
	for _, to := range routes {
		if !slices.ContainsFunc(s.routes, func(r wire.RouteChange) bool { return leadsTo(r, to) }) {
			out = append(out, "a route to "+to.String())
		}
	}
	if neighbor && !slices.ContainsFunc(s.counts.Neighbors, func(n wire.RoutingNeighbor) bool { return n.Symmetric }) {
		out = append(out, "a neighbour that hears it")
	}
	return strings.Join(out, " and ")
}

func leadsTo(r wire.RouteChange, to netip.Addr) bool {
	p, err := netip.ParsePrefix(r.Destination)
	return err == nil && p.Contains(to)
}
