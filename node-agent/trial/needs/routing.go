package needs

import (
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Routing is what a node's own routing must have before a trial's window may open.
type Routing struct {
	Routes   []netip.Addr // to these nodes
	Neighbor bool         // at least one that hears this node
}

// Nothing reports whether that is nothing.
func (n Routing) Nothing() bool { return len(n.Routes) == 0 && !n.Neighbor }

func (n Routing) String() string {
	if n.Neighbor {
		return "a neighbour"
	}
	var to []string
	for _, a := range n.Routes {
		to = append(to, a.String())
	}
	return "routes to " + strings.Join(to, ", ")
}

// OfRouting is what a node must have in a trial: at a flow's end, a route to the
// other; no more than one neighbour where the plan waits for these only.
func OfRouting(t wire.Trial, node string, meshAddr func(node string) (netip.Addr, error)) (Routing, error) {
	var need Routing
	switch t.Routing.Readiness() {
	case wire.ReadyNeighbors:
		need.Neighbor = true
	case wire.ReadyRoutes:
		for _, f := range t.Traffic {
			other := map[string]string{f.From: f.To, f.To: f.From}[node]
			if other == "" {
				continue
			}
			addr, err := meshAddr(other)
			if err != nil {
				return need, err
			}
			if !slices.Contains(need.Routes, addr) {
				need.Routes = append(need.Routes, addr)
			}
		}
	}
	return need, nil
}
