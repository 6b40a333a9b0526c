package simtest

import (
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// Vector is a lab for distance vector protocols: what the node sends is read,
// and neighbours that it has tell it of routes.
type Vector struct {
	*Lab
	Sent []Sent
	own  distance.Heard
}

// Sent is an update that the node sent.
type Sent struct {
	At   manet.Time
	Send manet.Send
	*distance.Update
}

// NewVector starts a node with an address and the number of its present life.
func NewVector(t *testing.T, node manet.Node, own string, boot uint32) *Vector {
	t.Helper()
	v := &Vector{own: distance.Heard{Addr: netip.MustParseAddr(own), Boot: boot}}
	v.Lab = NewLab(t, node, func(s manet.Send) {
		u, err := distance.Parse(s.Data)
		if err != nil {
			t.Fatalf("the node sent a packet that cannot be read: %v", err)
		}
		if s.To.IsValid() || s.TTL != 1 {
			t.Errorf("sent to %v with a TTL of %d, want all neighbours and 1", s.To, s.TTL)
		}
		v.Sent = append(v.Sent, Sent{v.Now, s, u})
	})
	return v
}

// Hear delivers an incremental update from a neighbour that hears the node.
func (v *Vector) Hear(from string, entries ...distance.Entry) {
	v.T.Helper()
	v.HearUpdate(from, v.Hearing(distance.Update{Entries: entries}))
}

// Hearing is an update of one that hears the node.
func (v *Vector) Hearing(u distance.Update) distance.Update {
	u.Complete, u.Boot, u.Heard = true, 7, []distance.Heard{v.own}
	return u
}

// HearUpdate delivers an update as it is.
func (v *Vector) HearUpdate(from string, u distance.Update) {
	v.T.Helper()
	v.Handle(manet.Packet{From: netip.MustParseAddr(from), TTL: 1, Data: u.Marshal()})
}

// Take removes and returns what was sent.
func (v *Vector) Take() []Sent {
	out := v.Sent
	v.Sent = nil
	return out
}

// Told is the entry for a destination in the last packet that had one, and when
// that was; none is all zero.
func (v *Vector) Told(to string) (e distance.Entry, at manet.Time) {
	for _, s := range v.Sent {
		for _, x := range s.Entries {
			if x.To == netip.MustParseAddr(to) {
				e, at = x, s.At
			}
		}
	}
	return e, at
}

// Entry is one route as a neighbour tells it.
func Entry(to string, seq uint32, hops uint8) distance.Entry {
	return distance.Entry{To: netip.MustParseAddr(to), Seq: seq, Hops: hops}
}

// Variants makes nodes of a protocol by a configuration that a seed chooses.
// change has the last word; the seed that it gets is the node's.
func Variants[C any, N manet.Node](variant func(seed uint64, interfaces []manet.Interface) (C, bool),
	change func(c *C, seed uint64),
	build func(C) (N, error)) func(variantSeed uint64) simulation.Maker {
	return func(variantSeed uint64) simulation.Maker {
		return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
			c, _ := variant(variantSeed, interfaces)
			change(&c, seed)
			return build(c)
		}
	}
}
