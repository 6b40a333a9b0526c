package simtest

import (
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// Vector is a lab for distance vector protocols: what the node sends is read,
// and neighbours that it has tell it of routes.
type Vector[N manet.Node] struct {
	*Lab[N]
	Sent []Sent
	own  distance.Heard
}

// Sent is an update that the node sent.
type Sent struct {
	At   manet.Time
	Send manet.Send
	*distance.Update
}

// NewVector starts a node with the number of its present life.
func NewVector[N manet.Node](t *testing.T, node N, boot uint32) *Vector[N] {
	t.Helper()
	v := &Vector[N]{own: distance.Heard{Addr: netip.MustParseAddr(Me), Boot: boot}}
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
func (v *Vector[N]) Hear(from string, entries ...distance.Entry) {
	v.T.Helper()
	v.HearUpdate(from, v.Hearing(distance.Update{Entries: entries}))
}

// Hearing is an update of one that hears the node.
func (v *Vector[N]) Hearing(u distance.Update) distance.Update {
	u.Complete, u.Boot, u.Heard = true, 7, []distance.Heard{v.own}
	return u
}

// HearUpdate delivers an update as it is.
func (v *Vector[N]) HearUpdate(from string, u distance.Update) {
	v.T.Helper()
	v.Handle(manet.Packet{From: netip.MustParseAddr(from), TTL: 1, Data: u.Marshal()})
}

// Take removes and returns what was sent.
func (v *Vector[N]) Take() []Sent {
	out := v.Sent
	v.Sent = nil
	return out
}

// Told is the entry for a destination in the last packet that had one, and when
// that was; none is all zero.
func (v *Vector[N]) Told(to string) (e distance.Entry, at manet.Time) {
	for _, s := range v.Sent {
		for _, x := range s.Entries {
			if x.To == netip.MustParseAddr(to) {
				e, at = x, s.At
			}
		}
	}
	return e, at
}

// WantTold asks that a route was last told as an entry.
func (v *Vector[N]) WantTold(want distance.Entry) {
	v.T.Helper()
	if e, _ := v.Told(want.To.String()); e != want {
		v.T.Errorf("told %+v, want %+v", e, want)
	}
}

// Entry is one route as a neighbour tells it.
func Entry(to string, seq uint32, hops uint8) distance.Entry {
	return distance.Entry{To: netip.MustParseAddr(to), Seq: seq, Hops: hops}
}
