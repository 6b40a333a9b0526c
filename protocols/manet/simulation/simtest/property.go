// Package simtest holds what the tests of all routing protocols ask alike:
// properties over seeded simulations, hostile packets, one node whose
// neighbours the test plays, and dissection of what is sent. What a single
// protocol promises stays with that protocol's tests.
package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

var onlySeed = flag.Uint64("seed", 0, "run the property tests with this seed only")

// How many seeds `make test` and the long form run.
const (
	moreSeeds = 200
	soakSeeds = 10000
)

// UnrestFor is how long the simulated network of most protocols is disturbed.
const UnrestFor = 60 * time.Second

// Protocol is what the tests need to know of a protocol.
type Protocol struct {
	// Network is the simulation of a seed: its configuration is the seed's too.
	Network func(seed uint64) Network
	// Failed are seeds that once found a bug; they are always run.
	Failed []uint64
	// Quick is how many seeds the unit test runs.
	Quick int
}

// Network is one simulated network: how it is disturbed, and what it promises
// once it rests.
type Network struct {
	Make     simulation.Maker
	Feedback bool
	Carrier  bool // it carries data itself, and is given what it overhears
	Unrest   simulation.Unrest
	Look     time.Duration // how often loops are looked for
	// Flows are the pairs of nodes between which data goes all the time: r is
	// the seed's. Start begins them.
	Flows func(r *rand.Rand, sim *simulation.Sim, rest manet.Time) [][2]int
	// Calm, where set, changes the radio further once the network rests.
	Calm func(*simulation.Radio)

	Convergence time.Duration // after which, from rest on, AtRest holds
	Loop        time.Duration // how long a forwarding loop may last
	// AtRest says what is wrong: Pairs or Flows, mostly.
	AtRest func(sim *simulation.Sim, flows [][2]int) error
	// Tables are the most entries that each table of a node may have in a
	// network of so many nodes.
	Tables func(nodes int) map[string]int
}

// Variants makes nodes of a protocol by a configuration that a seed chooses.
// change has the last word: it gets the node's seed, and how often the node has
// started.
func Variants[C any, N manet.Node](variant func(seed uint64, interfaces []manet.Interface) (C, bool),
	build func(C) (N, error), change func(c *C, seed uint64, starts uint32)) func(variantSeed uint64) simulation.Maker {
	return func(variantSeed uint64) simulation.Maker {
		starts := map[int]uint32{}
		return func(node int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
			c, _ := variant(variantSeed, interfaces)
			starts[node]++
			change(&c, seed, starts[node])
			return build(c)
		}
	}
}

// OnDemand is a network of a protocol that seeks ways when data needs them. A node that is heard and does not hear is
// taken for a neighbour again each time that it asks for a way, so at rest there must be none; without reports of the
// link layer there are none at all.
func OnDemand(make simulation.Maker, feedback, reboots bool, convergence, loop time.Duration,
	tables func(n int) map[string]int) Network {
	return Network{Make: make, Feedback: feedback, Look: 100 * time.Millisecond,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: UnrestFor, Reboots: reboots, OneWay: feedback,
			Mend: true},
		Flows: RandomFlows, AtRest: Flows, Convergence: convergence, Loop: loop, Tables: tables}
}

// NearTheEnd is a sequence number that is about to wrap, by one or the other way of comparing them.
func NearTheEnd(which uint64) uint32 { return []uint32{1<<32 - 20, 1<<31 - 20}[which%2] }

// Rough is a radio that loses, doubles, delays and cuts packets.
func Rough() simulation.Radio {
	r := simulation.DefaultRadio()
	r.Loss, r.Duplicate, r.Delay, r.Truncate = 0.1, 0.1, 0.1, 0.02
	return r
}

