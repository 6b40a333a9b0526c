package host

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

func (r Route) target() string { return fmt.Sprintf("route %s metric %d", r.Destination, r.Metric) }

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

func (r Route) check(p policy) (reason, cure string) {
	if reason, cure = p.checkInterface(r.Interface); reason != "" {
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

func (r Route) prepare(*kernel, uint64) (*routeUndo, error) {
	link, err := findLink(r.Interface)
	if err != nil {
		return nil, err
	}
	former, err := routesWhere(func(m routeMessage) bool { return m.hasKey(r) })
	if err != nil {
		return nil, fmt.Errorf("list routes to %s: %w", r.Destination, err)
	}
	return &routeUndo{Route: addedRoute{Route: r, Index: link.Attrs().Index, Former: former}}, nil
}

// message is the route as the netlink library takes it.
func (r Route) message(index int) *netlink.Route {
	out := &netlink.Route{
		LinkIndex: index, Dst: ipNet(r.Destination), Priority: r.Metric,
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

func (r Route) apply(*kernel, *routeUndo) error {
	link, err := findLink(r.Interface)
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

func (u *routeUndo) void(*kernel) bool { return vanished(u.Route.Interface, u.Route.Index) }

// revert takes the route out, or puts what was there in its place: then there
// is no moment without a route.
func (u *routeUndo) revert(*kernel) (string, error) {
	r := u.Route
	former, err := standing(r.Former)
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
		if err := sendMessage(unix.RTM_NEWROUTE, flags, m); err != nil {
			return "", fmt.Errorf("put the former route to %s back: %w", r.Destination, err)
		}
	}
	return "", nil
}

// standing are the routes whose interfaces still exist; the others went with
// theirs.
func standing(messages [][]byte) ([][]byte, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	links, err := redump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var out [][]byte
	for _, m := range messages {
		r, err := parseRoute(m)
		if err != nil {
			return nil, err
		}
		index := attributeUint32(r.attrs, unix.RTA_OIF)
		if index == 0 || slices.ContainsFunc(links, func(l netlink.Link) bool {
			return l.Attrs().Index == int(index)
		}) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (r addedRoute) delete() (string, error) {
	link, err := sameLink(r.Interface, r.Index)
	if err != nil || link == nil {
		return gone(r.Interface), err
	}
	if err := netlink.RouteDel(r.message(r.Index)); err != nil && !errors.Is(err, unix.ESRCH) {
		return "", fmt.Errorf("delete %s: %w", r, err)
	}
	return "", nil
}
