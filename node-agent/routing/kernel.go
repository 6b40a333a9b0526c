package routing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// kernelRoutes are a daemon's routes as the kernel has them, for daemons that
// do not tell theirs. The kernel's word needs no privileges.
type kernelRoutes struct {
	protocol int
	boot     func() int64
}

func (k kernelRoutes) list() ([]wire.RouteChange, error) {
	var found []netlink.Route
	var err error
	for range 10 {
		found, err = netlink.RouteListFiltered(netlink.FAMILY_V4,
			&netlink.Route{Protocol: netlink.RouteProtocol(k.protocol)}, netlink.RT_FILTER_PROTOCOL)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var out []wire.RouteChange
	for _, r := range found {
		if c, ok := k.change("present", r); ok {
			out = append(out, c)
		}
	}
	return out, nil
}

// follow tells changes until ctx ends.
func (k kernelRoutes) follow(ctx context.Context, begun func(*state), told func(wire.Body)) error {
	updates := make(chan netlink.RouteUpdate, 1024)
	if err := netlink.RouteSubscribe(updates, ctx.Done()); err != nil {
		return fmt.Errorf("follow routes: %w", err)
	}
	begun(nil)
	for u := range updates { // drained to its end: the library would wait for us otherwise
		action := map[uint16]string{unix.RTM_NEWROUTE: "set", unix.RTM_DELROUTE: "delete"}[u.Type]
		if c, ok := k.change(action, u.Route); ok && action != "" && ctx.Err() == nil {
			c.AtBootNs = k.boot()
			told(&c)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errRoutes
}

// errRoutes says that changes of routes may be missed: the kernel gives up who is slow to read them (ENOBUFS).
var errRoutes = errors.New("the kernel's messages of routes ended")

// alongside follows the kernel's routes as long as a daemon lives. Whichever ends first ends the other, and says why.
func alongside(ctx context.Context, routes, life func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	for _, f := range []func(context.Context) error{routes, life} {
		go func() { ended <- f(ctx) }()
	}
	first := <-ended
	cancel()
	<-ended
	return first
}

// change is a route as a record; false for one that is not the daemon's, or
// that only says that there is no way.
func (k kernelRoutes) change(action string, r netlink.Route) (wire.RouteChange, bool) {
	if int(r.Protocol) != k.protocol || r.Table != unix.RT_TABLE_MAIN || r.Dst == nil || r.Dst.IP.To4() == nil ||
		r.Type != unix.RTN_UNICAST && action != "delete" {
		return wire.RouteChange{}, false
	}
	metric := float64(r.Priority)
	c := wire.RouteChange{Action: action, Destination: r.Dst.String(), Metric: &metric}
	if action == "delete" {
		c.Metric = nil
		return c, true
	}
	for _, hop := range r.MultiPath {
		c.NextHops = append(c.NextHops, hop.Gw.String())
	}
	switch {
	case len(r.MultiPath) > 0:
	case r.Gw != nil:
		c.NextHops = []string{r.Gw.String()}
	default:
		c.NextHops = []string{r.Dst.IP.String()}
	}
	return c, true
}

// meshAddress is the IPv4 address of the neighbour that a link-local address
// was made from the hardware address of (RFC 4291, appendix A), as the
// kernel's neighbour table has it; the address itself where it does not tell.
func meshAddress(device string, linkLocal string, table []netlink.Neigh) string {
	addr, err := netip.ParseAddr(linkLocal)
	if err != nil || !addr.Is6() {
		return linkLocal
	}
	b := addr.As16()
	if b[11] != 0xff || b[12] != 0xfe {
		return linkLocal
	}
	mac := net.HardwareAddr{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]}
	for _, n := range table {
		if n.IP.To4() != nil && n.HardwareAddr.String() == mac.String() {
			return n.IP.String()
		}
	}
	return linkLocal
}

// neighborTable reads the kernel's table of an interface.
func neighborTable(device string) ([]netlink.Neigh, error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", device, err)
	}
	table, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	return table, nil
}

func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &v
}
