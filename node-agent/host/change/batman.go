package change

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
)

// meshState is the device of a mesh of layer 2, to be taken out again. What the
// interface below lost to it is put back by its InterfaceState.
type meshState struct {
	Device string `json:"device"`
	Below  int    `json:"below"` // index of the interface below
	// Made are the kernel's own routes over the interface below. It makes them
	// again with the addresses, those too that a change had replaced.
	Made [][]byte `json:"made,omitempty"`
}

// madeRoutes are the kernel's own routes of IPv4 over an interface.
func madeRoutes(index int) ([][]byte, error) {
	out, err := netstack.RoutesWhere(func(r netstack.RouteMessage) bool {
		return r.Head.Family == unix.AF_INET && r.Head.Protocol == unix.RTPROT_KERNEL && r.Table() ==
			unix.RT_TABLE_MAIN && r.Through(index)
	})
	if err != nil {
		return nil, fmt.Errorf("list the kernel's own routes: %w", err)
	}
	return out, nil
}

// prepareMesh sees to it that there can be a mesh, and that no other is there.
func (u *daemonUndo) prepareMesh(below netlink.Link) error {
	if err := batman.Available(); err != nil {
		return &Refused{Reason: err.Error(), Cure: "use a kernel that has it, such as Debian's, or a plan with other " +
			"routing"}
	}
	other, err := netstack.LookForLink(batman.Device)
	if err != nil {
		return err
	}
	if other != nil {
		return &Refused{Reason: "there is an interface " + batman.Device + " already, which is not ours",
			Cure: "take it out: ip link del " + batman.Device}
	}
	state, err := netstack.ReadInterface(below)
	if err != nil {
		return err
	}
	made, err := madeRoutes(state.Index)
	u.Mesh, u.Interface = &meshState{Device: batman.Device, Below: state.Index, Made: made}, &state
	return err
}

// makeMesh makes the mesh's device, puts the interface into it, and moves the
// mesh's addresses and routes from the interface to the device. Made again, it
// changes nothing more.
func makeMesh(d Daemon, u *daemonUndo) error {
	below, err := netstack.FindLink(d.Interface)
	if err != nil {
		return err
	}
	mesh, err := meshDevice(d, below)
	if err != nil {
		return err
	}
	if below.Attrs().MasterIndex != mesh.Attrs().Index {
		if err := netlink.LinkSetMaster(below, mesh); err != nil {
			return fmt.Errorf("put %q into the mesh: %w", d.Interface, err)
		}
	}
	if d.HelloS != nil {
		if err := batman.SetInterval(mesh.Attrs().Index, time.Duration(*d.HelloS*float64(time.Second))); err != nil {
			return err
		}
	}
	up, mtu := true, below.Attrs().MTU-batman.HeaderBytes
	if err := netstack.SetLink(mesh, &up, &mtu); err != nil {
		return err
	}
	return moveTo(mesh, below, d.Announce.Masked(), u.Interface.Routes)
}

// meshDevice finds or makes the device, without IPv6: the mesh carries IPv4,
// and what the kernel would solicit by itself would be in the measuring window.
func meshDevice(d Daemon, below netlink.Link) (netlink.Link, error) {
	if link, err := netstack.LookForLink(batman.Device); err != nil || link != nil {
		return link, err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = batman.Device, batman.DeviceAddress(below.Attrs().HardwareAddr)
	// The kernel loads the module for it.
	if err := netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: attrs, LinkType: "batadv"}); err != nil {
		return nil, fmt.Errorf("make %q for %s: %w", batman.Device, d.Name, err)
	}
	off := netstack.Setting{Parts: []string{"net", "ipv6", "conf", batman.Device, "disable_ipv6"}}
	if err := netstack.WriteSysctl(off.Path(), "1"); err != nil && !netstack.Absent(err) {
		return nil, err
	}
	return netstack.FindLink(batman.Device)
}

// moveTo moves the addresses in a network, and then the routes into it that
// somebody made, which went with the addresses.
func moveTo(mesh, below netlink.Link, network netip.Prefix, routes [][]byte) error {
	addrs, err := netstack.Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(below, netlink.FAMILY_V4) })
	if err != nil {
		return fmt.Errorf("list addresses of %q: %w", below.Attrs().Name, err)
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); !ok || !network.Contains(ip.Unmap()) {
			continue
		}
		if err := netlink.AddrAdd(mesh, &netlink.Addr{IPNet: a.IPNet}); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add address %s to %q: %w", a.IPNet, batman.Device, err)
		}
		if err := netlink.AddrDel(below, &netlink.Addr{IPNet: a.IPNet}); err != nil {
			return fmt.Errorf("delete address %s of %q: %w", a.IPNet, below.Attrs().Name, err)
		}
	}
	for _, m := range routes {
		r, err := netstack.ParseRoute(m)
		if err != nil {
			return err
		}
		to, ok := r.Destination()
		if !ok || !network.Contains(to.Addr()) || to.Bits() < network.Bits() || r.Table() != unix.RT_TABLE_MAIN {
			continue
		}
		if err := netstack.SendMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
			netstack.ThroughInstead(m, mesh.Attrs().Index)); err != nil {
			return fmt.Errorf("move the route to %s to %q: %w", to, batman.Device, err)
		}
	}
	return nil
}

// revert takes the device out, which lets the interface below go.
func (m *meshState) revert() (string, error) {
	if m == nil {
		return "", nil
	}
	link, err := netstack.LookForLink(m.Device)
	if err != nil || link == nil {
		return "", err
	}
	if link.Type() != "batadv" {
		return m.Device + " is another interface now", nil
	}
	if err := netlink.LinkDel(link); err != nil {
		return "", fmt.Errorf("take out %q: %w", m.Device, err)
	}
	return "", nil
}

// revertRoutes takes out what the kernel made again, once the addresses are
// back, of routes to their networks that were not there. Other addresses have come since, and keep theirs.
func (m *meshState) revertRoutes(back *netstack.InterfaceState) (string, error) {
	if m == nil {
		return "", nil
	}
	now, err := madeRoutes(m.Below)
	if err != nil {
		return "", err
	}
	var networks []netip.Prefix
	for _, p := range back.Prefixes() {
		networks = append(networks, p.Masked())
	}
	var errs []error
	for _, route := range now {
		if slices.ContainsFunc(m.Made, func(was []byte) bool { return slices.Equal(was, route) }) {
			continue
		}
		r, err := netstack.ParseRoute(route)
		if err != nil {
			return "", err
		}
		if to, ok := r.Destination(); !ok || !slices.Contains(networks, to) {
			continue
		}
		if err := netstack.SendMessage(unix.RTM_DELROUTE, 0, route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("delete a route of the kernel's: %w", err))
		}
	}
	return "", errors.Join(errs...)
}
