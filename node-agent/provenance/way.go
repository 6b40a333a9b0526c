package provenance

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/link"
)

// Way returns the interface by which packets of this process to an address
// leave, as the kernel's rules and routes have it; of its sockets that are bound to
// an interface, where one is named.
func Way(bound string, to netip.Addr) (iface string, err error) {
	if bound == "" {
		if _, iface, err = way(to); !errors.Is(err, fs.ErrPermission) {
			return iface, err
		}
	}
	iface, err = wayBySource(bound, to)
	if bound != "" && err == nil && iface != bound { // that has no address, and there is no other way
		return "", unix.ENETUNREACH
	}
	return iface, err
}

// wayBySource is Way where the kernel may not be asked, as by an app of Android's: it is
// the interface that has the address which the kernel gives packets to there.
func wayBySource(bound string, to netip.Addr) (iface string, err error) {
	d := net.Dialer{Control: link.Bind(bound)}
	c, err := d.Dial("udp", netip.AddrPortFrom(to, 9).String()) // sends nothing
	if errors.Is(err, unix.ENODEV) {
		return "", fmt.Errorf("%w: %w", unix.ENETUNREACH, err)
	}
	if err != nil {
		return "", err
	}
	iface = link.With(c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap())
	if err := c.Close(); err != nil {
		return "", err
	}
	if iface == "" {
		return "", unix.ENETUNREACH
	}
	return iface, nil
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
