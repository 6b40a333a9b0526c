package manet

import (
	"net/netip"
	"slices"
)

// InterfaceState is an interface of a node, and whether it is up.
type InterfaceState struct {
	Interface
	Up bool
}

// Interfaces are those of a node.
type Interfaces []InterfaceState

// NewInterfaces takes all of them for up.
func NewInterfaces(all []Interface) (out Interfaces) {
	for _, i := range all {
		out = append(out, InterfaceState{i, true})
	}
	return out
}

// IsOwn reports whether an address is one of the node's.
func (f Interfaces) IsOwn(a netip.Addr) bool {
	return slices.ContainsFunc(f, func(i InterfaceState) bool { return i.Address == a })
}

// IsOther reports whether an address may be another node's.
func (f Interfaces) IsOther(a netip.Addr) bool { return Unicast(a) && !f.IsOwn(a) }

// Accept reports whether a packet came in on an interface that is up, from an
// address that may be a neighbour's.
func (f Interfaces) Accept(p Packet) bool {
	return p.Interface >= 0 && p.Interface < len(f) && f[p.Interface].Up && f.IsOther(p.From)
}

// Set takes an interface up or down, and reports whether that changed anything.
func (f Interfaces) Set(i int, up bool) bool {
	if i < 0 || i >= len(f) || f[i].Up == up {
		return false
	}
	f[i].Up = up
	return true
}
