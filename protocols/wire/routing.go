package wire

import (
	"slices"
	"time"
)

// RoutingProtocols lists what a plan may name as a trial's routing protocol:
// no daemon, those that are installed beside the agent, and the agent's own.
func RoutingProtocols() []string {
	return []string{"none", "static", "babeld", "olsrd", "batman-adv", "olsr", "olsr-etx", "olsr-full", "aodv",
		"aodv-ns2", "aodv-p3", "dsr", "dsr-ns2", "dsdv", "aomdv", "adv"}
}

// What arming may wait for.
const (
	ReadyRoutes    = "routes"    // both ends of every flow have a route to the other
	ReadyNeighbors = "neighbors" // every node hears a neighbour that hears it
	ReadyDaemon    = "daemon"    // the daemons run
)

// RoutingReadiness lists what a plan may have arming wait for.
func RoutingReadiness() []string { return []string{ReadyRoutes, ReadyNeighbors, ReadyDaemon} }

// Bounds of the wait, and what it is where the plan does not say: 18 of OLSR's
// TCs (RFC 3626, 18.2) come in 90 s. DSDV's news goes a hop in 12 s and more, and
// has been seen to take 154 s over five hops, as in ns-2.
const (
	RoutingReadyS    = 90.
	dsdvReadyS       = 240.
	RoutingReadyMaxS = 600.
)

// Bounds of the probes, and the UDP port on which the receiver answers them.
const (
	ProbePort  = 7447
	ProbeHzMin = 1.
	ProbeHzMax = 100.
)

// HoldsData reports whether the routing daemon has a device of its own through
// which data goes, wholly or while there is no route: what it holds or discards
// is not seen on the interface under test.
func (r Routing) HoldsData() bool {
	return !slices.Contains([]string{"", "none", "static", "babeld", "olsrd"}, r.Protocol)
}

// CarriesData reports whether the daemon carries all data in packets of its own
// IP protocol, DSR's.
func (r Routing) CarriesData() bool { return r.Protocol == "dsr" || r.Protocol == "dsr-ns2" }

// OnDemand reports whether the protocol knows nobody before there is data.
func (r Routing) OnDemand() bool {
	return slices.Contains([]string{"aodv", "aodv-ns2", "aodv-p3", "aomdv", "adv", "dsr", "dsr-ns2"}, r.Protocol)
}

// WantsRoutesInUse reports whether the kernel must tell the daemon which routes data
// uses: the protocol lets others go, and does not carry the data itself.
func (r Routing) WantsRoutesInUse() bool { return r.OnDemand() && !r.CarriesData() }

// Overhears reports whether the protocol is given frames that are for other nodes, as
// a card in promiscuous mode gives them. CMU's DSR for ns-2 is.
func (r Routing) Overhears() bool { return r.Protocol == "dsr-ns2" }

// BreaksByLostFrames reports whether a frame that was lost breaks a route. Where the
// plan does not say, it does but for DSDV and OLSR. For DSDV Broch and others (1998, 3.1)
// and ns-2, with which P2 measured (ns-default.tcl: Agent/DSDV set use_mac_ 0), have that
// off, and say that performance suffers with it on: a chain's own collisions take its
// routes away. For OLSR it is an option (RFC 3626, 13), which UM-OLSR for ns-2 has off.
func (r Routing) BreaksByLostFrames() bool {
	if r.LinkFeedback != nil {
		return *r.LinkFeedback
	}
	return !slices.Contains([]string{"dsdv", "olsr", "olsr-etx", "olsr-full"}, r.Protocol)
}

// RoutingKey is a key of a plan's routing that only some protocols have a use for.
type RoutingKey struct {
	Key       string
	Protocols []string
	Else      string // what is so with the others
}

// RoutingKeys lists them. DSR and the simulators' AODV send no hellos, wherever they run, and are defined by the link
// layer's reports; the daemons of others take none. Whether a sender hears that there is no route is for our own
// daemons to say.
func RoutingKeys() []RoutingKey {
	daemons := slices.DeleteFunc(RoutingProtocols(), func(p string) bool { return p == "none" || p == "static" })
	own := slices.DeleteFunc(slices.Clone(daemons), func(p string) bool {
		return p == "batman-adv" || !(Routing{Protocol: p}).HoldsData()
	})
	free := slices.DeleteFunc(slices.Clone(own), func(p string) bool {
		return slices.Contains([]string{"dsr", "dsr-ns2", "aodv-ns2", "aodv-p3"}, p)
	})
	return []RoutingKey{
		{"hello_s", append([]string{"babeld", "olsrd", "batman-adv"}, free...), "which sends no hellos"},
		{"link_feedback", free, "which does not leave the choice"},
		{"ready", daemons, "which has no daemon"},
		{"ready_s", daemons, "which has no daemon"},
		{"host_unreachable", own, "with which the kernel decides it"},
	}
}

// Readiness is what arming waits for: routes where the protocol makes them
// before there is data; neighbours where it keeps those only; otherwise, for it
// knows nobody before data comes, no more than that the daemons run.
func (r Routing) Readiness() string {
	switch {
	case r.Ready != "":
		return r.Ready
	case slices.Contains([]string{"babeld", "olsrd", "olsr", "olsr-etx", "olsr-full", "dsdv"}, r.Protocol):
		return ReadyRoutes
	case r.Protocol == "batman-adv": // which knows hardware addresses only, until there is data
		return ReadyNeighbors
	}
	return ReadyDaemon
}

