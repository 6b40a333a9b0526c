package change

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

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

func (r Route) Target() string { return fmt.Sprintf("route %s metric %d", r.Destination, r.Metric) }

func (r Route) String() string {
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

var congestionPattern = regexp.MustCompile(`^[a-z0-9_]{1,15}$`) // TCP_CA_NAME_MAX leaves 15

func (r Route) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(r.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkWithin("destination", r.Destination); reason != "" {
		return reason, cure
	}
	if r.Destination != r.Destination.Masked() || r.Destination.Addr().Is4In6() {
		return "destination has bits set beyond its length", "write " + r.Destination.Masked().String()
	}
	for what, addr := range map[string]*netip.Addr{"gateway": r.Via, "source": r.Source} {
		if addr == nil {
			continue
		}
		if addr.Is4() != r.Destination.Addr().Is4() || addr.Zone() != "" {
			return fmt.Sprintf("%s %s and destination are not of one family", what, addr), ""
		}
		if what == "gateway" && addr.IsLinkLocalUnicast() {
			continue
		}
		if reason, cure = p.checkWithin(what, netip.PrefixFrom(*addr, addr.BitLen())); reason != "" {
			return reason, cure
		}
	}
	if r.Metric < 0 || int64(r.Metric) > 1<<31-1 {
		return fmt.Sprintf("metric %d is outside 0 to 2147483647", r.Metric), ""
	}
	if r.Congestion != "" && !congestionPattern.MatchString(r.Congestion) {
		return fmt.Sprintf("%q is not the name of a congestion control", r.Congestion), ""
	}
	return "", ""
}

func (r Route) prepare(*Kernel, uint64) (*routeUndo, error) {
	link, err := netstack.FindLink(r.Interface)
	if err != nil {
		return nil, err
	}
	former, err := netstack.RoutesWhere(func(m netstack.RouteMessage) bool { return m.HasKey(r.Destination, r.Metric) })
	if err != nil {
		return nil, fmt.Errorf("list routes to %s: %w", r.Destination, err)
	}
	return &routeUndo{Route: addedRoute{Route: r, Index: link.Attrs().Index, Former: former}}, nil
}

// message is the route as the netlink library takes it.
func (r Route) message(index int) *netlink.Route {
	out := &netlink.Route{
		LinkIndex: index, Dst: netstack.IPNet(r.Destination), Priority: r.Metric,
		Protocol: unix.RTPROT_STATIC, Congctl: r.Congestion,
	}
	if r.QuickAck {
		out.QuickACK = 1
	}
	if r.Via != nil {
		out.Gw = r.Via.AsSlice()
	} else if r.Destination.Addr().Is4() {
		out.Scope = netlink.SCOPE_LINK
	}
	if r.Source != nil {
		out.Src = r.Source.AsSlice()
	}
	return out
}

func (r Route) apply(*Kernel, *routeUndo) error {
	link, err := netstack.FindLink(r.Interface)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(r.message(link.Attrs().Index)); err != nil {
		return fmt.Errorf("add %s: %w", r, err)
	}
	return nil
}

// routeUndo takes a route out and puts those with the same key back.
type routeUndo struct {
	placed
	Route addedRoute `json:"route"`
}

type addedRoute struct {
	Route
	Index  int      `json:"index"`
	Former [][]byte `json:"former,omitempty"` // the kernel's own messages
}

func (u *routeUndo) void(*Kernel) bool { return netstack.Vanished(u.Route.Index) }

// revert takes the route out, or puts what was there in its place: then there
// is no moment without a route.
func (u *routeUndo) revert(*Kernel) (string, error) {
	r := u.Route
	former, err := netstack.Standing(r.Former)
	if err != nil {
		return "", err
	}
	if len(former) == 0 {
		return r.delete()
	}
	for i, m := range former {
		flags := unix.NLM_F_CREATE | unix.NLM_F_REPLACE
		if i > 0 {
			flags = unix.NLM_F_CREATE | unix.NLM_F_APPEND
		}
		if err := netstack.SendMessage(unix.RTM_NEWROUTE, flags, m); err != nil {
			return "", fmt.Errorf("put the former route to %s back: %w", r.Destination, err)
		}
	}
	return "", nil
}

func (r addedRoute) delete() (string, error) {
	link, err := netstack.SameLink(r.Index)
	if err != nil || link == nil {
		return netstack.Gone(r.Interface), err
	}
	if err := netlink.RouteDel(r.message(r.Index)); err != nil && !errors.Is(err, unix.ESRCH) {
		return "", fmt.Errorf("delete %s: %w", r, err)
	}
	return "", nil
}

func (u *routeUndo) on() (string, int) { return u.Route.Interface, u.Route.Index }
