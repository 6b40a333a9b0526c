package host

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// Readback is what is in force on a node, for a trial's provenance. What
// cannot be read is absent.
type Readback struct {
	Addresses []string          `json:"addresses"` // of the interface, "10.77.0.1/24"
	Routes    []string          `json:"routes"`    // of the main table over the interface, as ip(8) words them
	Sysctls   map[string]string `json:"sysctls"`   // of the keys asked for
	Offloads  map[string]bool   `json:"offloads"`  // gro, gso, tso, sg, rx_checksum, tx_checksum
}

// readback reads; only allowed interfaces and keys, for this process may read
// what its caller may not.
func readback(p change.Policy, call readbackCall) (Readback, error) {
	if reason, cure := p.CheckInterface(call.Interface); reason != "" {
		return Readback{}, &change.Refused{Change: "readback", Reason: reason, Cure: cure}
	}
	out := Readback{Addresses: []string{}, Routes: []string{}, Sysctls: map[string]string{},
		Offloads: netstack.Offloads(call.Interface)}
	for _, name := range call.Sysctls {
		path, err := change.SysctlPath(name)
		if err != nil {
			return Readback{}, &change.Refused{Change: "readback", Reason: err.Error()}
		}
		switch value, err := netstack.ReadSysctl(path); {
		case err == nil:
			out.Sysctls[name] = value
		case !netstack.Absent(err):
			return Readback{}, err
		}
	}
	link, err := netstack.FindLink(call.Interface)
	if err != nil {
		return Readback{}, err
	}
	addrs, err := netstack.Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return Readback{}, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addrs {
		out.Addresses = append(out.Addresses, a.IPNet.String())
	}
	routes, err := netstack.Redump(func() ([]netlink.Route, error) {
		return netlink.RouteList(link, netlink.FAMILY_ALL)
	})
	if err != nil {
		return Readback{}, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		out.Routes = append(out.Routes, wordRoute(r, call.Interface))
	}
	return out, nil
}

func wordRoute(r netlink.Route, device string) string {
	out := change.Route{Interface: device, Metric: r.Priority, Congestion: r.Congctl, QuickAck: r.QuickACK != 0}
	if r.Dst != nil {
		ones, _ := r.Dst.Mask.Size()
		if addr, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			out.Destination = netip.PrefixFrom(addr.Unmap(), ones)
		}
	}
	if addr, ok := netip.AddrFromSlice(r.Gw); ok {
		addr = addr.Unmap()
		out.Via = &addr
	}
	if addr, ok := netip.AddrFromSlice(r.Src); ok {
		addr = addr.Unmap()
		out.Source = &addr
	}
	return out.String()[len("route "):] + " proto " + r.Protocol.String()
}
