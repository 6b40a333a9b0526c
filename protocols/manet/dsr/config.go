package dsr

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Maintenance is how a node learns whether the next hop got a packet (8.3).
type Maintenance uint8

// LinkLayer relies on the runner's LinkFailed and Undelivered (8.3.1),
// NetworkAcks asks the next hop for acknowledgements (8.3.3), PassiveAcks
// listens for the next hop's own sending first (8.3.2), and needs a runner that
// gives what is overheard.
const (
	LinkLayer Maintenance = iota
	NetworkAcks
	PassiveAcks
)

// Config is everything that a node is told. RFC4728 gives a whole set. Names
// follow section 9 and appendix A.
type Config struct {
	Interface manet.Interface
	Seed      uint64
	// FirstID is the first Identification of the node's Route Requests, taken
	// from a clock so that a reboot does not repeat recent ones (4.3); 0 draws
	// one from the seed.
	FirstID uint16

	Maintenance   Maintenance
	Paths         *Paths // nil: the link cache of section 4.1
	CachedReplies bool   // answer Route Requests from the cache (3.3.2)
	Shortening    bool   // automatic route shortening by gratuitous replies (3.4.3)
	Salvaging     bool   // 3.4.1
	MaxHops       int    // of a route; the RFC gives no number

	DiscoveryHopLimit     int
	BroadcastJitter       time.Duration
	ReplyHop              time.Duration // H of section 8.2.5, which gives no value
	RouteCacheTimeout     time.Duration // here: the most that a link is believed in
	SendBuffer            int           // packets; the RFC gives no number, ns-2 has 64
	SendBufferTimeout     time.Duration
	RequestTableSize      int
	RequestTableIDs       int
	MaxRequestRexmt       int
	RequestPeriod         time.Duration
	MaxRequestPeriod      time.Duration
	NonpropRequestTimeout time.Duration
	RexmtBufferSize       int
	MaintHoldoffTime      time.Duration
	MaxMaintRexmt         int
	TryPassiveAcks        int
	PassiveAckTimeout     time.Duration
	GratReplyHoldoff      time.Duration
	SpreadErrors          time.Duration // for so long requests report an error (3.4.4, which gives no value)
	// BlacklistTimeout is how long a neighbour is "probable", then as long
	// "questionable" (4.6, which gives no value); 0: there is no blacklist.
	BlacklistTimeout time.Duration

	InitStability       time.Duration // appendix A
	StabilityDecrFactor int
	StabilityIncrFactor int
	MinLifetime         time.Duration
	UseExtends          time.Duration

	MaxEntries int // bound of every other table against hostile packets
}

// MaxSalvageCount is what the four bits of Salvage hold (section 9).
const MaxSalvageCount = 15

// RFC4728 is the configuration with section 9's and appendix A's values, link
// layer feedback and every optional mechanism that needs no flow state.
func RFC4728(i manet.Interface, seed uint64) Config {
	return Config{Interface: i, Seed: seed, Maintenance: LinkLayer, CachedReplies: true, Shortening: true,
		Salvaging: true, MaxHops: MaxHops,
		DiscoveryHopLimit: 255, BroadcastJitter: 10 * time.Millisecond, ReplyHop: 5 * time.Millisecond,
		RouteCacheTimeout: 300 * time.Second, SendBuffer: 64, SendBufferTimeout: 30 * time.Second,
		RequestTableSize: 64, RequestTableIDs: 16, MaxRequestRexmt: 16,
		RequestPeriod: 500 * time.Millisecond, MaxRequestPeriod: 10 * time.Second,
		NonpropRequestTimeout: 30 * time.Millisecond,
		RexmtBufferSize:       50, MaintHoldoffTime: 250 * time.Millisecond, MaxMaintRexmt: 2, TryPassiveAcks: 1,
		PassiveAckTimeout: 100 * time.Millisecond, GratReplyHoldoff: time.Second, SpreadErrors: 3 * time.Second,
		BlacklistTimeout: 3 * time.Second,
		InitStability:    25 * time.Second, StabilityDecrFactor: 2, StabilityIncrFactor: 4, MinLifetime: time.Second,
		UseExtends: 120 * time.Second, MaxEntries: 1 << 12}
}

// NS2 is CMU's DSR for ns-2, with which papers measured (README.md). The
// sizes of the two caches are those of dsr/mobicache.cc; dsr/dsragent.cc spreads an
// error for a second (max_err_hold), holds no reply back, and has no blacklist. The
// rest is the RFC's, whose values that file has too: 500 ms to 10 s between requests,
// 30 ms for the neighbours, 30 s in the Send Buffer, one gratuitous reply a second.
func NS2(i manet.Interface, seed uint64) Config {
	c := RFC4728(i, seed)
	c.Paths = &Paths{Primary: 30, Secondary: 64}
	c.ReplyHop, c.BlacklistTimeout, c.SpreadErrors = 0, 0, time.Second
	c.MaxRequestRexmt = 255 // no end but the Send Buffer's
	return c
}

