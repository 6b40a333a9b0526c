// Package host is the one seam between the agent and the machine. It alone
// changes links, addresses, routes, sysctls and daemons; for every change it
// first writes to disk how to take it back. It runs as a small root process
// of its own, reached over a unix socket by typed calls only. Measuring, and
// everything that faces the network, stays out.
package host

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// The two scopes of a change. They nest: what a trial changed is undone before
// what its run changed.
const (
	ScopeRun   = "run"   // kept between trials
	ScopeTrial = "trial" // undone after each trial
)

// Change is one thing that the host process can do to the machine, and the
// set of them is closed: exactly one member is set.
type Change struct {
	Link    *Link    `json:"link,omitempty"`
	Address *Address `json:"address,omitempty"`
	Route   *Route   `json:"route,omitempty"`
	Sysctl  *Sysctl  `json:"sysctl,omitempty"`
	Daemon  *Daemon  `json:"daemon,omitempty"`
	Radio   *Radio   `json:"radio,omitempty"`
	Aside   *Aside   `json:"aside,omitempty"`
	Virtual *Virtual `json:"virtual,omitempty"`

	BPFCongestion *BPFCongestion `json:"bpf_congestion,omitempty"`
	HeldRTO       *HeldRTO       `json:"held_rto,omitempty"`
	WindowClamp   *WindowClamp   `json:"window_clamp,omitempty"`
	TCPEvents     *TCPEvents     `json:"tcp_events,omitempty"`
	Offloads      *Offloads      `json:"offloads,omitempty"`
}

// Link sets an interface up or down, or its MTU. What is absent stays.
type Link struct {
	Interface string `json:"interface"`
	Up        *bool  `json:"up,omitempty"`
	MTUBytes  *int   `json:"mtu_bytes,omitempty"`
}

// Address adds an address to an interface.
type Address struct {
	Interface string       `json:"interface"`
	Prefix    netip.Prefix `json:"prefix"` // the address with its prefix length: 10.77.0.1/24
}

// Route adds a unicast route to the main table, in place of one with the same
// destination and metric when there is one.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	Interface   string       `json:"interface"`
	Via         *netip.Addr  `json:"via,omitempty"`        // absent: on link
	Source      *netip.Addr  `json:"source,omitempty"`     // preferred source address
	Metric      int          `json:"metric,omitempty"`     // the kernel's priority; 0 is the kernel's own default
	Congestion  string       `json:"congestion,omitempty"` // congestion control of connections over this route
	QuickAck    bool         `json:"quick_ack,omitempty"`  // what comes over it is acknowledged at once, not delayed
}

// Sysctl sets one of the allowed keys, named as sysctl(8) names it:
// "net.ipv4.tcp_congestion_control", "net.ipv4.conf.wlan0.rp_filter".
type Sysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Daemon starts a routing daemon on an interface, with a configuration that
// the host process writes, and what it needs of the kernel set: forwarding on
// (off for a protocol that carries data itself), redirects and reverse-path
// filters off; for babeld IPv6 on the interface, for its link-local address.
type Daemon struct {
	Name      string       `json:"name"` // babeld, olsrd, or one of our own protocols
	Interface string       `json:"interface"`
	Announce  netip.Prefix `json:"announce"`          // own addresses in it are announced, routes into it accepted
	HelloS    *float64     `json:"hello_s,omitempty"` // interval of hellos; absent: the daemon's own
	// QuickAck has what comes over the daemon's routes acknowledged at once.
	QuickAck bool `json:"quick_ack,omitempty"`
}

// target names what a change acts on; two changes with one target follow on
// each other.
func (c Change) target() string {
	switch {
	case c.Link != nil:
		return "link " + c.Link.Interface
	case c.Address != nil:
		return fmt.Sprintf("address %s on %s", c.Address.Prefix, c.Address.Interface)
	case c.Route != nil:
		return fmt.Sprintf("route %s metric %d", c.Route.Destination, c.Route.Metric)
	case c.Sysctl != nil:
		return "sysctl " + c.Sysctl.Key
	case c.Daemon != nil:
		return "daemon " + c.Daemon.Name
	case c.Radio != nil:
		return "radio " + c.Radio.Interface
	case c.Aside != nil:
		return c.Aside.describe()
	case c.Virtual != nil:
		return c.Virtual.String()
	case c.BPFCongestion != nil:
		return c.BPFCongestion.String()
	case c.HeldRTO != nil:
		return "held rto"
	case c.WindowClamp != nil:
		return "window clamp"
	case c.TCPEvents != nil:
		return "tracepoints of tcp"
	case c.Offloads != nil:
		return c.Offloads.String()
	}
	return "nothing"
}

// String says in words what the change does.
func (c Change) String() string {
	switch {
	case c.Link != nil:
		return c.Link.describe()
	case c.Route != nil:
		return c.Route.describe()
	case c.Sysctl != nil:
		return fmt.Sprintf("sysctl %s=%s", c.Sysctl.Key, c.Sysctl.Value)
	case c.Daemon != nil:
		return c.Daemon.describe()
	case c.Radio != nil:
		return c.Radio.describe()
	case c.HeldRTO != nil:
		return c.HeldRTO.String()
	case c.WindowClamp != nil:
		return c.WindowClamp.String()
	case c.TCPEvents != nil:
		return c.TCPEvents.String()
	}
	return c.target()
}

func (l Link) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link %s", l.Interface)
	if l.Up != nil {
		b.WriteString(map[bool]string{true: " up", false: " down"}[*l.Up])
	}
	if l.MTUBytes != nil {
		fmt.Fprintf(&b, " mtu %d", *l.MTUBytes)
	}
	return b.String()
}

func (d Daemon) describe() string {
	text := fmt.Sprintf("daemon %s on %s announcing %s", d.Name, d.Interface, d.Announce)
	if d.QuickAck {
		text += " quickack 1"
	}
	return text
}

func (r Route) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "route %s", r.Destination)
	if r.Via != nil {
		fmt.Fprintf(&b, " via %s", r.Via)
	}
	fmt.Fprintf(&b, " dev %s", r.Interface)
	if r.Source != nil {
		fmt.Fprintf(&b, " src %s", r.Source)
	}
	if r.Metric != 0 {
		fmt.Fprintf(&b, " metric %d", r.Metric)
	}
	if r.Congestion != "" {
		fmt.Fprintf(&b, " congctl %s", r.Congestion)
	}
	if r.QuickAck {
		b.WriteString(" quickack 1")
	}
	return b.String()
}

// members counts those that are set.
func (c Change) members() int {
	n := 0
	for _, set := range []bool{c.Link != nil, c.Address != nil, c.Route != nil, c.Sysctl != nil, c.Daemon != nil, c.Radio != nil, c.Aside != nil, c.Virtual != nil, c.BPFCongestion != nil, c.HeldRTO != nil, c.WindowClamp != nil, c.TCPEvents != nil, c.Offloads != nil} {
		if set {
			n++
		}
	}
	return n
}

// Refused says that a change may not or cannot be made here, and that nothing
// was changed. It comes back whole from Client.Apply: use errors.As.
type Refused struct {
	Change string `json:"change"` // in words
	Reason string `json:"reason"`
	Cure   string `json:"cure,omitempty"` // what to do about it
}

func (r *Refused) Error() string {
	if r.Cure == "" {
		return fmt.Sprintf("refused %s: %s", r.Change, r.Reason)
	}
	return fmt.Sprintf("refused %s: %s (%s)", r.Change, r.Reason, r.Cure)
}

// ErrRunning says that another host process owns the state directory.
var ErrRunning = errors.New("another host process owns this state directory")
