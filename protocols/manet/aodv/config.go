package aodv

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Config is everything that a node is told. RFC3561, LinkLayer and P3 give whole
// sets. Names follow section 10.
type Config struct {
	Interfaces []manet.Interface // the first one's address is the originator's in RREQs
	Seed       uint64
	// FirstSeq is the first own sequence number. The RFC's is 0 (6.13), which
	// after a reboot mixes with numbers from before where routes to the node
	// stay in use. A runner with a clock gives sixteenths of a second of it:
	// RREQs are limited to ten a second, so that a new start is always newer.
	FirstSeq uint32

	ActiveRouteTimeout time.Duration
	NodeTraversalTime  time.Duration
	NetDiameter        int
	RREQRetries        int
	RREQRateLimit      int // a second
	RERRRateLimit      int
	TTLStart           int
	TTLIncrement       int
	TTLThreshold       int
	TimeoutBuffer      int
	LocalAddTTL        int
	DeleteFactor       int // K of DELETE_PERIOD

	Hello            bool // section 6.9; else the link layer's reports are the only sign of a break
	HelloInterval    time.Duration
	AllowedHelloLoss int

	LocalRepair     bool // section 6.12
	Gratuitous      bool // ask for gratuitous RREPs (6.6.3)
	DestinationOnly bool // only the destination may answer
	AckRREPs        bool // ask for RREP-ACKs and blacklist who sends none (6.8)

	// Multipath, where set, makes the node one of AOMDV; package aomdv has the
	// settings that belong to it.
	Multipath *Multipath

	// NS2 has the node search and repair as ns-2 does; see the function NS2.
	NS2 bool

	// QuietStart is how long a node without memory forwards and answers nothing
	// (6.13): DeletePeriod after a reboot, 0 where it is known that nobody
	// remembers the node.
	QuietStart time.Duration
	Jitter     time.Duration // of what is sent to all, against collisions; not in the RFC, 10 ms as in ns-2
	MaxEntries int           // bound of every table against hostile packets
}

// RFC3561 is the configuration with section 10's values and HELLOs. With
// HELLOs TTL_START is 2, as section 10 asks.
func RFC3561(interfaces []manet.Interface, seed uint64) Config {
	c := Config{Interfaces: interfaces, Seed: seed,
		ActiveRouteTimeout: 3 * time.Second, NodeTraversalTime: 40 * time.Millisecond, NetDiameter: 35,
		RREQRetries: 2, RREQRateLimit: 10, RERRRateLimit: 10, TTLStart: 2, TTLIncrement: 2, TTLThreshold: 7,
		TimeoutBuffer: 2, LocalAddTTL: 2, DeleteFactor: 5,
		Hello: true, HelloInterval: time.Second, AllowedHelloLoss: 2,
		LocalRepair: true, Gratuitous: true, Jitter: 10 * time.Millisecond, MaxEntries: 1 << 14}
	c.QuietStart = c.DeletePeriod()
	return c
}

// LinkLayer is RFC3561 with the link layer's reports in place of HELLOs, and a
// TTL_START of 1.
func LinkLayer(interfaces []manet.Interface, seed uint64) Config {
	c := RFC3561(interfaces, seed)
	c.Hello, c.TTLStart = false, 1
	return c
}

// P3 has the parameters of Dyer and Boppana's comparison of TCP over three
// routing protocols: link layer feedback, local repair, an active route timeout
// of 50 s, TTLs of 1, 2 and 7. The rest is the RFC's. All nodes start at once
// there, so that none has to wait for others to forget it.
func P3(interfaces []manet.Interface, seed uint64) Config {
	c := LinkLayer(interfaces, seed)
	c.ActiveRouteTimeout = 50 * time.Second
	c.QuietStart = 0
	return c
}

// NetTraversalTime and what follows are derived as in section 10.
func (c *Config) NetTraversalTime() time.Duration {
	return 2 * c.NodeTraversalTime * time.Duration(c.NetDiameter)
}

func (c *Config) pathDiscoveryTime() time.Duration {
	if c.NS2 {
		return ns2SeenLife
	}
	return 2 * c.NetTraversalTime()
}

func (c *Config) myRouteTimeout() time.Duration {
	if c.NS2 {
		return c.ActiveRouteTimeout
	}
	return 2 * c.ActiveRouteTimeout
}

