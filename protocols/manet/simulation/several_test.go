package simulation_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// forked has one route, to the last node, with several next hops.
type forked struct{ next []manet.Hop }

func (f forked) Handle(_ manet.Time, e manet.Event) []manet.Action {
	if _, ok := e.(manet.Start); !ok || len(f.next) == 0 {
		return nil
	}
	return []manet.Action{manet.SetRoute{Destination: manet.Host(simulation.Address(4, 0)), Next: f.next}}
}

func (f forked) State(manet.Time) manet.State { return manet.State{Protocol: "forked"} }

// TestLoopsOverFurtherNextHops: 0 goes to 1 and 2; 1 on to 4; 2 to 4 or to 3;
// 3 to 4 or back to 2.
func TestLoopsOverFurtherNextHops(t *testing.T) {
	hop := func(nodes ...int) (out []manet.Hop) {
		for _, n := range nodes {
			out = append(out, manet.Hop{Addr: simulation.Address(n, 0)})
		}
		return out
	}
	for _, c := range []struct {
		last []manet.Hop
		seen int
	}{{hop(4, 2), 2}, {hop(4), 0}} {
		routes := [][]manet.Hop{hop(1, 2), hop(4), hop(4, 3), c.last, nil}
		sim, err := simulation.New(simulation.Config{Seed: 1, Nodes: 5, Radio: simulation.DefaultRadio(),
			Make: func(i int, _ []manet.Interface, _ uint64) (manet.Node, error) { return forked{routes[i]}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		watch := sim.WatchLoops(100 * time.Millisecond)
		run(t, sim, 3*time.Second)
		if watch.Seen != c.seen {
			t.Errorf("%d nodes are seen in loops, want %d: %s", watch.Seen, c.seen, watch.Report)
		}
	}
}
