package dsdv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/dsdv"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
	"fieldmesh.dev/fieldmesh/protocols/meshsim/meshtest"
)

// variant is one configuration of the protocol, chosen by the seed.
func variant(seed uint64, interfaces []manet.Interface) (c dsdv.Config, feedback bool) {
	c, feedback = dsdv.Quick(interfaces, seed), true
	switch seed % 5 {
	case 1:
		c = dsdv.Broch(interfaces, seed)
	case 2:
		c.TriggerSequence = false
	case 3:
		feedback = false
	case 4:
		c.MissedPeriods, c.SettlingWeight, feedback = 4, 0.5, false
	}
	// Numbers are about to wrap, by either way of comparing them.
	c.FirstSeq = []uint32{1<<32 - 20, 1<<31 - 20}[seed/5%2]
	return c, feedback
}

var maker = meshtest.Variants(variant, func(c *dsdv.Config, seed uint64) { c.Seed = seed }, dsdv.New)

// unrestFor is how long the simulated network is disturbed.
const unrestFor = 60 * time.Second

var protocol = meshtest.Protocol{Network: network, Quick: 20}

func network(seed uint64) meshtest.Network {
	config, feedback := variant(seed, []manet.Interface{{Address: meshsim.Address(0, 0)}})
	return meshtest.Network{
		Make: maker(seed), Feedback: feedback, Look: 200 * time.Millisecond,
		Unrest: meshsim.Unrest{Every: 2 * time.Second, Until: unrestFor, Reboots: true, OneWay: true},
		Flows:  meshtest.CrossFlows(unrestFor + 60*time.Second), AtRest: meshtest.Pairs,
		Convergence: config.ConvergenceBound(12), Loop: config.LoopBound(),
		Tables: func(n int) map[string]int { return map[string]int{"routes": n, "neighbors": n} },
	}
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
func TestHostile(t *testing.T) {
	attack := meshtest.Hostile{Seeds: 2, Make: meshtest.Variants(variant, func(c *dsdv.Config, seed uint64) {
		c.Seed, c.MaxEntries = seed, 256
	}, dsdv.New), Limit: func(string) int { return 256 }}
	attack.Test(t)
}
