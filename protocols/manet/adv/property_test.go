package adv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/adv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// variant is one configuration of the protocol, chosen by the seed.
func variant(seed uint64, interfaces []manet.Interface) (c adv.Config, feedback bool) {
	c, feedback = adv.Default(interfaces, seed), true
	switch seed % 5 {
	case 1:
		c.UpdateInterval, c.Spacing = 2*time.Second, 100*time.Millisecond
	case 2:
		feedback = false
	case 3:
		c.ThresholdRise, c.FullAfter = 3, 2
	case 4:
		c.UpdateInterval, c.MissedUpdates, feedback = time.Second, 5, false
	}
	c.FirstSeq = simtest.NearTheEnd(seed / 5)
	return c, feedback
}

var maker = simtest.Variants(variant, adv.New, func(c *adv.Config, seed uint64, _ uint32) { c.Seed = seed })

var protocol = simtest.Protocol{Network: network, Quick: 12}

func network(seed uint64) simtest.Network {
	config, feedback := variant(seed, []manet.Interface{{Address: simulation.Address(0, 0)}})
	return simtest.Network{
		Make: maker(seed), Feedback: feedback, Look: 100 * time.Millisecond,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: simtest.UnrestFor, Reboots: true, OneWay: true},
		Flows:  simtest.RandomFlows, AtRest: simtest.Flows,
		Convergence: config.ConvergenceBound(12), Loop: config.LoopBound(),
		Tables: func(n int) map[string]int {
			return map[string]int{"routes": n, "neighbors": n, "receivers": n, "sources": n, "connections": n,
				"waiting": n,
				"seen":    30 * n * n, "floods": 64}
		},
	}
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables |
//attack:and packets are read strictly, and every table is bounded
func TestHostile(t *testing.T) {
	simtest.Attack(t, variant, adv.New, func(c *adv.Config, seed uint64, entries int) {
		c.Seed, c.MaxEntries = seed, entries
	})
}
