package host

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

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

// through reports whether a route leads out of an interface.
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

// hasKey reports whether the kernel would take a route for another's place.
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
