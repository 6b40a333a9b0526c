package manet

import "net/netip"

// State is a snapshot of a node, for a person or a record.
type State struct {
	Protocol   string           `json:"protocol"`
	Neighbors  []Neighbor       `json:"neighbors"`
	Routes     []Route          `json:"routes"`
	Discovery  []netip.Addr     `json:"discoveries,omitempty"` // destinations being looked for
	TableSizes map[string]int   `json:"table_sizes"`           // entries of each table: what a bound is tested on
	Counters   map[string]int64 `json:"counters"`
}

// Neighbor is a node that was heard of directly.
type Neighbor struct {
	Addr      netip.Addr `json:"addr"`
	Interface int        `json:"interface"`
	Symmetric bool       `json:"symmetric"`
	Cost      *float64   `json:"cost,omitempty"` // ETX where the protocol measures it
	Role      string     `json:"role,omitempty"` // "mpr", "selector", "blacklisted"
}

// Route is an installed route.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	NextHop     netip.Addr   `json:"next_hop"`
	Interface   int          `json:"interface"`
	Hops        int          `json:"hops"`
	Metric      float64      `json:"metric"`
}