// reverseLife is how long the route back to who asks lasts at least: section
// 6.5's MinimalLifetime.
func (c *Config) reverseLife(hops int) time.Duration {
	if c.NS2 {
		return ns2ReverseLife
	}
	return 2*c.NetTraversalTime() - 2*time.Duration(hops)*c.NodeTraversalTime
}

func (c *Config) nextHopWait() time.Duration { return c.NodeTraversalTime + 10*time.Millisecond }
func (c *Config) maxRepairTTL() int          { return c.NetDiameter * 3 / 10 }
func (c *Config) blacklistTimeout() time.Duration {
	return time.Duration(c.RREQRetries) * c.NetTraversalTime()
}
func (c *Config) ringTraversalTime(ttl int) time.Duration {
	return 2 * c.NodeTraversalTime * time.Duration(ttl+c.TimeoutBuffer)
}

// DeletePeriod is how long a broken route is remembered.
func (c *Config) DeletePeriod() time.Duration {
	return time.Duration(c.DeleteFactor) * max(c.ActiveRouteTimeout, c.HelloInterval)
}

// DiscoveryBound is how long a discovery takes at most, rate limits apart: all
// rings, then the whole network with growing patience.
func (c *Config) DiscoveryBound() time.Duration {
	if c.NS2 { // each RREQ waits a pause at most, and a pause follows the last
		return ns2Pause * time.Duration(c.RREQRetries+4)
	}
	var total time.Duration
	for ttl := c.TTLStart; ttl <= c.TTLThreshold; ttl += c.TTLIncrement {
		total += c.ringTraversalTime(ttl)
	}
	for try := range c.RREQRetries + 1 {
		total += c.NetTraversalTime() << try
	}
	return total
}

// ConvergenceBound is how long after the topology came to rest a reachable
// destination that data goes to has a route that works, and an unreachable one
// none: what is left over expires, and the discovery that goes on then fails or
// is followed by another.
func (c *Config) ConvergenceBound() time.Duration {
	return c.QuietStart + max(c.myRouteTimeout(), c.blacklistTimeout()) + 2*c.DiscoveryBound()
}

// LoopBound is how long a forwarding loop may last: none forms while the
// readings in README.md hold; one that lost messages let form is found by the
// first packet that comes back without a route, or ends with its routes.
func (c *Config) LoopBound() time.Duration { return c.myRouteTimeout() }

func (c *Config) check() error {
	if len(c.Interfaces) == 0 || len(c.Interfaces) > 32 {
		return fmt.Errorf("configure aodv: %d interfaces, want 1 to 32", len(c.Interfaces))
	}
	for _, i := range c.Interfaces {
		if !i.Address.Is4() {
			return fmt.Errorf("configure aodv: interface %q has address %q, want an IPv4 address", i.Name, i.Address)
		}
	}
	for name, d := range map[string]time.Duration{"active route timeout": c.ActiveRouteTimeout,
		"node traversal time": c.NodeTraversalTime, "hello interval": c.HelloInterval} {
		if d < time.Millisecond || d > time.Hour {
			return fmt.Errorf("configure aodv: %s of %v, want 1ms to 1h", name, d)
		}
	}
	for name, v := range map[string]int{"net diameter": c.NetDiameter, "RREQ rate limit": c.RREQRateLimit,
		"RERR rate limit": c.RERRRateLimit,
		"TTL start":       c.TTLStart, "TTL increment": c.TTLIncrement, "allowed hello loss": c.AllowedHelloLoss,
		"delete factor": c.DeleteFactor} {
		if v < 1 || v > 255 {
			return fmt.Errorf("configure aodv: %s of %d, want 1 to 255", name, v)
		}
	}
	switch {
	case c.RREQRetries < 0 || c.RREQRetries > 10:
		return fmt.Errorf("configure aodv: %d retries, want 0 to 10", c.RREQRetries)
	case c.TTLThreshold < 0 || c.TimeoutBuffer < 0 || c.LocalAddTTL < 0 || c.Jitter < 0 || c.QuietStart < 0:
		return fmt.Errorf("configure aodv: a value below 0")
	case c.Multipath != nil && (c.Multipath.Paths < 1 || c.Multipath.Paths > maxPaths):
		return fmt.Errorf("configure aodv: %d paths, want 1 to %d", c.Multipath.Paths, maxPaths)
	case c.MaxEntries < 16:
		return fmt.Errorf("configure aodv: tables of %d entries are too small", c.MaxEntries)
	}
	return nil
}
