package dsdv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// variant is one configuration of the protocol, chosen by the seed.
func variant(seed uint64, interfaces []manet.Interface) (c dsdv.Config, feedback bool) {
	c, feedback = dsdv.Quick(interfaces, seed), true
	switch seed % 5 {
	case 1:
		c = dsdv.Broch(interfaces, seed)
	case 2:
		c.SettlingStart = 0
	case 3:
		feedback = false
	case 4:
		c.MissedPeriods, c.SettlingWeight, feedback = 4, 0.5, false
	}
	c.FirstSeq = simtest.NearTheEnd(seed / 5)
	return c, feedback
}

var maker = simtest.Variants(variant, dsdv.New, func(c *dsdv.Config, seed uint64, _ uint32) { c.Seed = seed })

var protocol = simtest.Protocol{Network: network, Quick: 20}

func network(seed uint64) simtest.Network {
	config, feedback := variant(seed, []manet.Interface{{Address: simulation.Address(0, 0)}})
	return simtest.Network{
		Make: maker(seed), Feedback: feedback, Look: 200 * time.Millisecond,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: simtest.UnrestFor, Reboots: true, OneWay: true},
		Flows:  simtest.CrossFlows(simtest.UnrestFor + 60*time.Second), AtRest: simtest.Pairs,
		Convergence: config.ConvergenceBound(12), Loop: config.LoopBound(),
		Tables: func(n int) map[string]int { return map[string]int{"routes": n, "neighbors": n} },
	}
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostile(t *testing.T) {
	simtest.Attack(t, variant, dsdv.New, func(c *dsdv.Config, seed uint64, entries int) {
		c.Seed, c.MaxEntries = seed, entries
	})
}