// Simulate makes a simulation with the default radio, which loses nothing.
func Simulate(t *testing.T, c simulation.Config) *simulation.Sim {
	t.Helper()
	c.Radio = simulation.DefaultRadio()
	sim, err := simulation.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

// heldMax is how many data packets a simulated node holds at most.
const heldMax = 64

// simulate disturbs a network with traffic, lets it rest, and checks the
// properties. It returns how long the longest loop lasted.
func (p *Protocol) simulate(seed uint64) (time.Duration, error) {
	r := rand.New(rand.NewPCG(seed, 9))
	c := p.Network(seed)
	sim, err := simulation.New(simulation.Config{Seed: seed, Nodes: 4 + r.IntN(9), Radio: Rough(), Make: c.Make,
		Feedback: c.Feedback,
		HoldMax:  heldMax, Carrier: c.Carrier, Promiscuous: c.Carrier})
	if err != nil {
		return 0, err
	}
	sim.Disturb(seed, c.Unrest)
	watch := sim.WatchLoops(c.Look)
	rest := c.Unrest.Until + c.Convergence
	flows := c.Flows(r, sim, rest)
	sim.At(c.Unrest.Until, func() {
		calm := Rough()
		calm.Loss, calm.Truncate = 0, 0 // late and doubled packets stay
		if c.Calm != nil {
			c.Calm(&calm)
		}
		sim.SetRadio(calm)
	})
	for _, at := range []time.Duration{rest, rest + 7*time.Second, rest + 20*time.Second} {
		if err := sim.Run(at); err != nil {
			return 0, err
		}
		if err := c.AtRest(sim, flows); err != nil {
			return 0, fmt.Errorf("at %v, %v after the network came to rest: %w", at, at-c.Unrest.Until, err)
		}
	}
	if watch.Worst > c.Loop {
		return 0, fmt.Errorf("a loop outlived the bound of %v: %s", c.Loop, watch.Report)
	}
	return watch.Worst, bounded(sim, c.Tables(sim.Nodes()))
}

// RandomFlows begins six flows between random nodes, as an on-demand protocol
// needs to have anything to do.
func RandomFlows(r *rand.Rand, sim *simulation.Sim, rest manet.Time) (flows [][2]int) {
	for range 6 {
		if a, b := r.IntN(sim.Nodes()), r.IntN(sim.Nodes()); a != b {
			flows = append(flows, [2]int{a, b})
			sim.Flow(a, b, 200, 250*time.Millisecond, time.Duration(r.IntN(20))*time.Second, rest+30*time.Second)
		}
	}
	return flows
}

// CrossFlows begins three flows that end after a time, so that the link layer
// has something to report to a proactive protocol.
func CrossFlows(end manet.Time) func(*rand.Rand, *simulation.Sim, manet.Time) [][2]int {
	return func(_ *rand.Rand, sim *simulation.Sim, _ manet.Time) (flows [][2]int) {
		for i := range 3 {
			flows = append(flows, [2]int{i, sim.Nodes() - 1 - i})
			sim.Flow(i, sim.Nodes()-1-i, 200, 500*time.Millisecond, 10*time.Second, end)
		}
		return flows
	}
}

// Pairs: every node that can be reached is, over routes that work; to one that
// cannot there is no route.
func Pairs(sim *simulation.Sim, _ [][2]int) error { return sim.CheckPairs() }

// Flows asks the same of the destinations that data goes to.
func Flows(sim *simulation.Sim, flows [][2]int) error {
	part := sim.Components()
	for _, f := range flows {
		hops, err := sim.Path(f[0], f[1])
		if part[f[0]] == part[f[1]] && err != nil {
			return err
		}
		if part[f[0]] != part[f[1]] && sim.HasRoute(f[0], f[1]) {
			return fmt.Errorf("node %d has a route to node %d, which it cannot reach (%d hops, %v)", f[0], f[1], hops,
				err)
		}
	}
	return nil
}

// bounded checks that tables are no larger than the network explains.
func bounded(sim *simulation.Sim, limits map[string]int) error {
	for i := range sim.Nodes() {
		sizes := sim.State(i).TableSizes
		for table, limit := range limits {
			if sizes[table] > limit {
				return fmt.Errorf("node %d of %d has %d entries in table %s, want at most %d", i, sim.Nodes(),
					sizes[table], table, limit)
			}
		}
		if held := sim.Stats(i).HeldMax; held > heldMax {
			return fmt.Errorf("node %d held %d packets", i, held)
		}
	}
	return nil
}

// Properties runs the seeds of the unit test.
func (p *Protocol) Properties(t *testing.T) { p.run(t, p.Quick) }

// MoreProperties runs those of `make test`.
func (p *Protocol) MoreProperties(t *testing.T) { p.run(t, moreSeeds) }

// SoakProperties is the long form. A number above 1 in FIELDMESH_SOAK is how many
// seeds it has instead.
func (p *Protocol) SoakProperties(t *testing.T) {
	asked := os.Getenv("FIELDMESH_SOAK")
	if asked == "" {
		t.Skip("the long form runs with FIELDMESH_SOAK set")
	}
	count := soakSeeds
	if n, err := strconv.Atoi(asked); err == nil && n > 1 {
		count = n
	}
	p.run(t, count)
}

func (p *Protocol) seeds(count int) []uint64 {
	if *onlySeed != 0 {
		return []uint64{*onlySeed}
	}
	out := append([]uint64(nil), p.Failed...)
	for i := range count {
		out = append(out, uint64(i+1))
	}
	return out
}

func (p *Protocol) run(t *testing.T, count int) {
	var worst time.Duration
	var of uint64
	all := p.seeds(count)
	for _, seed := range all {
		loop, err := p.simulate(seed)
		if err != nil {
			t.Errorf("seed %d (go test -run '^%s$' -seed %d): %v", seed, t.Name(), seed, err)
		}
		if loop > worst {
			worst, of = loop, seed
		}
	}
	t.Logf("%d seeds; the longest loop lasted %v (seed %d)", len(all), worst, of)
}
