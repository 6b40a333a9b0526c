package olsr_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/olsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	626, // a TC that refreshed tuples expired but not yet swept away left routes as they were
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

func maker(variantSeed uint64) simulation.Maker {
	return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		c := variant(variantSeed, interfaces)
		c.Seed = seed
		return olsr.New(c)
	}
}

// unrestFor is how long the simulated network is disturbed.
const unrestFor = 40 * time.Second

var protocol = simtest.Protocol{Network: network, Failed: seedsThatFailed, Quick: 40}

func network(seed uint64) simtest.Network {
	config := variant(seed, []manet.Interface{{Address: simulation.Address(0, 0)}})
	return simtest.Network{
		Make: maker(seed), Feedback: true, Look: 200 * time.Millisecond,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: unrestFor, Reboots: true, OneWay: true},
		Flows:  simtest.CrossFlows(unrestFor + 60*time.Second), AtRest: simtest.Pairs,
		Calm: func(r *simulation.Radio) {
			if config.Hysteresis {
				r.Delay = 0 // which takes a late packet for a lost one, as section 14.3 has it
			}
		},
		Convergence: config.ConvergenceBound(), Loop: config.StateBound(),
		Tables: func(n int) map[string]int {
			return map[string]int{"links": n, "neighbors": n, "selectors": n, "topology": n, "routes": n,
				"two_hop": n * n, "topology_edges": n * n, "duplicates": n * 30, "outbox_bytes": 1500}
		},
	}
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostile(t *testing.T) {
	attack := simtest.Hostile{Seeds: 6, Make: func(variantSeed uint64) simulation.Maker {
		return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
			c := variant(variantSeed, interfaces)
			c.Seed, c.MaxEntries = seed, 256
			return olsr.New(c)
		}
	}, Repair: func(data []byte) {
		if len(data) >= 2 {
			data[0], data[1] = byte(len(data)>>8), byte(len(data))
		}
	}, Limit: func(table string) int {
		if table == "duplicates" {
			return 256 * 256
		}
		return 20 * 256
	}}
	attack.Test(t)
}
