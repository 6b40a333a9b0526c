package manetd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighborsMax bounds what spoofed addresses can make the daemon hold.
const neighborsMax = 4096

// neighbors knows the neighbours' hardware addresses, as the kernel resolved
// them, and reports those that the kernel could not reach.
type neighbors struct {
	index int // of the interface

	mu    sync.Mutex
	byIP  map[netip.Addr][6]byte
	byMAC map[[6]byte]netip.Addr
}

func newNeighbors(index int) *neighbors {
	return &neighbors{index: index, byIP: map[netip.Addr][6]byte{}, byMAC: map[[6]byte]netip.Addr{}}
}

// watch follows the kernel's table until ctx ends. resolved is called for an
// address that has become known, failed for one that does not answer.
func (n *neighbors) watch(ctx context.Context, resolved, failed func(netip.Addr)) error {
	updates := make(chan netlink.NeighUpdate, 256)
	var broken error
	err := netlink.NeighSubscribeWithOptions(updates, ctx.Done(), netlink.NeighSubscribeOptions{
		ListExisting: true, ErrorCallback: func(err error) { broken = err }})
	if err != nil {
		return fmt.Errorf("follow neighbours: %w", err)
	}
	for u := range updates { // drained to its end: the library would wait for us otherwise
		if u.LinkIndex != n.index || u.Family != unix.AF_INET || ctx.Err() != nil {
			continue
		}
		ip, ok := netip.AddrFromSlice(u.IP.To4())
		if !ok {
			continue
		}
		switch {
		case u.Type == unix.RTM_NEWNEIGH && u.State&netlink.NUD_FAILED != 0:
			failed(ip)
		case u.Type == unix.RTM_NEWNEIGH && len(u.HardwareAddr) == 6 &&
			u.State&(netlink.NUD_INCOMPLETE|netlink.NUD_NOARP) == 0:
			if n.learn(ip, [6]byte(u.HardwareAddr)) {
				resolved(ip)
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("follow neighbours: %w", errors.Join(errors.New("the kernel's messages ended"), broken))
}

func (n *neighbors) learn(ip netip.Addr, mac [6]byte) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.byIP[ip]; ok {
		if old == mac {
			return false
		}
		delete(n.byMAC, old)
	}
	if len(n.byIP) >= neighborsMax {
		clear(n.byIP)
		clear(n.byMAC)
	}
	n.byIP[ip], n.byMAC[mac] = mac, ip
	return true
}

// ip is the address of a neighbour, not valid for one that is not known.
func (n *neighbors) ip(mac [6]byte) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byMAC[mac]
}

func (n *neighbors) mac(ip netip.Addr) ([6]byte, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	mac, ok := n.byIP[ip]
	return mac, ok
}

// ask has the kernel find a neighbour's hardware address, or check whether one
// that it knows is still there.
func (n *neighbors) ask(ip netip.Addr) error {
	err := netlink.NeighSet(&netlink.Neigh{LinkIndex: n.index, Family: unix.AF_INET, IP: net.IP(ip.AsSlice()),
		Flags: netlink.NTF_USE})
	if err != nil {
		return fmt.Errorf("resolve %s: %w", ip, err)
	}
	return nil
}

// probe has the kernel ask a neighbour that it knows, at once.
func (n *neighbors) probe(ip netip.Addr) error {
	mac, ok := n.mac(ip)
	if !ok {
		return n.ask(ip)
	}
	err := netlink.NeighSet(&netlink.Neigh{LinkIndex: n.index, Family: unix.AF_INET, IP: net.IP(ip.AsSlice()),
		HardwareAddr: mac[:], State: netlink.NUD_PROBE})
	if err != nil {
		return fmt.Errorf("probe %s: %w", ip, err)
	}
	return nil
}
