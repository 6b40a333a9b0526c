package distance

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Config is what a node of any distance vector protocol is told.
type Config struct {
	Interfaces []manet.Interface
	Seed       uint64
	// FirstSeq is the first own number, even. One that others remember a newer
	// number of goes beyond it as soon as it hears so.
	FirstSeq   uint32
	MaxEntries int // bound of every table against hostile packets
}

// Check says what is wrong with the configuration of a protocol.
func (c *Config) Check(protocol string) error {
	if len(c.Interfaces) == 0 || len(c.Interfaces) > 32 {
		return fmt.Errorf("configure %s: %d interfaces, want 1 to 32", protocol, len(c.Interfaces))
	}
	for _, i := range c.Interfaces {
		if !manet.Unicast(i.Address) {
			return fmt.Errorf("configure %s: interface %q has address %q, want an IPv4 address", protocol, i.Name,
				i.Address)
		}
	}
	if c.FirstSeq%2 != 0 {
		return fmt.Errorf("configure %s: first number %d is odd: those are of broken routes", protocol, c.FirstSeq)
	}
	if c.MaxEntries < 16 {
		return fmt.Errorf("configure %s: tables of %d entries are too small", protocol, c.MaxEntries)
	}
	return nil
}

// Node is what the node of any distance vector protocol has: its interfaces,
// neighbours and routes, and what happens to them when a link is lost.
type Node[E any] struct {
	manet.Turn
	Interfaces manet.Interfaces
	Jitter     *manet.Jitter
	Table      *Table[E]
	Neighbors  *Neighbors
	Seq        uint32 // own, even
	broke      func(*Route[E])
}

// NewNode makes a node. hold is how long a neighbour that is silent counts;
// broke is called for each route that breaks with its link.
func NewNode[E any](c Config, hold manet.Time, broke func(*Route[E])) *Node[E] {
	n := &Node[E]{Interfaces: manet.NewInterfaces(c.Interfaces), Jitter: manet.NewJitter(c.Seed), Seq: c.FirstSeq,
		broke: broke}
	n.Table = NewTable[E](c.MaxEntries, n.Act)
	n.Neighbors = NewNeighbors(n.Jitter.Uint32(), hold, c.MaxEntries)
	return n
}

// WakeBy makes sure of a timer by a time. due is when it is due, 0 where it is
// not set.
func (n *Node[E]) WakeBy(at manet.Time, kind uint8, due *manet.Time) {
	if *due == 0 || at < *due {
		*due = at
		n.Act(manet.SetTimer{Key: manet.TimerKey{Kind: kind}, At: at})
	}
}

// Hear takes note of who sent an update.
func (n *Node[E]) Hear(p manet.Packet, u *Update) (Link, Arrival) {
	l := Link{Addr: p.From, Iface: p.Interface}
	a := n.Neighbors.Heard(n.Now, l, n.Interfaces[p.Interface].Address, u)
	if a.Lost {
		n.lost(l)
	}
	return l, a
}

// Outgrow goes beyond a number of ours that we do not know, and reports whether
// it was one: it is from before a reboot, or from someone who lost the route to
// us.
func (n *Node[E]) Outgrow(seq uint32) bool {
	if !manet.After32(seq, n.Seq) {
		return false
	}
	n.Seq = seq&^1 + 2
	return true
}

// Lose takes in the events by which neighbours are lost.
func (n *Node[E]) Lose(event manet.Event) {
	switch e := event.(type) {
	case manet.LinkFailed:
		n.Table.Cause = "link_failed"
		l := Link{Addr: e.Neighbor, Iface: e.Interface}
		if n.Neighbors.Remove(l) {
			n.lost(l)
		} else {
			n.breakOver(l)
		}
	case manet.InterfaceDown:
		n.Table.Cause = "interface_down"
		if !n.Interfaces.Set(e.Interface, false) {
			return
		}
		for _, l := range n.Neighbors.RemoveInterface(e.Interface) {
			n.lost(l)
		}
	}
}

// ExpireNeighbors loses those that have gone silent.
func (n *Node[E]) ExpireNeighbors() {
	n.Table.Cause = "neighbor_lost"
	for _, l := range n.Neighbors.Expire(n.Now) {
		n.lost(l)
	}
}

// lost tells that a neighbour is lost.
func (n *Node[E]) lost(l Link) {
	n.Act(manet.Report{Kind: "neighbor_lost", Addr: l.Addr})
	n.breakOver(l)
}

// breakOver breaks the routes over a neighbour.
func (n *Node[E]) breakOver(l Link) {
	for _, r := range n.Table.BreakOver(n.Now, l.Addr, l.Iface) {
		n.broke(r)
	}
}

// Own is what the node reports about itself.
func (n *Node[E]) Own() (out []Entry) {
	for _, i := range n.Interfaces {
		out = append(out, Entry{To: i.Address, Seq: n.Seq})
	}
	return out
}

// Send sends the packets of an update on every interface that is up.
func (n *Node[E]) Send(u Update, kind string, forwarded bool) {
	u.Boot = n.Neighbors.Boot
	for i, f := range n.Interfaces {
		if !f.Up {
			continue
		}
		for _, part := range u.Split(n.Neighbors.List(i), f.MTU, n.Jitter) {
			data := part.Marshal()
			n.Act(manet.Send{Interface: i, TTL: 1, Data: data,
				Messages: []manet.Message{{Kind: kind, Bytes: len(data), Forwarded: forwarded}}})
		}
	}
}

// Describe is the state of a protocol's node, but for tables of its own.
func (n *Node[E]) Describe(protocol string, now manet.Time) manet.State {
	return manet.State{Protocol: protocol, Neighbors: n.Neighbors.State(now), Routes: n.Table.State(),
		Counters:   n.Counters(),
		TableSizes: map[string]int{"routes": n.Table.Len(), "neighbors": n.Neighbors.Len()}}
}
