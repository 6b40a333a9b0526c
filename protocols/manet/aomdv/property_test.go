package aomdv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aomdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// variant is one configuration of the protocol, chosen by the seed.
func variant(seed uint64, interfaces []manet.Interface) (c aomdv.Config, feedback bool) {
	c = aomdv.LinkDisjoint(interfaces, seed)
	switch seed % 5 {
	case 1:
		c = aomdv.NodeDisjoint(interfaces, seed)
	case 2:
		c = aomdv.Hello(interfaces, seed)
	case 3:
		c.Multipath.Paths = 5
	case 4:
		c.DestinationOnly, c.AckRREPs = true, true
	}
	return c, !c.Hello // as for AODV: without reports there must be no links in one direction
}

var maker = simtest.Variants(variant, aomdv.New, func(c *aomdv.Config, seed uint64, starts uint32) {
	c.Seed, c.FirstSeq = seed, 1<<31-100+starts*16*60 // as from a clock, about to wrap
})

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	7672,             // a copy of an RREQ made a route over who had learned it from here
	1603, 5063, 5863, // the use of a destination kept ways alive that no data took
}

var protocol = simtest.Protocol{Network: network, Failed: seedsThatFailed, Quick: 20}

func network(seed uint64) simtest.Network {
	config, feedback := variant(seed, []manet.Interface{{Address: simulation.Address(0, 0)}})
	return simtest.OnDemand(maker(seed), feedback, true, config.ConvergenceBound(), config.LoopBound(),
		func(n int) map[string]int {
			requests := int(config.NetTraversalTime()*2/time.Second+1) * config.RREQRateLimit * n
			return map[string]int{"routes": n, "alternates": n * (config.Multipath.Paths - 1), "discoveries": n,
				"blacklist":  n,
				"precursors": n * n, "seen": requests, "copies": requests, "delayed": 64}
		})
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostile(t *testing.T) {
	simtest.Attack(t, variant, aomdv.New, func(c *aomdv.Config, seed uint64, entries int) {
		c.Seed, c.MaxEntries, c.QuietStart = seed, entries, 0
	}, "precursors", "alternates")
}
