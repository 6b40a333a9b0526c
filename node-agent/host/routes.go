package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// protocolBabel is the mark of babeld's routes in the kernel (babeld's
// kernel_netlink.c; RTPROT_BABEL in rtnetlink.h).
const protocolBabel = 42

// rtaNextHopObject is RTA_NH_ID of rtnetlink.h, which x/sys does not have.
const rtaNextHopObject = 30

// metricIPv6 is what the kernel takes for an IPv6 route without a metric
// (IP6_RT_PRIO_USER in ipv6_route.h).
const metricIPv6 = 1024

// routeMessage is an RTM_NEWROUTE message, taken apart.
type routeMessage struct {
	head  *nl.RtMsg
	attrs []syscall.NetlinkRouteAttr
}

func parseRoute(message []byte) (routeMessage, error) {
	attrs, err := attributes(message, unix.SizeofRtMsg)
	if err != nil {
		return routeMessage{}, err
	}
	return routeMessage{head: nl.DeserializeRtMsg(message), attrs: attrs}, nil
}

func (r routeMessage) table() int {
	if t := attributeUint32(r.attrs, unix.RTA_TABLE); t != 0 {
		return int(t)
	}
	return int(r.head.Table)
}

// made tells routes that the kernel makes by itself and will make again, from
// addresses, router advertisements and redirects.
func (r routeMessage) made() bool {
	return r.head.Flags&unix.RTM_F_CLONED != 0 ||
		slices.Contains([]uint8{unix.RTPROT_KERNEL, unix.RTPROT_RA, unix.RTPROT_REDIRECT}, r.head.Protocol)
}

// through tells whether a route leads out of an interface.
func (r routeMessage) through(index int) bool {
	if attributeUint32(r.attrs, unix.RTA_OIF) == uint32(index) {
		return true
	}
	hops := attribute(r.attrs, unix.RTA_MULTIPATH)
	for len(hops) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(hops[0:2]))
		if binary.NativeEndian.Uint32(hops[4:8]) == uint32(index) {
			return true
		}
		if length < unix.SizeofRtNexthop || align4(length) > len(hops) {
			break
		}
		hops = hops[align4(length):]
	}
	return false
}

func align4(n int) int { return (n + 3) &^ 3 }

func (r routeMessage) destination() (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(attribute(r.attrs, unix.RTA_DST))
	if !ok {
		addr = netip.IPv4Unspecified()
		if r.head.Family == unix.AF_INET6 {
			addr = netip.IPv6Unspecified()
		}
	}
	p := netip.PrefixFrom(addr, int(r.head.Dst_len))
	return p, p.IsValid() && (r.head.Family == unix.AF_INET || r.head.Family == unix.AF_INET6)
}

// hasKey tells whether the kernel would take a route for another's place.
func (r routeMessage) hasKey(want Route) bool {
	dst, ok := r.destination()
	metric := want.Metric
	if dst.Addr().Is6() && metric == 0 {
		metric = metricIPv6
	}
	return ok && dst == want.Destination && r.table() == unix.RT_TABLE_MAIN && r.head.Tos == 0 &&
		r.head.Flags&unix.RTM_F_CLONED == 0 && attributeUint32(r.attrs, unix.RTA_PRIORITY) == uint32(metric)
}

// routesWhere lists routes of both families as messages that can be sent back.
func routesWhere(keep func(routeMessage) bool) ([][]byte, error) {
	messages, err := dumpMessages(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{})
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, m := range messages {
		r, err := parseRoute(m)
		if err != nil {
			return nil, err
		}
		if keep(r) {
			out = append(out, r.sendable())
		}
	}
	return out, nil
}

