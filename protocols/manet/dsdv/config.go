// Package dsdv is Destination-Sequenced Distance-Vector routing as Perkins and
// Bhagwat described it ("Highly Dynamic Destination-Sequenced Distance-Vector
// Routing (DSDV) for Mobile Computers", SIGCOMM 1994), in the reading of CMU's
// for ns-2, as a pure state machine. No standard gives a packet format; ours is
// in README.md. Sockets, clocks and kernel routes stay outside.
package dsdv

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// Port is the UDP port: of the range for private use (RFC 6335 section 6), as
// none is assigned.
const Port = signalling.PortDSDV

// Held is how many data packets for a destination the runner keeps while there
// is no route, until there is one: Broch and others' (1998) and ns-2's number.
const Held = 5

// Config is everything that a node is told. Broch gives a whole set.
type Config struct {
	distance.Config

	Period        time.Duration // between full dumps
	MissedPeriods int           // without a packet, after which a neighbour is lost
	Aggregation   time.Duration // between any dump and an incremental one at least
	// SettlingStart is the settling time of a destination of which nothing is
	// known yet; SettlingWeight is the share that the past keeps in the average.
	SettlingStart  time.Duration
	SettlingWeight float64

	Jitter time.Duration // of whatever is sent, against collisions
}

// Broch is the configuration that Broch, Maltz, Johnson, Hu and Jetcheva used
// ("A Performance Comparison of Multi-Hop Wireless Ad Hoc Network Routing
// Protocols", MobiCom 1998, table 2), which ns-2 took over: the 1994 paper
// gives no values. Periodic updates every 15 s, three missed break a link,
// settling time 6 s at first with a weight of 7/8, updates 1 s apart. Of their
// two readings of what is worth an incremental dump it is ns-2's, new metrics.
func Broch(interfaces []manet.Interface, seed uint64) Config {
	return Config{Config: distance.Config{Interfaces: interfaces, Seed: seed, MaxEntries: 1 << 14},
		Period: 15 * time.Second, MissedPeriods: 3, Aggregation: time.Second, SettlingStart: 6 * time.Second,
		SettlingWeight: 0.875, Jitter: 50 * time.Millisecond}
}

// Quick has periods of 2 s, as OLSR's HELLOs, and the rest in proportion: for
// comparisons at equal intervals.
func Quick(interfaces []manet.Interface, seed uint64) Config {
	return Broch(interfaces, seed).Every(2 * time.Second)
}

// Every is the configuration with another period, and all that goes with it in
// proportion.
func (c Config) Every(period time.Duration) Config {
	share := float64(period) / float64(c.Period)
	c.Aggregation = time.Duration(share * float64(c.Aggregation))
	c.SettlingStart = time.Duration(share * float64(c.SettlingStart))
	c.Period, c.Jitter = period, min(c.Jitter, period/8)
	return c
}

// hold is how long a neighbour that is silent counts.
func (c *Config) hold() time.Duration { return time.Duration(c.MissedPeriods) * c.Period }

// RouteHold is how long a route is believed without a newer number: minutes, as
// one that is put off by the next while it settles may not come for as long.
func (c *Config) RouteHold() time.Duration { return 8 * c.hold() }

// forget is how long a broken route is remembered, so that what is older is
// not believed again.
func (c *Config) forget() time.Duration { return 3 * c.RouteHold() }

// maxSettling bounds the average: an update that settles longer than that is
// no longer one that may still improve.
func (c *Config) maxSettling() time.Duration { return max(c.SettlingStart, c.Period/2) }

// LoopBound is how long a forwarding loop may last. Numbers let none form; one
// that forgetting let form ends when its routes are no longer believed.
func (c *Config) LoopBound() time.Duration { return 2 * c.RouteHold() }

// ConvergenceBound is how long after the topology came to rest all routes are
// right in a network of so many hops: links in one direction are noticed by
// those who hear and told to those who do not, what is left over is no longer
// believed, and a newer number has gone all the way.
func (c *Config) ConvergenceBound(hops int) time.Duration {
	return 2*c.hold() + c.RouteHold() + time.Duration(hops+1)*(c.Period+c.Aggregation+2*c.maxSettling())
}

func (c *Config) check() error {
	if err := c.Check("dsdv"); err != nil {
		return err
	}
	switch {
	case c.Period < 100*time.Millisecond || c.Period > time.Hour:
		return fmt.Errorf("configure dsdv: period of %v, want 100ms to 1h", c.Period)
	case c.MissedPeriods < 1 || c.MissedPeriods > 255:
		return fmt.Errorf("configure dsdv: %d missed periods, want 1 to 255", c.MissedPeriods)
	case c.Aggregation < 0 || c.Aggregation > c.Period || c.SettlingStart < 0 || c.Jitter < 0 || c.Jitter > c.Period:
		return fmt.Errorf("configure dsdv: aggregation, settling time and jitter want 0 to the period")
	case c.SettlingWeight < 0 || c.SettlingWeight >= 1:
		return fmt.Errorf("configure dsdv: settling weight of %g, want 0 or more and below 1", c.SettlingWeight)
	}
	return nil
}