// MaxHops is the longest route that RFC4728 allows; ns-2 has the same.
const MaxHops = 16

// Room is how many bytes less than the interface's MTU a data packet may have,
// so that it fits with a source route of so many hops and a request for an
// acknowledgement.
func Room(hops int) int { return fixedBytes + 4 + 4*(hops-1) + ackRequestBytes }

// LoopBound is how long a packet may go round: never, on one source route; one
// that is salvaged again and again ends after MaxSalvageCount times, each of
// them at most MaxHops long. It is in hops.
func (c *Config) LoopBound() int { return (MaxSalvageCount + 1) * c.MaxHops }

// ConvergenceBound is how long after the topology came to rest data between two
// nodes arrives if it can: what was believed of the time before has been found
// wrong or has expired, and a discovery, which may just have backed off, was
// tried again.
func (c *Config) ConvergenceBound() time.Duration {
	return c.RouteCacheTimeout + 2*c.MaxRequestPeriod
}

func (c *Config) check() error {
	if !c.Interface.Address.Is4() {
		return fmt.Errorf("configure dsr: interface %q has address %q, want an IPv4 address", c.Interface.Name,
			c.Interface.Address)
	}
	if c.Interface.MTU != 0 && c.Interface.MTU-Room(c.MaxHops) < 576 {
		return fmt.Errorf("configure dsr: routes of %d hops leave %d bytes of an MTU of %d, want 576", c.MaxHops,
			c.Interface.MTU-Room(c.MaxHops), c.Interface.MTU)
	}
	for name, d := range map[string]time.Duration{"route cache timeout": c.RouteCacheTimeout,
		"send buffer timeout": c.SendBufferTimeout,
		"request period":      c.RequestPeriod, "longest request period": c.MaxRequestPeriod,
		"wait for neighbours' answers": c.NonpropRequestTimeout,
		"maintenance hold-off":         c.MaintHoldoffTime, "wait for passive acknowledgements": c.PassiveAckTimeout,
		"initial stability": c.InitStability, "shortest lifetime": c.MinLifetime} {
		if d < time.Millisecond || d > time.Hour {
			return fmt.Errorf("configure dsr: %s of %v, want 1ms to 1h", name, d)
		}
	}
	for name, v := range map[string]int{"hop limit": c.DiscoveryHopLimit, "send buffer": c.SendBuffer,
		"request table":   c.RequestTableSize,
		"identifications": c.RequestTableIDs, "tries of a request": c.MaxRequestRexmt,
		"maintenance buffer": c.RexmtBufferSize,
		"tries of a packet":  c.MaxMaintRexmt, "decrease of stability": c.StabilityDecrFactor,
		"increase of stability": c.StabilityIncrFactor} {
		if v < 1 || v > 255 {
			return fmt.Errorf("configure dsr: %s of %d, want 1 to 255", name, v)
		}
	}
	switch {
	case c.MaxHops < 1 || c.MaxHops > maxAddresses:
		return fmt.Errorf("configure dsr: routes of %d hops, want 1 to %d", c.MaxHops, maxAddresses)
	case c.Paths != nil && (c.Paths.Primary < 1 || c.Paths.Secondary < 1 || c.Paths.Primary > c.MaxEntries ||
		c.Paths.Secondary > c.MaxEntries):
		return fmt.Errorf("configure dsr: caches of %d and %d paths, want 1 to %d", c.Paths.Primary, c.Paths.Secondary,
			c.MaxEntries)
	case c.Paths != nil && c.Maintenance != LinkLayer:
		return fmt.Errorf("configure dsr: a cache of paths relies on the link layer's reports")
	case c.BroadcastJitter < 0 || c.SpreadErrors < 0 || c.ReplyHop < 0 || c.GratReplyHoldoff < 0 ||
		c.BlacklistTimeout < 0 || c.UseExtends < 0 || c.TryPassiveAcks < 0:
		return fmt.Errorf("configure dsr: a value below 0")
	case c.Maintenance > PassiveAcks:
		return fmt.Errorf("configure dsr: no maintenance %d", c.Maintenance)
	case c.MaxEntries < 16:
		return fmt.Errorf("configure dsr: tables of %d entries are too small", c.MaxEntries)
	}
	return nil
}
