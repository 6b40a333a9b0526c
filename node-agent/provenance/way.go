package provenance

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

// Way returns the interface by which packets of this process to an address
// leave, as the kernel's rules and routes have it.
func Way(to netip.Addr) (iface string, err error) {
	_, iface, err = way(to)
	return iface, err
}

// Attached reports whether an interface is up, has a carrier and its own address: then
// packets to its network have a way, unless somebody has taken it.
func Attached(iface string, own netip.Addr) bool {
	i, err := net.InterfaceByName(iface)
	if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
		return false
	}
	addresses, err := i.Addrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == own
	})
}

// way is Way, with the entry of the kernel's tables.
func way(to netip.Addr) (netlink.Route, string, error) {
	found, err := netlink.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	if err != nil {
		return netlink.Route{}, "", err
	}
	for _, r := range found {
		if i, err := net.InterfaceByIndex(r.LinkIndex); err == nil {
			return r, i.Name, nil
		}
	}
	return netlink.Route{}, "", unix.ENETUNREACH
}

// InTheWay returns what will keep packets to an address from leaving by an
// interface, though that has its own address in the network by then and the host
// process has added its change.Rule; "" for nothing.
func InTheWay(iface string, own netip.Prefix, to netip.Addr) (found, cure string) {
	r, other, err := way(to)
	if err != nil || other == iface {
		return "", "" // the way is made with the address
	}
	if r.Flags&unix.RTM_F_CLONED != 0 {
		return "", "" // a kernel before 4.13 does not say by which entry (RTM_F_FIB_MATCH)
	}
	bits := 0
	if r.Dst != nil {
		bits, _ = r.Dst.Mask.Size()
	}
	switch {
	case r.Table == unix.RT_TABLE_MAIN && bits < own.Bits():
		return "", "" // the address's own route is the more specific one
	case r.Table == unix.RT_TABLE_MAIN, r.Table == unix.RT_TABLE_LOCAL:
		cure = fmt.Sprintf("take that network away from %s, or give the mesh another one (`mesh_address` in the "+
			"campaign)", other)
	case askedFirst(r.Table):
		cure = fmt.Sprintf("end what made the routing rules for table %d (`ip rule` lists them), as a VPN, or have it "+
			"leave %s out", r.Table, own.Masked())
	default:
		return "", "" // the change's rule comes before those of the table
	}
	return fmt.Sprintf("packets to %s leave by %s and not by %s: the kernel has a route to %s in table %d", to, other,
		iface, destination(r), r.Table), cure
}

// askedFirst reports whether a rule leads to a table before a change.Rule would
// lead to main.
func askedFirst(table int) bool {
	rules, err := netlink.RuleList(netlink.FAMILY_V4)
	unread := err != nil && !errors.Is(err, netlink.ErrDumpInterrupted)
	return unread || slices.ContainsFunc(rules, func(r netlink.Rule) bool {
		return r.Table == table && r.Priority < change.RulePriority
	})
}

func destination(r netlink.Route) string {
	if r.Dst == nil {
		return "everywhere"
	}
	return r.Dst.String()
}
