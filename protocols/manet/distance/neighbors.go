package distance

import (
	"net/netip"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Neighbors is who was heard on which interface, and who hears us. A neighbour
// counts once it lists this node's present life among those that it hears:
// nothing is learned over a link in one direction, and nothing of those who
// still route over this node as it was before a reboot.
type Neighbors struct {
	Boot       uint32 // names this life of this node
	Hold       manet.Time
	MaxEntries int
	list       map[Link]*neighbor
}

// Link is a neighbour's address and the interface that it is heard on.
type Link struct {
	Addr  netip.Addr
	Iface int
}

type neighbor struct {
	boot  uint32
	until manet.Time // heard
	both  manet.Time // until then it is known to hear us
	early []Entry    // its last entry for each destination while it was not
}

// earlyMost bounds what is kept of one neighbour: more nodes than a campaign can have.
const earlyMost = 256

// NewNeighbors makes an empty list.
func NewNeighbors(boot uint32, hold manet.Time, maxEntries int) *Neighbors {
	return &Neighbors{Boot: boot, Hold: hold, MaxEntries: maxEntries, list: map[Link]*neighbor{}}
}

// Arrival is what a packet says of its sender.
type Arrival struct {
	New       bool    // not known before, or rebooted
	Lost      bool    // what was learned of it no longer holds: it rebooted, or ceased to hear us
	Symmetric bool    // it hears us
	Became    bool    // symmetric by this packet
	Early     []Entry // its last entry for each destination before it became so
}

// Heard takes note of a packet. own is the address of the interface that it
// came in on.
func (n *Neighbors) Heard(now manet.Time, l Link, own netip.Addr, u *Update) (a Arrival) {
	nb := n.list[l]
	if nb == nil {
		if len(n.list) >= n.MaxEntries {
			return a
		}
		nb = &neighbor{boot: u.Boot}
		n.list[l], a.New = nb, true
	}
	was := nb.both > now
	if nb.boot != u.Boot {
		nb.boot, nb.both, nb.early = u.Boot, 0, nil
		a.New = true
	}
	nb.until = now + n.Hold
	if slices.Contains(u.Heard, Heard{own, n.Boot}) {
		nb.both = now + n.Hold
	} else if u.Complete {
		nb.both = 0
	}
	a.Symmetric = nb.both > now
	a.Lost = was && (a.New || !a.Symmetric)
	a.Became = a.Symmetric && (!was || a.New)
	if a.Symmetric {
		a.Early, nb.early = nb.early, nil
	} else {
		nb.keep(u.Entries)
	}
	return a
}

// keep takes entries of who does not hear us yet: a full dump may come in parts, and an empty greeting after it.
func (nb *neighbor) keep(entries []Entry) {
	for _, e := range entries {
		same := func(old Entry) bool { return old.To == e.To }
		if at := slices.IndexFunc(nb.early, same); at >= 0 {
			nb.early[at] = e
		} else if len(nb.early) < earlyMost {
			nb.early = append(nb.early, e)
		}
	}
}

// Remove forgets a neighbour until it is heard again, and reports whether it was
// one.
func (n *Neighbors) Remove(l Link) bool {
	_, known := n.list[l]
	delete(n.list, l)
	return known
}

// Expire forgets who was not heard for too long and returns all who no longer
// count: those, and who ceased to list us.
func (n *Neighbors) Expire(now manet.Time) (lost []Link) {
	for l, nb := range n.list {
		switch {
		case nb.until <= now:
			delete(n.list, l)
			lost = append(lost, l)
		case nb.both != 0 && nb.both <= now:
			nb.both = 0
			lost = append(lost, l)
		}
	}
	slices.SortFunc(lost, compareLinks)
	return lost
}

// Next is when the first of them may be lost, at the latest after Hold: those
// that come meanwhile last longer.
func (n *Neighbors) Next(now manet.Time) manet.Time {
	next := now + n.Hold
	for _, nb := range n.list {
		next = min(next, nb.until)
		if nb.both > 0 {
			next = min(next, nb.both)
		}
	}
	return next
}

// RemoveInterface forgets and returns the neighbours on an interface.
func (n *Neighbors) RemoveInterface(iface int) (lost []Link) {
	for l := range n.list {
		if l.Iface == iface {
			delete(n.list, l)
			lost = append(lost, l)
		}
	}
	slices.SortFunc(lost, compareLinks)
	return lost
}

func compareLinks(a, b Link) int {
	if a.Iface != b.Iface {
		return a.Iface - b.Iface
	}
	return a.Addr.Compare(b.Addr)
}

// Len is how many neighbours are known.
func (n *Neighbors) Len() int { return len(n.list) }

// List is who is heard on an interface, for an update.
func (n *Neighbors) List(iface int) (out []Heard) {
	for l, nb := range n.list {
		if l.Iface == iface {
			out = append(out, Heard{l.Addr, nb.boot})
		}
	}
	slices.SortFunc(out, func(a, b Heard) int { return a.Addr.Compare(b.Addr) })
	return out
}

// State is the neighbours for a person or a record.
func (n *Neighbors) State(now manet.Time) (out []manet.Neighbor) {
	for l, nb := range n.list {
		out = append(out, manet.Neighbor{Addr: l.Addr, Interface: l.Iface, Symmetric: nb.both > now})
	}
	slices.SortFunc(out, func(a, b manet.Neighbor) int { return a.Addr.Compare(b.Addr) })
	return out
}
