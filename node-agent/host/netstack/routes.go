package netstack

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rtaNextHopObject is RTA_NH_ID of rtnetlink.h, which x/sys does not have.
const rtaNextHopObject = 30

// metricIPv6 is what the kernel takes for an IPv6 route without a metric
// (IP6_RT_PRIO_USER in ipv6_route.h).
const metricIPv6 = 1024

// RouteMessage is an RTM_NEWROUTE message, taken apart.
type RouteMessage struct {
	Head  *nl.RtMsg
	attrs []syscall.NetlinkRouteAttr
}

// ParseRoute takes a message apart.
func ParseRoute(message []byte) (RouteMessage, error) {
	attrs, err := attributes(message, unix.SizeofRtMsg)
	if err != nil {
		return RouteMessage{}, err
	}
	return RouteMessage{Head: nl.DeserializeRtMsg(message), attrs: attrs}, nil
}

// Table is the routing table that it is in.
func (r RouteMessage) Table() int {
	if t := attributeUint32(r.attrs, unix.RTA_TABLE); t != 0 {
		return int(t)
	}
	return int(r.Head.Table)
}

// made tells routes that the kernel makes by itself and will make again, from
// addresses, router advertisements and redirects.
func (r RouteMessage) made() bool {
	return r.Head.Flags&unix.RTM_F_CLONED != 0 ||
		slices.Contains([]uint8{unix.RTPROT_KERNEL, unix.RTPROT_RA, unix.RTPROT_REDIRECT}, r.Head.Protocol)
}

// Through reports whether a route leads out of an interface.
func (r RouteMessage) Through(index int) bool {
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

// Destination is where it leads; ok is false for one that is not of IP.
func (r RouteMessage) Destination() (_ netip.Prefix, ok bool) {
	addr, ok := netip.AddrFromSlice(attribute(r.attrs, unix.RTA_DST))
	if !ok {
		addr = netip.IPv4Unspecified()
		if r.Head.Family == unix.AF_INET6 {
			addr = netip.IPv6Unspecified()
		}
	}
	p := netip.PrefixFrom(addr, int(r.Head.Dst_len))
	return p, p.IsValid() && (r.Head.Family == unix.AF_INET || r.Head.Family == unix.AF_INET6)
}

// HasKey reports whether the kernel would take a route for the place of one
// with a destination and a metric.
func (r RouteMessage) HasKey(destination netip.Prefix, metric int) bool {
	dst, ok := r.Destination()
	if dst.Addr().Is6() && metric == 0 {
		metric = metricIPv6
	}
	return ok && dst == destination && r.Table() == unix.RT_TABLE_MAIN && r.Head.Tos == 0 &&
		r.Head.Flags&unix.RTM_F_CLONED == 0 && attributeUint32(r.attrs, unix.RTA_PRIORITY) == uint32(metric)
}

// RoutesWhere lists routes of both families as messages that can be sent back.
func RoutesWhere(keep func(RouteMessage) bool) ([][]byte, error) {
	messages, err := dumpMessages(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{})
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, m := range messages {
		r, err := ParseRoute(m)
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
func (r RouteMessage) sendable() []byte {
	head := *r.Head
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

// Standing are the routes whose interfaces, and preferred source addresses, still exist; the others went with
// theirs, and the kernel takes them no more.
func Standing(messages [][]byte) ([][]byte, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	links, err := Redump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	addresses, err := Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var out [][]byte
	for _, m := range messages {
		r, err := ParseRoute(m)
		if err != nil {
			return nil, err
		}
		source := net.IP(attribute(r.attrs, unix.RTA_PREFSRC))
		if source != nil && !slices.ContainsFunc(addresses, func(a netlink.Addr) bool { return a.IP.Equal(source) }) {
			continue
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

// ThroughInstead is a route's message with another outgoing interface.
func ThroughInstead(message []byte, index int) []byte {
	out := slices.Clone(message)
	for at := unix.SizeofRtMsg; at+unix.SizeofRtAttr <= len(out); {
		length := int(binary.NativeEndian.Uint16(out[at:]))
		if length < unix.SizeofRtAttr || at+length > len(out) {
			break
		}
		if binary.NativeEndian.Uint16(out[at+2:]) == unix.RTA_OIF && length == unix.SizeofRtAttr+4 {
			binary.NativeEndian.PutUint32(out[at+unix.SizeofRtAttr:], uint32(index))
		}
		at += align4(length)
	}
	return out
}
