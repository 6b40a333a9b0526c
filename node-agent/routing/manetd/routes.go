package manetd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// catchMetric is that of the routes that lead into the daemon: worse than any
// that somebody would set to the same destination.
const catchMetric = 9000

// kernelRoutes sets the routes of one daemon's interfaces.
type kernelRoutes struct {
	links []netlink.Link
	own   []netip.Addr
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// SetRoute installs a route over the best next hop in place of the one to the
// same destination.
func (k *kernelRoutes) SetRoute(r manet.SetRoute) error {
	if len(r.Next) == 0 {
		return fmt.Errorf("set route to %s: no next hop", r.Destination)
	}
	hop := r.Next[0]
	route := &netlink.Route{Dst: ipNet(r.Destination), Protocol: control.RouteProtocol,
		Src: k.own[hop.Interface].AsSlice(), LinkIndex: k.links[hop.Interface].Attrs().Index}
	if r.Destination.IsSingleIP() && hop.Addr == r.Destination.Addr() {
		route.Scope = netlink.SCOPE_LINK
	} else {
		route.Gw, route.Flags = hop.Addr.AsSlice(), int(netlink.FLAG_ONLINK)
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("set route to %s by %s: %w", r.Destination, hop.Addr, err)
	}
	return nil
}

// DeleteRoute removes the daemon's route to a destination; one that an
// interface took with it is not an error.
func (k *kernelRoutes) DeleteRoute(p netip.Prefix) error {
	err := netlink.RouteDel(&netlink.Route{Dst: ipNet(p), Protocol: control.RouteProtocol,
		Table: unix.RT_TABLE_MAIN, Scope: netlink.SCOPE_UNIVERSE})
	if errors.Is(err, unix.ESRCH) {
		err = netlink.RouteDel(&netlink.Route{Dst: ipNet(p), Protocol: control.RouteProtocol,
			Table: unix.RT_TABLE_MAIN, Scope: netlink.SCOPE_LINK})
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("delete route to %s: %w", p, err)
	}
	return nil
}

// sweep removes every route of the daemon's number over its interfaces: its
// own at its end, and at its start what one that was killed had left.
func (k *kernelRoutes) sweep() (int, error) {
	var found []netlink.Route
	var err error
	for range 10 {
		ours := &netlink.Route{Protocol: control.RouteProtocol}
		found, err = netlink.RouteListFiltered(netlink.FAMILY_V4, ours, netlink.RT_FILTER_PROTOCOL)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	swept := 0
	var errs []error
	for _, r := range found {
		if !k.through(r) {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("delete route to %s: %w", r.Dst, err))
			continue
		}
		swept++
	}
	return swept, errors.Join(errs...)
}

func (k *kernelRoutes) through(r netlink.Route) bool {
	for _, l := range k.links {
		if r.LinkIndex == l.Attrs().Index {
			return true
		}
	}
	return false
}

// catch leads all data that has no better route into a device. The routes go
// with the device, however this process ends.
func catch(device netlink.Link, network netip.Prefix, own netip.Addr) error {
	for _, half := range halves(network) {
		err := netlink.RouteReplace(&netlink.Route{LinkIndex: device.Attrs().Index, Dst: ipNet(half),
			Priority: catchMetric,
			Protocol: control.RouteProtocol, Scope: netlink.SCOPE_LINK, Src: own.AsSlice()})
		if err != nil {
			return fmt.Errorf("lead %s into %s: %w", half, device.Attrs().Name, err)
		}
	}
	return nil
}
