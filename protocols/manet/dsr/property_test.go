package dsr_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

// seedsThatFailed are simulations that once found a bug.
var seedsThatFailed = []uint64{
	16, // a packet that its next hop did not get was sent to an address of nonsense
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

func maker(variantSeed uint64) simulation.Maker {
	return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		c := variant(variantSeed, interfaces[0])
		c.Seed = seed
		return dsr.New(c)
	}
}

var protocol = simtest.Protocol{Network: network, Failed: seedsThatFailed, Quick: 18}

func network(seed uint64) simtest.Network {
	config := variant(seed, manet.Interface{Address: simulation.Address(0, 0)})
	seen := arrivals{config: config, sent: map[string][]manet.Time{}}
	return simtest.Network{
		Make: maker(seed), Feedback: config.Maintenance == dsr.LinkLayer, Carrier: true, Look: time.Second,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: simtest.UnrestFor, Reboots: true, OneWay: true,
			Mend: true},
		Flows: func(r *rand.Rand, sim *simulation.Sim, rest manet.Time) [][2]int {
			sim.OnDelivered = seen.note
			return simtest.RandomFlows(r, sim, rest)
		},
		Calm: func(r *simulation.Radio) {
			if config.Maintenance != dsr.LinkLayer {
				r.Delay = 0 // by more than an acknowledgement is waited for: to these a link that comes and goes
			}
		},
		AtRest: seen.check, Convergence: config.ConvergenceBound(),
		Tables: func(n int) map[string]int {
			return map[string]int{"links": n * n, "nodes": n, "chosen": 2 * n, "lost": n * n, "ways": n,
				"buffer": config.SendBuffer, "requests": n,
				"heard": n, "gratuitous": n * n, "blacklist": n, "hops": n, "held": config.RexmtBufferSize + n,
				"flows": n * n, "delayed": 64}
		},
	}
}

// arrivals are when the packets that arrived had been sent, by flow. Data is
// what reports whether a source-routed protocol works: it installs no routes.
type arrivals struct {
	config dsr.Config
	sent   map[string][]manet.Time
}

// pathNetwork is one of nodes with ns-2's cache of paths. It promises less: nothing
// bounds how long what is stale is answered with.
func pathNetwork(seed uint64) simtest.Network {
	config := dsr.NS2(manet.Interface{Address: simulation.Address(0, 0)}, seed)
	makeNode := func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
		return dsr.New(dsr.NS2(i[0], seed))
	}
	return simtest.Network{
		Make:     makeNode,
		Feedback: true, Carrier: true, Look: time.Second,
		Unrest: simulation.Unrest{Every: 2 * time.Second, Until: simtest.UnrestFor, Reboots: true, OneWay: true,
			Mend: true},
		Flows: simtest.RandomFlows, Convergence: 2 * time.Minute,
		AtRest: func(sim *simulation.Sim, _ [][2]int) error {
			if sim.Data.HopsMax > int64(config.LoopBound()) {
				return fmt.Errorf("a packet went over %d hops, more than %d", sim.Data.HopsMax, config.LoopBound())
			}
			if sim.Data.Delivered == 0 {
				return fmt.Errorf("of %d packets none arrived", sim.Data.Sent)
			}
			return nil
		},
		Tables: func(n int) map[string]int {
			return map[string]int{"primary": config.Paths.Primary, "secondary": config.Paths.Secondary, "ways": n,
				"buffer": config.SendBuffer, "requests": n, "heard": n, "gratuitous": n * n, "hops": n, "flows": n * n,
				"delayed": 64}
		},
	}
}

// TestPathProperties is TestProperties over a cache of paths.
func TestPathProperties(t *testing.T) {
	(&simtest.Protocol{Network: pathNetwork, Quick: 4}).Properties(t)
}

func key(from, to any) string { return fmt.Sprint(from, to) }

func (a *arrivals) note(p *simulation.Packet) {
	k := key(p.Source, p.Destination)
	a.sent[k] = append(a.sent[k], p.Sent)
}

// check: what was sent lately to a destination that can be reached has arrived;
// to one that cannot there is no route; no packet went round.
func (a *arrivals) check(sim *simulation.Sim, flows [][2]int) error {
	const window, late = 5 * time.Second, 2 * time.Second
	if sim.Data.HopsMax > int64(a.config.LoopBound()) {
		return fmt.Errorf("a packet went over %d hops, more than %d", sim.Data.HopsMax, a.config.LoopBound())
	}
	part := sim.Components()
	for _, f := range flows {
		from, to := simulation.Address(f[0], 0), simulation.Address(f[1], 0)
		arrived := 0
		for _, at := range a.sent[key(from, to)] {
			if at >= sim.Now()-window-late && at < sim.Now()-late {
				arrived++
			}
		}
		if want := int(window / (250 * time.Millisecond)); part[f[0]] == part[f[1]] && arrived < want {
			return fmt.Errorf("of %d packets from node %d to node %d %d arrived", want, f[0], f[1], arrived)
		}
		for _, route := range sim.State(f[0]).Routes {
			if part[f[0]] != part[f[1]] && route.Destination.Addr() == to {
				return fmt.Errorf("node %d has a route to node %d, which it cannot reach, over %v", f[0], f[1],
					route.NextHop)
			}
		}
	}
	return nil
}

func TestProperties(t *testing.T) { protocol.Properties(t) }

// TestSoakProperties is the long form.
func TestSoakProperties(t *testing.T) { protocol.SoakProperties(t) }

// TestHostile throws bytes and altered copies of real packets at nodes. Lengths
// of the IP header and of the options are made right, so that more is read.
//
//attack:air routing packets that are made up or broken, by the thousand, to end a daemon or to fill its tables
func TestHostile(t *testing.T) {
	const entries = 256
	attack := simtest.Hostile{Seeds: 6, Carrier: true,
		Make: func(variantSeed uint64) simulation.Maker {
			return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
				c := variant(variantSeed, interfaces[0])
				if variantSeed%3 == 0 {
					c = dsr.NS2(interfaces[0], seed)
				}
				c.Seed, c.MaxEntries = seed, entries
				return dsr.New(c)
			}
		},
		Repair: func(data []byte) {
			if len(data) >= 24 {
				data[0], data[9] = 0x45, dsr.Protocol
				binary.BigEndian.PutUint16(data[2:], uint16(len(data)))
				data[21] &= 0x7f
			}
		},
		Limit: func(string) int { return entries }}
	attack.Test(t)
}