// Futile is the key of a plan for which arming would wait in vain, or not at all; why,
// and what is allowed.
func (r Routing) Futile() (key, why, allowed string) {
	switch {
	case r.Readiness() != ReadyDaemon && r.OnDemand():
		return "ready", "with protocol " + r.Protocol + ", which knows nobody before there is data, so that arming " +
			"would wait in vain", "daemon, or leave it out; in a factor, say ready with the protocols that have it"
	case r.Readiness() == ReadyDaemon:
		return "ready_s", "where arming waits for no more than the daemon", "leave it out, or ready: neighbors or " +
			"routes, where the protocol has them before there is data"
	}
	return "", "", ""
}

// ReadyLimit is how long arming waits for routing at most.
func (r Routing) ReadyLimit() time.Duration {
	if r.Readiness() == ReadyDaemon {
		return 0
	}
	limit := RoutingReadyS
	switch {
	case r.ReadyS != nil:
		limit = *r.ReadyS
	case r.Protocol == "dsdv":
		limit = dsdvReadyS
	}
	return time.Duration(limit * float64(time.Second))
}

// RouteChange is a change of the kernel's route to one destination, or a route that was there as the trial was armed.
//
// Action present is of the latter. What only the routing daemon knows is absent where it does not tell.
type RouteChange struct {
	Action      string `json:"action" redact:"keep"`                   // present | set | delete
	AtBootNs    int64  `json:"at_boot_ns" unit:"ns"`                   // when it happened, boot clock
	Destination string `json:"destination" influx:"tag" redact:"keep"` // the route's prefix
	// best first; absent with delete
	//
	// A destination on the link is its own next hop.
	NextHops []string `json:"next_hops,omitempty" redact:"keep"`
	Hops     *int     `json:"hops,omitempty" unit:"hops"` // to the destination along the best next hop
	// the protocol's own, less is better; the kernel's where the daemon does not tell
	Metric *float64 `json:"metric,omitempty"`
	// the protocol's word for it
	Cause string `json:"cause,omitempty" influx:"name=route_cause" redact:"keep"`
}

func (*RouteChange) Kind() string { return "route" }

// RoutingCount is what the routing daemon has done since it began, once a second.
//
// Bytes of packets are those of IP; those of messages are the protocol's.
type RoutingCount struct {
	Protocol    string  `json:"protocol" influx:"tag" redact:"keep"`   // the routing protocol
	PacketsSent *uint64 `json:"packets_sent,omitempty" unit:"packets"` // routing packets sent
	// data packets sent with the daemon's header (DSR); none of packets_sent, but a record without this field may have
	// them there
	DataPacketsSent *uint64 `json:"data_packets_sent,omitempty" unit:"packets"`
	BytesSent       *uint64 `json:"bytes_sent,omitempty" unit:"B"` // bytes of IP in routing packets, and of headers before data
	// routing packets received; absent with dsr and dsr-ns2, which do not count them
	PacketsReceived *uint64 `json:"packets_received,omitempty" unit:"packets"`
	// bytes of IP in them
	BytesReceived *uint64 `json:"bytes_received,omitempty" unit:"B"`
	// by type
	Messages map[string]uint64 `json:"messages_sent,omitempty" archive:"by type of message; the archive has them"`
	// by type
	MessageBytes map[string]uint64 `json:"message_bytes_sent,omitempty" archive:"by type of message; the archive has them"`
	// in the kernel; with dsr and dsr-ns2 those that the daemon knows
	RoutesInstalled int `json:"routes_installed" unit:"routes"`
	// data packets that wait for a route
	HeldPackets *uint64           `json:"held_packets,omitempty" unit:"packets"`
	Neighbors   []RoutingNeighbor `json:"neighbors" redact:"keep"`
	// data packets that the daemon threw away, by its reason; absent where there are none, and with daemons that do not
	// tell
	Dropped map[string]uint64 `json:"dropped,omitempty" archive:"by reason; the archive has them"`
}

func (*RoutingCount) Kind() string { return "routing" }

// RoutingNeighbor is a node that the routing daemon hears directly.
type RoutingNeighbor struct {
	Addr      string   `json:"addr"`
	Symmetric bool     `json:"symmetric"`
	Cost      *float64 `json:"cost,omitempty"` // of the link, as the protocol measures it: ETX, or babeld's
	Role      string   `json:"role,omitempty"` // mpr | selector | blacklisted
}

// RoutingEvent is something that the routing daemon found worth telling.
type RoutingEvent struct {
	// discovery_us, discovery_failed, neighbor_lost, routing_ready_s …
	Report   string   `json:"report" influx:"tag" redact:"keep"`
	AtBootNs int64    `json:"at_boot_ns" unit:"ns"`         // when it happened, boot clock
	Addr     string   `json:"addr,omitempty" redact:"keep"` // the node that it is about
	Value    *float64 `json:"value,omitempty"`              // in the unit that the report's name ends in
	Note     string   `json:"note,omitempty"`               // more in words
}

func (*RoutingEvent) Kind() string { return "routing_event" }

// Probe is a small packet from the measured flow's sender to its receiver that came back.
type Probe struct {
	Peer string `json:"peer_node" influx:"tag" redact:"keep"` // the receiver
	// from 1, by the beat; numbers that are missing were not sent or did not come back; one that had no route has a
	// number too
	ProbeSeq   uint64  `json:"probe_seq"`
	SentBootNs int64   `json:"sent_boot_ns" unit:"ns"` // when it was sent, boot clock
	RTTUs      float64 `json:"probe_rtt_us" unit:"µs"` // there and back
}

func (*Probe) Kind() string { return "probe" }

// ProbeEnd is what the probes' sender had counted when its socket was closed: when the attempt's flows had ended.
type ProbeEnd struct {
	Peer string `json:"peer_node" influx:"tag" redact:"keep"` // the receiver
	// what was handed to the kernel, with or without a route; a beat that was missed sent none
	Sent uint64 `json:"sent" unit:"packets"`
}

func (*ProbeEnd) Kind() string { return "probe_end" }
