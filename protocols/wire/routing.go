package wire

// RoutingProtocols lists what a plan may name as a trial's routing protocol:
// no daemon, those that are installed beside the agent, and the agent's own.
func RoutingProtocols() []string {
	return []string{"none", "static", "babeld", "olsrd", "olsr", "olsr-etx", "aodv", "aodv-p3", "dsr", "dsdv", "aomdv", "adv"}
}

// RouteChange is a change of the kernel's route to one destination, or, with
// action present, a route that is there as the trial is armed. What only the
// routing daemon knows is absent where it does not tell.
type RouteChange struct {
	Action      string   `json:"action"`     // present | set | delete
	AtBootNs    int64    `json:"at_boot_ns"` // when it happened, by this node's clock
	Destination string   `json:"destination"`
	NextHops    []string `json:"next_hops,omitempty"` // best first; absent with delete. A destination on the link is its own next hop
	Hops        *int     `json:"hops,omitempty"`      // to the destination along the best
	Metric      *float64 `json:"metric,omitempty"`    // the protocol's own, less is better; the kernel's where the daemon does not tell
	Cause       string   `json:"cause,omitempty"`     // the protocol's word for it
}

// RoutingCount is what the routing daemon has done since it began, once a
// second. Bytes of packets are those of IP; those of messages the protocol's.
type RoutingCount struct {
	Protocol        string            `json:"protocol"`
	PacketsSent     *uint64           `json:"packets_sent,omitempty"`
	BytesSent       *uint64           `json:"bytes_sent,omitempty"`
	PacketsReceived *uint64           `json:"packets_received,omitempty"`
	BytesReceived   *uint64           `json:"bytes_received,omitempty"`
	Messages        map[string]uint64 `json:"messages_sent,omitempty"`      // by type
	MessageBytes    map[string]uint64 `json:"message_bytes_sent,omitempty"` // by type
	RoutesInstalled int               `json:"routes_installed"`
	HeldPackets     *uint64           `json:"held_packets,omitempty"` // data packets that wait for a route
	Neighbors       []RoutingNeighbor `json:"neighbors"`
}

// RoutingNeighbor is a node that the routing daemon hears directly.
type RoutingNeighbor struct {
	Addr      string   `json:"addr"`
	Symmetric bool     `json:"symmetric"`
	Cost      *float64 `json:"cost,omitempty"` // of the link, as the protocol measures it: ETX, or babeld's
	Role      string   `json:"role,omitempty"` // mpr | selector | blacklisted
}

// RoutingEvent is something that the routing daemon found worth telling.
type RoutingEvent struct {
	Report   string   `json:"report"`     // discovery_us, discovery_failed, neighbor_lost …
	AtBootNs int64    `json:"at_boot_ns"` // when it happened, by this node's clock
	Addr     string   `json:"addr,omitempty"`
	Value    *float64 `json:"value,omitempty"` // in the unit that Report ends in
	Note     string   `json:"note,omitempty"`
}

// The kinds.
func (*RouteChange) Kind() string  { return "route" }
func (*RoutingCount) Kind() string { return "routing" }
func (*RoutingEvent) Kind() string { return "routing_event" }
