package simtest

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// stubborn goes to all others over one neighbour, which goes over it.
type stubborn struct{ node, nodes int }

func (s stubborn) Handle(_ manet.Time, e manet.Event) (out []manet.Action) {
	if _, ok := e.(manet.Start); !ok {
		return nil
	}
	for to := range s.nodes {
		if to != s.node {
			next := simulation.Address(s.node^1, 0)
			out = append(out, manet.SetRoute{Destination: manet.Host(simulation.Address(to, 0)),
				Next: []manet.Hop{{Addr: next}}})
		}
	}
	return out
}

func (s stubborn) State(manet.Time) manet.State {
	return manet.State{TableSizes: map[string]int{"routes": s.nodes}}
}

// TestABadProtocolIsFoundOut: what a protocol does wrong is told, each by its
// own property.
func TestABadProtocolIsFoundOut(t *testing.T) {
	nobody := func(*simulation.Sim, [][2]int) error { return nil }
	for name, c := range map[string]struct {
		change func(*Network)
		want   string
	}{
		"routes": {func(*Network) {}, "after the network came to rest"},
		"flows":  {func(n *Network) { n.AtRest = Flows }, "after the network came to rest"},
		"loops":  {func(n *Network) { n.AtRest = nobody }, "a loop outlived the bound of 1s"},
		"tables": {func(n *Network) { n.AtRest, n.Loop = nobody, time.Hour }, "entries in table routes"},
		"nothing": {func(n *Network) {
			n.AtRest, n.Loop, n.Tables = nobody, time.Hour, func(int) map[string]int { return nil }
		}, ""},
	} {
		p := Protocol{Network: func(uint64) Network {
			n := Network{Look: 100 * time.Millisecond, Unrest: simulation.Unrest{Every: time.Second,
				Until: 5 * time.Second},
				Make: func(node int, _ []manet.Interface, _ uint64) (manet.Node, error) {
					return stubborn{node, 4}, nil
				},
				Flows: RandomFlows, AtRest: Pairs, Loop: time.Second, Convergence: time.Second,
				Tables: func(int) map[string]int { return map[string]int{"routes": 3} }}
			c.change(&n)
			return n
		}}
		var all []string
		for seed := range uint64(5) {
			if _, err := p.simulate(seed); err != nil {
				all = append(all, err.Error())
			}
		}
		if said := strings.Join(all, "\n"); !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}
