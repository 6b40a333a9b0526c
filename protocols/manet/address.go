package manet

import "net/netip"

// Host is the prefix of one address.
func Host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Unicast reports whether an IPv4 address may be that of a node.
func Unicast(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.As4() != [4]byte{255, 255, 255,
		255}
}
