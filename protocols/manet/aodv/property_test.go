package aodv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	741,  // a loop of routes from before and after the destination's reboot
	782,  // a relay that looked for the same destination itself did not tell that it had no route
	450,  // a neighbour that never sent a HELLO was never missed
	2077, // a loop, as 741
	6346, // a relay dropped the RREP that its better route made needless, and the originator waited for ever
	5223, // a loop over a node that learned, after a reboot, of a way that went over itself before
	335,  // a HELLO left out for an RREQ just sent made a silence of two intervals
	7239, // a radio that delivered data over a link without a route back for RERRs
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

// ofNS2 is ns-2's, where nobody reboots.
func ofNS2(seed uint64, interfaces []manet.Interface) (c aodv.Config, reboots bool) {
	return aodv.NS2(interfaces, seed), false
}

// configs chooses one by the seed.
type configs func(seed uint64, interfaces []manet.Interface) (c aodv.Config, reboots bool)

var (
	protocol = simtest.Protocol{Network: configs(variant).network, Failed: seedsThatFailed, Quick: 36}
	ns2      = simtest.Protocol{Network: configs(ofNS2).network, Quick: 12}
)

func (choose configs) network(seed uint64) simtest.Network {
	make := simtest.Variants(choose, aodv.New, func(c *aodv.Config, seed uint64, starts uint32) {
		c.Seed, c.FirstSeq = seed, 1<<31-100+starts*16*60 // as from a clock, about to wrap
	})
	config, reboots := choose(seed, []manet.Interface{{Address: simulation.Address(0, 0)}})
	// Where there are only HELLOs a link in one direction is a black hole to
	// those who hear it: section 6.8 helps with link layer reports only.
	feedback := !config.Hello
	return simtest.OnDemand(make(seed), feedback, reboots, config.ConvergenceBound(), config.LoopBound(),
		func(n int) map[string]int {
			requests := int(config.NetTraversalTime()*2/time.Second+1) * config.RREQRateLimit * n
			return map[string]int{"routes": n, "discoveries": n, "blacklist": n, "watched": n, "awaited": n,
				"answered": n, "precursors": n * n, "seen": requests, "delayed": 64, "searches": n}
		})
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

func TestPropertiesOfNS2(t *testing.T) { ns2.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostile(t *testing.T) {
	simtest.Attack(t, variant, aodv.New, func(c *aodv.Config, seed uint64, entries int) {
		c.Seed, c.MaxEntries, c.QuietStart = seed, entries, 0
	}, "precursors")
}
