package aodv_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
)

var onlySeed = flag.Uint64("seed", 0, "run the property tests with this seed only")

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	741,  // a loop of routes from before and after the destination's reboot
	782,  // a relay that looked for the same destination itself did not tell that it had no route
	450,  // a neighbour that never sent a HELLO was never missed
	2077, // a loop, as 741
	6346, // a relay dropped the RREP that its better route made needless, and the originator waited for ever
	5223, // a loop over a node that learned, after a reboot, of a way that went over itself before
	335,  // a HELLO left out for an RREQ just sent made a silence of two intervals
	7239, // a radio that delivered data over a link without a way back for RERRs
}

// How many seeds the unit test and the long form run.
const (
	quickSeeds = 36
	soakSeeds  = 10000
)

func seeds(t *testing.T, count int) []uint64 {
	t.Helper()
	if *onlySeed != 0 {
		return []uint64{*onlySeed}
	}
	out := append([]uint64(nil), seedsThatFailed...)
	for i := range count {
		out = append(out, uint64(i+1))
	}
	return out
}

// variant is one configuration of the protocol, chosen by the seed. Reboots
// need the quiet start, which is too long where routes last 50 s.
func variant(seed uint64, interfaces []manet.Interface) (c aodv.Config, reboots bool) {
	switch seed % 6 {
	case 1:
		return aodv.LinkLayer(interfaces, seed), true
	case 2:
		return aodv.P3(interfaces, seed), false
	case 3:
		c = aodv.LinkLayer(interfaces, seed)
		c.AckRREPs = true
	case 4:
		c = aodv.LinkLayer(interfaces, seed)
		c.LocalRepair, c.DestinationOnly = false, true
	case 5:
		c = aodv.RFC3561(interfaces, seed)
		c.Gratuitous, c.LocalRepair = false, false
	default:
		c = aodv.RFC3561(interfaces, seed)
	}
	return c, true
}

func maker(variantSeed uint64) meshsim.Maker {
	boots := map[int]uint32{}
	return func(node int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		c, _ := variant(variantSeed, interfaces)
		c.Seed = seed
		boots[node]++
		c.FirstSeq = 1<<31 - 100 + boots[node]*16*60 // as from a clock, about to wrap
		return aodv.New(c)
	}
}

// rough is a radio that loses, doubles, delays and cuts packets.
func rough() meshsim.Radio {
	r := meshsim.DefaultRadio()
	r.Loss, r.Duplicate, r.Delay, r.Truncate = 0.1, 0.1, 0.1, 0.02
	return r
}

// unrestFor is how long the simulated network is disturbed.
const unrestFor = 60 * time.Second

// simulate disturbs a network with traffic, lets it rest, and checks the
// properties. It returns how long the longest loop lasted.
func simulate(seed uint64) (time.Duration, error) {
	r := rand.New(rand.NewPCG(seed, 9))
	config, reboots := variant(seed, []manet.Interface{{Address: meshsim.Address(0, 0)}})
	n := 4 + r.IntN(9)
	// Where there are only HELLOs a link in one direction is a black hole to
	// those who hear it: section 6.8 helps with link layer reports only.
	feedback := !config.Hello
	sim, err := meshsim.New(meshsim.Config{Seed: seed, Nodes: n, Radio: rough(), Make: maker(seed), Feedback: feedback})
	if err != nil {
		return 0, err
	}
	// A node that is heard and does not hear is taken for a neighbour again each
	// time that it asks for a route, so at rest there must be none.
	sim.Disturb(seed, meshsim.Unrest{Every: 2 * time.Second, Until: unrestFor, Reboots: reboots, OneWay: feedback, Mend: true})
	watch := sim.WatchLoops(100 * time.Millisecond)
	rest := unrestFor + config.ConvergenceBound()
	var flows [][2]int
	for range 6 {
		if a, b := r.IntN(n), r.IntN(n); a != b {
			flows = append(flows, [2]int{a, b})
			sim.Flow(a, b, 200, 250*time.Millisecond, time.Duration(r.IntN(20))*time.Second, rest+30*time.Second)
		}
	}
	sim.At(unrestFor, func() {
		calm := rough()
		calm.Loss, calm.Truncate = 0, 0 // late and doubled packets stay
		sim.SetRadio(calm)
	})
	for _, at := range []time.Duration{rest, rest + 7*time.Second, rest + 20*time.Second} {
		if err := sim.Run(at); err != nil {
			return 0, err
		}
		if err := checkFlows(sim, flows); err != nil {
			return 0, fmt.Errorf("at %v, %v after the network came to rest: %w", at, at-unrestFor, err)
		}
	}
	if bound := config.LoopBound(); watch.Worst > bound {
		return 0, fmt.Errorf("a loop outlived the bound of %v: %s", bound, watch.Report)
	}
	return watch.Worst, bounded(sim, config)
}

// checkFlows: a destination that can be reached is, over routes that work; to
// one that cannot there is no route.
func checkFlows(sim *meshsim.Sim, flows [][2]int) error {
	part := sim.Components()
	for _, f := range flows {
		hops, err := sim.Path(f[0], f[1])
		if part[f[0]] == part[f[1]] && err != nil {
			return err
		}
		if part[f[0]] != part[f[1]] && sim.HasRoute(f[0], f[1]) {
			return fmt.Errorf("node %d has a route to node %d, which it cannot reach (%d hops, %v)", f[0], f[1], hops, err)
		}
	}
	return nil
}

// bounded checks that tables are no larger than the network explains.
func bounded(sim *meshsim.Sim, c aodv.Config) error {
	n := sim.Nodes()
	requests := int(c.NetTraversalTime()*2/time.Second+1) * c.RREQRateLimit * n
	for i := range n {
		sizes := sim.State(i).TableSizes
		for table, limit := range map[string]int{"routes": n, "discoveries": n, "blacklist": n, "watched": n, "awaited": n,
			"answered": n, "precursors": n * n, "seen": requests, "delayed": 64} {
			if sizes[table] > limit {
				return fmt.Errorf("node %d of %d has %d entries in table %s", i, n, sizes[table], table)
			}
		}
		if held := sim.Stats(i).HeldMax; held > 64 {
			return fmt.Errorf("node %d held %d packets", i, held)
		}
	}
	return nil
}

func runSeeds(t *testing.T, all []uint64) {
	var worst time.Duration
	var of uint64
	for _, seed := range all {
		loop, err := simulate(seed)
		if err != nil {
			t.Errorf("seed %d (go test -run '^%s$' -seed %d): %v", seed, t.Name(), seed, err)
		}
		if loop > worst {
			worst, of = loop, seed
		}
	}
	t.Logf("%d seeds; the longest loop lasted %v (seed %d)", len(all), worst, of)
}

func TestProperties(t *testing.T) { runSeeds(t, seeds(t, quickSeeds)) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("the long form runs with FIELDMESH_SOAK set")
	}
	runSeeds(t, seeds(t, soakSeeds))
}
