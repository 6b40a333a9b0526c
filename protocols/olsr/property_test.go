package olsr_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
	"fieldmesh.dev/fieldmesh/protocols/olsr"
)

var onlySeed = flag.Uint64("seed", 0, "run the property tests with this seed only")

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	626, // a TC that refreshed tuples expired but not yet swept away left routes as they were
}

// How many seeds the unit test and the long form run.
const (
	quickSeeds = 40
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

// variant is one configuration of the protocol, chosen by the seed.
func variant(seed uint64, interfaces []manet.Interface) olsr.Config {
	c := olsr.RFC3626(interfaces, seed)
	switch seed % 6 {
	case 1:
		c.Hysteresis = true
	case 2:
		c.LinkFailures, c.TriggeredTC, c.TriggeredHello = true, true, true
	case 3:
		c.TCRedundancy, c.MPRCoverage = 1, 2
	case 4:
		c.ETX, c.TCRedundancy, c.MPRCoverage = true, 2, 7
		c.NeighborHold, c.TopologyHold = 20*time.Second, 30*time.Second
	case 5:
		c.TCRedundancy = 2
		c.Willingness = uint8(1 + interfaces[0].Address.As4()[3]%7)
	}
	return c
}

func maker(variantSeed uint64) meshsim.Maker {
	return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		c := variant(variantSeed, interfaces)
		c.Seed = seed
		return olsr.New(c)
	}
}

// rough is a radio that loses, doubles, delays and cuts packets.
func rough() meshsim.Radio {
	r := meshsim.DefaultRadio()
	r.Loss, r.Duplicate, r.Delay, r.Truncate = 0.1, 0.1, 0.1, 0.02
	return r
}

// unrestFor is how long the simulated network is disturbed.
const unrestFor = 40 * time.Second

// simulate disturbs a network, lets it rest, and checks the properties. It
// returns how long the longest loop lasted.
func simulate(seed uint64) (time.Duration, error) {
	r := rand.New(rand.NewPCG(seed, 9))
	config := variant(seed, []manet.Interface{{Address: meshsim.Address(0, 0)}})
	sim, err := meshsim.New(meshsim.Config{Seed: seed, Nodes: 4 + r.IntN(9), Radio: rough(), Make: maker(seed), Feedback: true})
	if err != nil {
		return 0, err
	}
	sim.Disturb(seed, meshsim.Unrest{Every: 2 * time.Second, Until: unrestFor, Reboots: true, OneWay: true})
	watch := sim.WatchLoops(200 * time.Millisecond)
	for i := range 3 { // traffic, so that the link layer has something to report
		sim.Flow(i, sim.Nodes()-1-i, 200, 500*time.Millisecond, 10*time.Second, unrestFor+60*time.Second)
	}
	sim.At(unrestFor, func() {
		calm := rough()
		calm.Loss, calm.Truncate = 0, 0 // late and doubled packets stay
		if config.Hysteresis {
			calm.Delay = 0 // which takes a late packet for a lost one, as section 14.3 has it
		}
		sim.SetRadio(calm)
	})
	rest := unrestFor + config.ConvergenceBound()
	for _, at := range []time.Duration{rest, rest + 7*time.Second, rest + 20*time.Second} {
		if err := sim.Run(at); err != nil {
			return 0, err
		}
		if err := sim.CheckPairs(); err != nil {
			return 0, fmt.Errorf("at %v, %v after the network came to rest: %w", at, at-unrestFor, err)
		}
	}
	if bound := config.StateBound(); watch.Worst > bound {
		return 0, fmt.Errorf("a loop outlived the bound of %v: %s", bound, watch.Report)
	}
	return watch.Worst, bounded(sim)
}

// bounded checks that tables are no larger than the network explains.
func bounded(sim *meshsim.Sim) error {
	n := sim.Nodes()
	for i := range n {
		sizes := sim.State(i).TableSizes
		for table, limit := range map[string]int{"links": n, "neighbors": n, "selectors": n, "topology": n, "routes": n,
			"two_hop": n * n, "topology_edges": n * n, "duplicates": n * 30, "outbox_bytes": 1500} {
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

// TestHostile throws bytes and altered copies of real packets at nodes: none
// panics, none grows without bound.
func TestHostile(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		r := rand.New(rand.NewPCG(seed, 4))
		sim, err := meshsim.New(meshsim.Config{Seed: seed, Nodes: 6, Radio: rough(), Make: func(_ int, i []manet.Interface, s uint64) (manet.Node, error) {
			c := variant(seed, i)
			c.Seed, c.MaxEntries = s, 256
			return olsr.New(c)
		}})
		if err != nil {
			t.Fatal(err)
		}
		sim.Grid(3)
		var seen [][]byte
		sim.OnPacket = func(_ int, s manet.Send) {
			if len(seen) < 500 {
				seen = append(seen, s.Data)
			}
		}
		var attack func()
		attack = func() {
			for range 20 {
				sim.Inject(r.IntN(6), hostile(r, seen))
			}
			sim.At(sim.Now()+20*time.Millisecond, attack)
		}
		sim.At(5*time.Second, attack)
		if err := sim.Run(30 * time.Second); err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			for table, size := range sim.State(i).TableSizes {
				if limit := map[bool]int{true: 256 * 256, false: 20 * 256}[table == "duplicates"]; size > limit {
					t.Errorf("seed %d: node %d has %d entries in table %s", seed, i, size, table)
				}
			}
		}
	}
}

// hostile makes a packet of noise, or alters a few bytes of a real one.
func hostile(r *rand.Rand, seen [][]byte) manet.Packet {
	p := manet.Packet{From: meshsim.Address(r.IntN(40), 0)}
	if len(seen) == 0 || r.IntN(4) == 0 {
		p.Data = make([]byte, r.IntN(200))
		for i := range p.Data {
			p.Data[i] = byte(r.Uint32())
		}
		return p
	}
	p.Data = append([]byte(nil), seen[r.IntN(len(seen))]...)
	for range 1 + r.IntN(4) {
		p.Data[r.IntN(len(p.Data))] = byte(r.Uint32())
	}
	if len(p.Data) >= 2 { // let the length be right, so that more of it is read
		p.Data[0], p.Data[1] = byte(len(p.Data)>>8), byte(len(p.Data))
	}
	return p
}
