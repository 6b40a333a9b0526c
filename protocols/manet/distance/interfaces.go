package distance

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Interface is one of the node's, and whether it is up.
type Interface struct {
	manet.Interface
	Up bool
}

// Interfaces are those of a node.
type Interfaces []Interface

// NewInterfaces takes all of them for up.
func NewInterfaces(all []manet.Interface) (out Interfaces) {
	for _, i := range all {
		out = append(out, Interface{i, true})
	}
	return out
}

// IsOwn reports whether an address is one of the node's.
func (f Interfaces) IsOwn(a netip.Addr) bool {
	return slices.ContainsFunc(f, func(i Interface) bool { return i.Address == a })
}

// Accept reports whether a packet came in on an interface that is up, from an
// address that may be a neighbour's.
func (f Interfaces) Accept(p manet.Packet) bool {
	return p.Interface >= 0 && p.Interface < len(f) && f[p.Interface].Up && manet.Unicast(p.From) && !f.IsOwn(p.From)
}

// Set takes an interface up or down, and reports whether that changed anything.
func (f Interfaces) Set(i int, up bool) bool {
	if i < 0 || i >= len(f) || f[i].Up == up {
		return false
	}
	f[i].Up = up
	return true
}

// Own is what a node reports about itself.
func (f Interfaces) Own(seq uint32) (out []Entry) {
	for _, i := range f {
		out = append(out, Entry{To: i.Address, Seq: seq})
	}
	return out
}

// Send makes the packets of an update, on every interface that is up.
func (f Interfaces) Send(u Update, kind string, forwarded bool, n *Neighbors, jitter *manet.Jitter) (out []manet.Send) {
	u.Boot = n.Boot
	for i := range f {
		if !f[i].Up {
			continue
		}
		for _, part := range u.Split(n.List(i), f[i].MTU, jitter) {
			data := part.Marshal()
			out = append(out, manet.Send{Interface: i, TTL: 1, Data: data,
				Messages: []manet.Message{{Kind: kind, Bytes: len(data), Forwarded: forwarded}}})
		}
	}
	return out
}
