package dsr_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/dsr"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
)

var onlySeed = flag.Uint64("seed", 0, "run the property tests with this seed only")

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	16, // a packet that its next hop did not get was sent to an address of nonsense
}

// How many seeds the unit test and the long form run.
const (
	quickSeeds = 24
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

// variant is one configuration of the protocol, chosen by the seed. Links are
// believed in for a minute at most, so that a simulation ends.
func variant(seed uint64, i manet.Interface) dsr.Config {
	c := dsr.RFC4728(i, seed)
	c.RouteCacheTimeout = time.Minute
	switch seed % 6 {
	case 1:
		c.CachedReplies = false
	case 2:
		c.Maintenance = dsr.NetworkAcks
	case 3:
		c.Maintenance = dsr.PassiveAcks
	case 4:
		c.Salvaging, c.Shortening = false, false
	case 5:
		c.Maintenance, c.CachedReplies = dsr.PassiveAcks, false
	}
	return c
}

func maker(variantSeed uint64) meshsim.Maker {
	return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		c := variant(variantSeed, interfaces[0])
		c.Seed = seed
		return dsr.New(c)
	}
}

// rough is a radio that loses, doubles, delays, cuts and damages packets.
func rough() meshsim.Radio {
	r := meshsim.DefaultRadio()
	r.Loss, r.Duplicate, r.Delay, r.Truncate, r.Flip = 0.1, 0.1, 0.1, 0.02, 0.01
	return r
}

// unrestFor is how long the simulated network is disturbed.
const unrestFor = 60 * time.Second

// simulate disturbs a network with traffic, lets it rest, and checks the
// properties.
func simulate(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 9))
	config := variant(seed, manet.Interface{Address: meshsim.Address(0, 0)})
	n := 4 + r.IntN(9)
	sim, err := meshsim.New(meshsim.Config{Seed: seed, Nodes: n, Radio: rough(), Make: maker(seed), Carrier: true,
		Feedback: config.Maintenance == dsr.LinkLayer, Promiscuous: config.Shortening})
	if err != nil {
		return err
	}
	sim.Disturb(seed, meshsim.Unrest{Every: 2 * time.Second, Until: unrestFor, Reboots: true, OneWay: true, Mend: true})
	rest := unrestFor + config.ConvergenceBound()
	end := rest + 30*time.Second
	var flows [][2]int
	for range 6 {
		if a, b := r.IntN(n), r.IntN(n); a != b {
			flows = append(flows, [2]int{a, b})
			sim.Flow(a, b, 200, 250*time.Millisecond, time.Duration(r.IntN(20))*time.Second, end)
		}
	}
	sim.At(unrestFor, func() {
		calm := rough()
		calm.Loss, calm.Truncate, calm.Flip = 0, 0, 0 // doubled packets stay
		if config.Maintenance != dsr.LinkLayer {
			calm.Delay = 0 // by more than an acknowledgement is waited for: to these a link that comes and goes
		}
		sim.SetRadio(calm)
	})
	arrived := map[[2]int]int{}
	sim.OnDelivered = func(p *meshsim.Packet) {
		if p.Sent >= rest {
			for _, f := range flows {
				if p.Source == meshsim.Address(f[0], 0) && p.Destination == meshsim.Address(f[1], 0) {
					arrived[f]++
				}
			}
		}
	}
	if err := sim.Run(end + 2*time.Second); err != nil {
		return err
	}
	if sim.Data.HopsMax > int64(config.LoopBound()) {
		return fmt.Errorf("a packet went over %d hops, more than %d", sim.Data.HopsMax, config.LoopBound())
	}
	if err := checkFlows(sim, flows, arrived, int((end-rest)/(250*time.Millisecond))); err != nil {
		return fmt.Errorf("%v after the network came to rest: %w", rest-unrestFor, err)
	}
	return bounded(sim, config)
}

// checkFlows: what is sent to a destination that can be reached arrives; to one
// that cannot there is no route.
func checkFlows(sim *meshsim.Sim, flows [][2]int, arrived map[[2]int]int, sent int) error {
	part := sim.Components()
	for _, f := range flows {
		if part[f[0]] == part[f[1]] {
			if arrived[f] < sent-1 {
				return fmt.Errorf("of %d packets from node %d to node %d %d arrived", sent, f[0], f[1], arrived[f])
			}
			continue
		}
		for _, route := range sim.State(f[0]).Routes {
			if route.Destination.Addr() == meshsim.Address(f[1], 0) {
				return fmt.Errorf("node %d has a route to node %d, which it cannot reach, over %v", f[0], f[1], route.NextHop)
			}
		}
	}
	return nil
}

// bounded checks that tables are no larger than the network explains.
func bounded(sim *meshsim.Sim, c dsr.Config) error {
	n := sim.Nodes()
	for i := range n {
		sizes := sim.State(i).TableSizes
		for table, limit := range map[string]int{"links": 4 * n * n, "nodes": 4 * n, "chosen": 4 * n, "lost": 4 * n * n, "buffer": c.SendBuffer,
			"requests": 4 * n, "heard": 4 * n, "gratuitous": n * n, "blacklist": n, "hops": 4 * n, "held": c.RexmtBufferSize + 4*n,
			"flows": 4 * n * n, "delayed": 64} {
			if sizes[table] > limit {
				return fmt.Errorf("node %d of %d has %d entries in table %s", i, n, sizes[table], table)
			}
		}
	}
	return nil
}

func runSeeds(t *testing.T, all []uint64) {
	for _, seed := range all {
		if err := simulate(seed); err != nil {
			t.Errorf("seed %d (go test -run '^%s$' -seed %d): %v", seed, t.Name(), seed, err)
		}
	}
}

func TestProperties(t *testing.T) { runSeeds(t, seeds(t, quickSeeds)) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("the long form runs with FIELDMESH_SOAK set")
	}
	runSeeds(t, seeds(t, soakSeeds))
}
