package olsr

import (
	"fmt"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Willingness to carry traffic for others: RFC 3626 section 18.8.
const (
	WillNever   = 0
	WillLow     = 1
	WillDefault = 3
	WillHigh    = 6
	WillAlways  = 7
)

// Config is everything that a node is told. RFC3626 and Olsrd give whole sets.
type Config struct {
	Interfaces  []manet.Interface // the first one's address is the main address (section 1.1)
	Networks    []netip.Prefix    // told to others by HNA
	Willingness uint8
	Seed        uint64

	HelloInterval time.Duration
	TCInterval    time.Duration
	MIDInterval   time.Duration
	HNAInterval   time.Duration

	NeighborHold  time.Duration // validity time of HELLO
	TopologyHold  time.Duration // of TC
	MIDHold       time.Duration
	HNAHold       time.Duration
	DuplicateHold time.Duration
	MaxJitter     time.Duration // section 18.2; of every emission and of forwarding

	TCRedundancy int // section 15: 0 selectors; 1 and MPRs; 2 all symmetric neighbours
	MPRCoverage  int // section 16

	Hysteresis     bool // section 14
	HystScaling    float64
	HystHigh       float64
	HystLow        float64
	LinkFailures   bool // section 13: a link layer's report makes a link lost
	ETX            bool // link qualities as olsrd sends them; excludes Hysteresis
	FishEye        bool // olsrd's: most TCs go only 2, 8 or 16 hops far
	TriggeredTC    bool // section 9.3: a TC at once when the advertised set changes
	TriggeredHello bool // section 8.5: a HELLO at once when the MPR set changes

	// RouteDelay is how long changes of the topology are collected before
	// routes are computed again. Changes of the neighbourhood do not wait.
	// In a network that changes all the time they are computed once a
	// RouteInterval.
	RouteDelay    time.Duration
	RouteInterval time.Duration
	// MaxEntries bounds every table against hostile packets; what is beyond is
	// ignored and counted.
	MaxEntries int
}

// RFC3626 is the configuration with the values proposed in section 18.
func RFC3626(interfaces []manet.Interface, seed uint64) Config {
	return Config{
		Interfaces: interfaces, Seed: seed, Willingness: WillDefault,
		HelloInterval: 2 * time.Second, TCInterval: 5 * time.Second, MIDInterval: 5 * time.Second,
		HNAInterval:  5 * time.Second,
		NeighborHold: 6 * time.Second, TopologyHold: 15 * time.Second, MIDHold: 15 * time.Second,
		HNAHold:       15 * time.Second,
		DuplicateHold: 30 * time.Second, MaxJitter: 500 * time.Millisecond,
		MPRCoverage: 1, HystScaling: 0.5, HystHigh: 0.8, HystLow: 0.3,
		RouteDelay: 100 * time.Millisecond, RouteInterval: 500 * time.Millisecond, MaxEntries: 1 << 16,
	}
}

// Olsrd is the configuration that meets olsrd 0.9's defaults on the air: ETX
// ("etx_ff"), fisheye, all symmetric neighbours in TCs, seven MPRs a
// neighbour, and long validity times.
func Olsrd(interfaces []manet.Interface, seed uint64) Config {
	c := RFC3626(interfaces, seed)
	c.NeighborHold, c.TopologyHold, c.MIDHold, c.HNAHold = 20*time.Second, 300*time.Second, 300*time.Second,
		300*time.Second
	c.TCRedundancy, c.MPRCoverage = 2, 7
	c.ETX, c.FishEye = true, true
	return c
}

// FullTC is RFC3626 with every symmetric neighbour in TCs (TC_REDUNDANCY 2,
// section 15). olsrd needs that of all nodes once its ETX is off: its Dijkstra
// follows a link only where the TCs of both of its ends report it.
func FullTC(interfaces []manet.Interface, seed uint64) Config {
	c := RFC3626(interfaces, seed)
	c.TCRedundancy = 2
	return c
}

func (c *Config) check() error {
	if len(c.Interfaces) == 0 || len(c.Interfaces) > 32 {
		return fmt.Errorf("configure olsr: %d interfaces, want 1 to 32", len(c.Interfaces))
	}
	main := c.Interfaces[0].Address
	for _, i := range c.Interfaces {
		if !i.Address.IsValid() || i.Address.Is4() != main.Is4() || i.Address.Is4In6() || i.Address.Zone() != "" {
			return fmt.Errorf("configure olsr: interface %q has address %q; want one of the same family on each",
				i.Name, i.Address)
		}
	}
	for _, n := range c.Networks {
		if !n.IsValid() || n.Addr().Is4() != main.Is4() {
			return fmt.Errorf("configure olsr: network %q is not of the interfaces' family", n)
		}
	}
	for name, d := range map[string]time.Duration{"hello": c.HelloInterval, "tc": c.TCInterval, "mid": c.MIDInterval,
		"hna": c.HNAInterval} {
		if d < 10*time.Millisecond {
			return fmt.Errorf("configure olsr: %s interval %v is below 10 ms", name, d)
		}
	}
	switch {
	case c.Willingness > WillAlways:
		return fmt.Errorf("configure olsr: willingness %d, want 0 to %d", c.Willingness, WillAlways)
	case c.MPRCoverage < 1 || c.TCRedundancy < 0 || c.TCRedundancy > 2:
		return fmt.Errorf("configure olsr: MPR coverage %d or TC redundancy %d out of range", c.MPRCoverage,
			c.TCRedundancy)
	case c.ETX && c.Hysteresis:
		return fmt.Errorf("configure olsr: hysteresis and ETX exclude each other")
	case c.MaxEntries < 16:
		return fmt.Errorf("configure olsr: tables of %d entries are too small", c.MaxEntries)
	case c.MaxJitter < 0 || c.MaxJitter > c.HelloInterval/2:
		return fmt.Errorf("configure olsr: jitter %v, want at most half of the hello interval", c.MaxJitter)
	}
	return nil
}

// StateBound is how long this protocol may act on a state of the network that
// is past: from the last packet over a link, until every node has stopped
// using the link and every other node's word of it. The link times out, the
// next TC tells, or where that is lost the topology times out.
func (c *Config) StateBound() time.Duration {
	return c.NeighborHold + max(c.TopologyHold, 3*c.TCInterval) + c.flood()
}

// ConvergenceBound is how long after the topology came to rest every
// reachable node has a route and every unreachable one has none.
func (c *Config) ConvergenceBound() time.Duration {
	return c.StateBound() + 3*c.HelloInterval + c.TCInterval
}

// flood is the time of a message through a network of 64 hops.
func (c *Config) flood() time.Duration { return 64*c.MaxJitter/4 + max(c.RouteDelay, c.RouteInterval) }
