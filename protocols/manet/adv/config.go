// Package adv is an adaptive distance vector protocol after Boppana and Konduru
// ("An Adaptive Distance Vector Routing Algorithm for Mobile, Ad Hoc Networks",
// INFOCOM 2001), as a pure state machine: routes are kept to active receivers
// only, and a node tells what it knows when its urge to do so passes a
// threshold that adapts. The paper was not at hand; what others say of it fixes
// the outline, and every reading and constant here is ours, stated in README.md
// and to be set in Config. Sockets, clocks and the buffer of packets that wait
// stay outside.
package adv

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// Port is the UDP port: of the range for private use (RFC 6335 section 6), as
// none is assigned.
const Port = signalling.PortADV

// Weights are what an event adds to a node's urge to send an update.
type Weights struct {
	Buffered float64 // a packet was buffered for lack of a route
	Request  float64 // a neighbour asks for a route that we have
	Broken   float64 // a route broke
	Changed  float64 // a route is new, or its length is
	Number   float64 // a route has a newer number, and that is all
	Load     float64 // factor for a destination that data goes to now
}

// Config is everything that a node is told. Default gives a whole set.
type Config struct {
	distance.Config

	UpdateInterval time.Duration // between full updates, while there is an active receiver
	MissedUpdates  int           // without a packet, after which a neighbour is lost
	Spacing        time.Duration // between any two updates at least
	FullAfter      int           // partial updates, after which the next is a full one

	Weights       Weights
	Threshold     float64 // that the urge has to reach at least
	ThresholdMax  float64
	ThresholdRise float64 // factor of each partial update
	ThresholdFall float64 // factor of each second, down to Threshold

	BufferTimeout     time.Duration // of packets that wait for a route
	ConnectionTimeout time.Duration // without data, after which a connection is over
	InitRetry         time.Duration // between announcements of a connection without a route; doubles up to eight times

	Diameter int           // hops that a flood goes at most
	Jitter   time.Duration // of whatever is sent to all, against collisions
}

// Default is our set; README.md has the reasons. The buffer timeout is that of
// Dyer and Boppana's comparison.
func Default(interfaces []manet.Interface, seed uint64) Config {
	return Config{Config: distance.Config{Interfaces: interfaces, Seed: seed, MaxEntries: 1 << 14},
		UpdateInterval: 5 * time.Second, MissedUpdates: 3, Spacing: 200 * time.Millisecond, FullAfter: 8,
		Weights:   Weights{Buffered: 5, Request: 20, Broken: 20, Changed: 10, Number: 2, Load: 2},
		Threshold: 20, ThresholdMax: 160, ThresholdRise: 1.5, ThresholdFall: 0.5,
		BufferTimeout: 30 * time.Second, ConnectionTimeout: 30 * time.Second, InitRetry: time.Second,
		Diameter: 35, Jitter: 10 * time.Millisecond}
}

// hold is how long a neighbour that is silent counts.
func (c *Config) hold() time.Duration {
	return time.Duration(c.MissedUpdates)*c.UpdateInterval + c.UpdateInterval/4
}

// RouteHold is how long a route is believed without a newer number.
func (c *Config) RouteHold() time.Duration { return c.hold() + c.UpdateInterval }

// forget is how long a broken route is remembered, so that what is older is
// not believed again.
func (c *Config) forget() time.Duration { return 3 * c.RouteHold() }

// receiverHold is how long a receiver counts of which nothing is heard.
func (c *Config) receiverHold() time.Duration { return 2*c.ConnectionTimeout + c.RouteHold() }

// maxBackoff is the most that announcements of a connection are apart.
func (c *Config) maxBackoff() time.Duration { return 8 * c.InitRetry }

// LoopBound is how long a forwarding loop may last. Numbers let none form; one
// that forgetting let form ends when its routes are no longer believed.
func (c *Config) LoopBound() time.Duration { return 2 * c.RouteHold() }

// ConvergenceBound is how long after the topology came to rest a destination
// that data goes to has a route that works, or none where it cannot be reached,
// in a network of so many hops.
func (c *Config) ConvergenceBound(hops int) time.Duration {
	return 2*c.hold() + c.RouteHold() + 2*c.maxBackoff() + time.Duration(hops+1)*(c.UpdateInterval+c.Spacing)
}

func (c *Config) check() error {
	if err := c.Check("adv"); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"update interval": c.UpdateInterval,
		"buffer timeout":     c.BufferTimeout,
		"connection timeout": c.ConnectionTimeout, "retry": c.InitRetry} {
		if d < 100*time.Millisecond || d > time.Hour {
			return fmt.Errorf("configure adv: %s of %v, want 100ms to 1h", name, d)
		}
	}
	switch {
	case c.MissedUpdates < 1 || c.FullAfter < 1 || c.Diameter < 1 || c.Diameter > 255:
		return fmt.Errorf("configure adv: missed updates, partial updates and diameter want 1 or more")
	case c.Spacing < 0 || c.Spacing > c.UpdateInterval || c.Jitter < 0 || c.Jitter > c.UpdateInterval:
		return fmt.Errorf("configure adv: spacing and jitter want 0 to the update interval")
	case c.Threshold <= 0 || c.ThresholdMax < c.Threshold || c.ThresholdRise < 1 || c.ThresholdFall <= 0 ||
		c.ThresholdFall > 1:
		return fmt.Errorf("configure adv: a threshold of %g to %g, rising by %g and falling by %g, makes no sense",
			c.Threshold, c.ThresholdMax, c.ThresholdRise, c.ThresholdFall)
	}
	return nil
}
