package adv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/distance"
)

// Kinds of updates, in the header of package distance.
const (
	kindUpdate = 0
	kindFlood  = 1 // a Flood follows the entries
)

// Flags of an entry.
const (
	flagRequest = 0x01 // the sender has no route for packets; Value says how many have come
	flagUnknown = 0x02 // the sender knows no number of it
)

// FloodType says what goes to all nodes.
type FloodType uint8

// Types of floods.
const (
	Init     FloodType = 1 + iota // the originator has data for the receiver
	End                           // and has no more
	Alert                         // the originator is an active receiver
	NonAlert                      // and is none any more
)

// String is the type's name in counts of messages.
func (t FloodType) String() string {
	switch t {
	case Init:
		return "INIT"
	case End:
		return "END"
	case Alert:
		return "ALERT"
	}
	return "NON-ALERT"
}

// floodBytes is the length of a Flood.
const floodBytes = 20

// Flood goes to all nodes, each of which sends it once.
type Flood struct {
	Type       FloodType
	TTL        uint8
	KnownSeq   bool // Seq is the newest number of the receiver that the originator knows
	Originator netip.Addr
	ID         uint32
	Receiver   netip.Addr
	Seq        uint32
}

// Marshal writes the flood.
func (f Flood) Marshal() []byte {
	known := byte(0)
	if f.KnownSeq {
		known = 1
	}
	from, to := f.Originator.As4(), f.Receiver.As4()
	b := append(make([]byte, 0, floodBytes), byte(f.Type), f.TTL, known, 0)
	b = append(b, from[:]...)
	b = binary.BigEndian.AppendUint32(b, f.ID)
	b = append(b, to[:]...)
	return binary.BigEndian.AppendUint32(b, f.Seq)
}

// ParseFlood reads a flood, which fills what it stands in. Its errors are
// manet.ErrMalformed.
func ParseFlood(b []byte) (f Flood, err error) {
	if len(b) != floodBytes || b[0] < byte(Init) || b[0] > byte(NonAlert) || b[2] > 1 || b[3] != 0 {
		return f, fmt.Errorf("%w flood of %d bytes", manet.ErrMalformed, len(b))
	}
	return Flood{Type: FloodType(b[0]), TTL: b[1], KnownSeq: b[2] == 1,
		Originator: netip.AddrFrom4([4]byte(b[4:8])), ID: binary.BigEndian.Uint32(b[8:]),
		Receiver: netip.AddrFrom4([4]byte(b[12:16])), Seq: binary.BigEndian.Uint32(b[16:])}, nil
}

// errFlood is a flood where none belongs, or the other way round.
var errFlood = errors.New("kind and contents do not agree")

// Parse reads a packet. flood is nil where it has none.
func Parse(b []byte) (u *distance.Update, flood *Flood, err error) {
	if u, err = distance.Parse(b); err != nil {
		return nil, nil, err
	}
	switch {
	case u.Kind == kindUpdate && u.Remainder == nil:
		return u, nil, nil
	case u.Kind == kindFlood:
		f, err := ParseFlood(u.Remainder)
		if err != nil {
			return nil, nil, err
		}
		return u, &f, nil
	}
	return nil, nil, fmt.Errorf("%w update: %w", manet.ErrMalformed, errFlood)
}
