package change

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// Address adds an address to an interface.
type Address struct {
	Interface string       `json:"interface"`
	Prefix    netip.Prefix `json:"prefix"` // the address with its prefix length: 10.77.0.1/24
}

func (a Address) Target() string { return a.String() }
func (a Address) String() string { return fmt.Sprintf("address %s on %s", a.Prefix, a.Interface) }

func (a Address) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(a.Interface); reason != "" {
		return reason, cure
	}
	if addr := a.Prefix.Addr(); addr.Is4In6() || addr.Zone() != "" || addr.IsMulticast() {
		return "not a plain unicast address", ""
	}
	return p.checkWithin("address", a.Prefix)
}

func (a Address) prepare(*Kernel, uint64) (*addressUndo, error) {
	link, err := netstack.FindLink(a.Interface)
	if err != nil {
		return nil, err
	}
	there, err := hasAddress(link, a)
	if err != nil || there {
		return &addressUndo{}, err
	}
	return &addressUndo{Address: &addedAddress{Address: a, Index: link.Attrs().Index}}, nil
}

func hasAddress(link netlink.Link, a Address) (bool, error) {
	addrs, err := netstack.Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return false, fmt.Errorf("list addresses of %q: %w", a.Interface, err)
	}
	want := netstack.IPNet(a.Prefix)
	for _, addr := range addrs {
		if addr.IP.Equal(want.IP) && addr.Mask.String() == want.Mask.String() {
			return true, nil
		}
	}
	return false, nil
}

func (a Address) apply(*Kernel, *addressUndo) error {
	link, err := netstack.FindLink(a.Interface)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: netstack.IPNet(a.Prefix)}
	if a.Prefix.Addr().Is6() {
		// Detecting duplicates would hold the address back for seconds, and
		// the plan gives each node its own.
		address.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, address); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add address %s to %q: %w", a.Prefix, a.Interface, err)
	}
	return nil
}

// addressUndo deletes an address that was not there before.
type addressUndo struct {
	placed
	Address *addedAddress `json:"address,omitempty"` // absent: it was there
}

type addedAddress struct {
	Address
	Index int `json:"index"`
}

func (u *addressUndo) void(*Kernel) bool {
	_, index := u.on()
	return netstack.Vanished(index)
}

func (u *addressUndo) revert(*Kernel) (string, error) {
	if u.Address == nil {
		return "", nil
	}
	link, err := netstack.SameLink(u.Address.Index)
	if err != nil || link == nil {
		return netstack.Gone(u.Address.Interface), err
	}
	err = netstack.DeleteAddress(link, u.Address.Prefix)
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return "", fmt.Errorf("delete address %s of %q: %w", u.Address.Prefix, u.Address.Interface, err)
	}
	return "", nil
}

func (u *addressUndo) on() (string, int) {
	if u.Address == nil {
		return "", 0
	}
	return u.Address.Interface, u.Address.Index
}
