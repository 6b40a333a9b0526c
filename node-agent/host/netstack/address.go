package netstack

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// DeleteAddress deletes one address of an interface, and none of the others in its subnet, which the kernel else
// deletes with the subnet's first one unless promote_secondaries is set.
func DeleteAddress(link netlink.Link, address netip.Prefix) (err error) {
	promote := Setting{Parts: []string{"net", "ipv4", "conf", link.Attrs().Name, "promote_secondaries"}}.Path()
	was, unread := ReadSysctl(promote)
	if address.Addr().Is4() && unread == nil && was == "0" && WriteSysctl(promote, "1") == nil {
		defer func() { err = errors.Join(err, WriteSysctl(promote, was)) }()
	}
	return netlink.AddrDel(link, &netlink.Addr{IPNet: IPNet(address)})
}