// sendable is the route without what the kernel only tells and does not take:
// state flags, ages, and the next hops that a next-hop object stands for.
func (r routeMessage) sendable() []byte {
	head := *r.head
	head.Flags &= unix.RTNH_F_ONLINK
	out := slices.Clone(head.Serialize())
	object := attribute(r.attrs, rtaNextHopObject) != nil
	for _, a := range r.attrs {
		kind := a.Attr.Type & nl.NLA_TYPE_MASK
		value := slices.Clone(a.Value)
		switch kind {
		case unix.RTA_CACHEINFO:
			continue
		case unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_VIA:
			if object {
				continue
			}
		case unix.RTA_MULTIPATH:
			if object {
				continue
			}
			clearHopFlags(value)
		}
		out = append(out, nl.NewRtAttr(int(a.Attr.Type), value).Serialize()...)
	}
	return out
}

func clearHopFlags(hops []byte) {
	for len(hops) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(hops[0:2]))
		hops[2] &= unix.RTNH_F_ONLINK
		if length < unix.SizeofRtNexthop || align4(length) > len(hops) {
			return
		}
		hops = hops[align4(length):]
	}
}

func prepareRoute(r Route) (undo, error) {
	link, err := findLink(r.Interface)
	if err != nil {
		return undo{}, err
	}
	former, err := routesWhere(func(m routeMessage) bool { return m.hasKey(r) })
	if err != nil {
		return undo{}, fmt.Errorf("list routes to %s: %w", r.Destination, err)
	}
	return undo{Route: &routeUndo{Route: r, Index: link.Attrs().Index, Former: former}}, nil
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

func applyRoute(r Route) error {
	link, err := findLink(r.Interface)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(r.message(link.Attrs().Index)); err != nil {
		return fmt.Errorf("add %s: %w", r.describe(), err)
	}
	return nil
}

// revertRoute takes the route out, or puts what was there in its place: then
// there is no moment without a route.
func revertRoute(u undo) (string, error) {
	if u.Route == nil {
		return "", nil
	}
	r := *u.Route
	former, err := standing(r.Former)
	if err != nil {
		return "", err
	}
	if len(former) == 0 {
		return deleteRoute(r)
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
		if index == 0 || slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().Index == int(index) }) {
			out = append(out, m)
		}
	}
	return out, nil
}

func deleteRoute(r routeUndo) (string, error) {
	link, err := sameLink(r.Interface, r.Index)
	if err != nil || link == nil {
		return gone(r.Interface), err
	}
	if err := netlink.RouteDel(r.message(r.Index)); err != nil && !errors.Is(err, unix.ESRCH) {
		return "", fmt.Errorf("delete %s: %w", r.describe(), err)
	}
	return "", nil
}

// revertDaemonRoutes takes out what a routing daemon left behind that could
// not clean up after itself.
func revertDaemonRoutes(u undo) (string, error) {
	if u.Daemon == nil {
		return "", nil
	}
	d := *u.Daemon
	link, err := sameLink(d.Interface, d.Index)
	if err != nil {
		return "", err
	}
	var note string
	if link == nil {
		note = gone(d.Interface) // its routes too, but not those that say "unreachable"
	}
	left, err := daemonRoutes(d)
	if err != nil {
		return "", err
	}
	var errs []error
	for _, m := range left {
		if slices.ContainsFunc(d.Former, func(f []byte) bool { return slices.Equal(f, m) }) {
			continue
		}
		req := nl.NewNetlinkRequest(unix.RTM_DELROUTE, unix.NLM_F_ACK)
		req.AddRawData(m)
		if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("delete a route that %s left: %w", d.Name, err))
		}
	}
	return note, errors.Join(errs...)
}

// daemonRoutes lists a daemon's routes: those over its interface, and those by
// which it holds a retracted destination unreachable for a while.
func daemonRoutes(d daemonUndo) ([][]byte, error) {
	if d.RouteProtocol == 0 { // it sets none
		return nil, nil
	}
	out, err := routesWhere(func(r routeMessage) bool {
		return int(r.head.Protocol) == d.RouteProtocol && r.table() == unix.RT_TABLE_MAIN &&
			(r.head.Type == unix.RTN_UNREACHABLE || r.through(d.Index))
	})
	if err != nil {
		return nil, fmt.Errorf("list %s's routes: %w", d.Name, err)
	}
	return out, nil
}
