package batman

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	rtnl "github.com/vishvananda/netlink"
)

// tqMax is the transmit quality of a path that loses nothing
// (BATADV_TQ_MAX_VALUE).
const tqMax = 255

// State is what the module knows. Batman-adv speaks of hardware addresses; a
// node has its IPv4 address here where the mesh's address resolution (ARP, and
// batman-adv's cache of it) tells, else the IPv6 link-local address made from
// the hardware address (RFC 4291, appendix A).
type State struct {
	Neighbors   []Neighbor `json:"neighbors"`
	Routes      []Route    `json:"routes"`      // to nodes whose IPv4 address is known
	Originators int        `json:"originators"` // that there is a way to
}

// Neighbor is a node that is heard directly.
type Neighbor struct {
	Addr      string   `json:"addr"`
	Symmetric bool     `json:"symmetric"`      // there is a way to it without others
	Cost      *float64 `json:"cost,omitempty"` // 255/TQ: 1 is a link that loses nothing
}

// Route is the best path to a node.
type Route struct {
	Destination string  `json:"destination"` // 10.77.0.3/32
	NextHop     string  `json:"next_hop"`
	Cost        float64 `json:"cost"`
}

// tables are the module's, and the kernel's neighbours of the mesh's device.
type tables struct {
	originators, neighbors, clients, cached []entry
	resolved                                []rtnl.Neigh
}

// Read reads the state of the mesh of a device. It needs root.
func Read(device string) (State, error) {
	link, err := rtnl.LinkByName(device)
	if err != nil {
		return State{}, fmt.Errorf("find interface %q: %w", device, err)
	}
	c, err := open(link.Attrs().Index)
	if err != nil {
		return State{}, err
	}
	var t tables
	for _, what := range []struct {
		command uint8
		into    *[]entry
	}{{getOriginators, &t.originators}, {getNeighbors, &t.neighbors}, {getTransTableGlobal, &t.clients}} {
		if *what.into, err = c.dump(what.command); err != nil {
			return State{}, errors.Join(err, c.c.Close())
		}
	}
	t.cached, _ = c.dump(getDATCache) // a kernel may be built without
	if err := c.c.Close(); err != nil {
		return State{}, err
	}
	if t.resolved, err = rtnl.NeighList(link.Attrs().Index, rtnl.FAMILY_V4); err != nil {
		return State{}, fmt.Errorf("list neighbours of %q: %w", device, err)
	}
	return t.state(), nil
}

func (t tables) state() State {
	addrs := t.addresses()
	name := func(mac net.HardwareAddr) string {
		if known := addrs[mac.String()]; len(known) > 0 {
			return known[0].String()
		}
		return linkLocal(mac)
	}
	out := State{Neighbors: []Neighbor{}, Routes: []Route{}}
	for _, n := range t.neighbors {
		neighbor := Neighbor{Addr: name(n.neigh)}
		for _, o := range t.originators {
			if o.tq > 0 && slices.Equal(o.orig, n.neigh) && slices.Equal(o.neigh, n.neigh) {
				cost := tqMax / float64(o.tq)
				neighbor.Symmetric, neighbor.Cost = true, &cost
			}
		}
		out.Neighbors = append(out.Neighbors, neighbor)
	}
	for _, o := range t.originators {
		if !o.best || o.tq == 0 {
			continue
		}
		out.Originators++
		for _, a := range addrs[o.orig.String()] {
			out.Routes = append(out.Routes, Route{Destination: netip.PrefixFrom(a, 32).String(), NextHop: name(o.neigh),
				Cost: tqMax / float64(o.tq)})
		}
	}
	slices.SortFunc(out.Neighbors, func(a, b Neighbor) int { return strings.Compare(a.Addr, b.Addr) })
	slices.SortFunc(out.Routes, func(a, b Route) int { return strings.Compare(a.Destination, b.Destination) })
	return out
}

// addresses are the IPv4 addresses behind each originator.
func (t tables) addresses() map[string][]netip.Addr {
	origin := map[string]string{} // of a client, which is a node's own mesh device too
	for _, o := range t.originators {
		origin[DeviceAddress(o.orig).String()] = o.orig.String()
	}
	for _, c := range t.clients {
		origin[c.client.String()] = c.orig.String()
	}
	out := map[string][]netip.Addr{}
	add := func(ip net.IP, mac net.HardwareAddr) {
		a, ok := netip.AddrFromSlice(ip.To4())
		o := origin[mac.String()]
		if ok && o != "" && !slices.Contains(out[o], a) {
			out[o] = append(out[o], a)
			slices.SortFunc(out[o], netip.Addr.Compare)
		}
	}
	for _, r := range t.resolved {
		add(r.IP, r.HardwareAddr)
	}
	for _, e := range t.cached {
		add(e.addr, e.client)
	}
	return out
}

// DeviceAddress is the hardware address that the mesh's device has at a node of
// ours, from that of the interface below, which names the originator: another
// one, of those that are given locally. The module's table of clients does not
// tell a client that it has only heard of (BATADV_TT_CLIENT_TEMP), and may know
// no more of it for minutes.
func DeviceAddress(below net.HardwareAddr) net.HardwareAddr {
	out := slices.Clone(below)
	if len(out) > 0 {
		out[0] = (out[0] | 2) ^ 4
	}
	return out
}

// linkLocal is the address made from a hardware address.
func linkLocal(mac net.HardwareAddr) string {
	if len(mac) != 6 {
		return mac.String()
	}
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3],
		14: mac[4], 15: mac[5]}).String()
}
