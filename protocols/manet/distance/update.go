// Package distance is what distance vector protocols with sequence numbers
// share: the update that tells a neighbour of routes, the table that decides
// which of them to believe, the list of neighbours that hear and are heard, and
// the node that has these. When to tell what is each protocol's own: packages
// dsdv and adv.
package distance

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Infinite is the number of hops of a broken route.
const Infinite = 255

// Version is the first byte of every update.
const Version = 1

// Flags of an update.
const (
	flagFull  = 0x80 // all routes are told, in this and the updates around it
	flagHeard = 0x40 // all neighbours are in this update's list
)

// Lengths in bytes.
const (
	HeaderBytes = 12
	HeardBytes  = 8
	EntryBytes  = 12
)

// Update is what one packet tells. Its format is described in the README of
// package dsdv.
type Update struct {
	Kind      uint8 // of the protocol's own
	Full      bool  // part of a dump of all routes
	Complete  bool  // Heard has all neighbours
	Boot      uint32
	Heard     []Heard
	Entries   []Entry
	Remainder []byte // of the protocol's own
}

// Heard names a neighbour that the sender hears, and which of its lives.
type Heard struct {
	Addr netip.Addr
	Boot uint32
}

// Entry is one route. An odd number and Infinite go together: the route broke.
type Entry struct {
	To    netip.Addr
	Seq   uint32
	Hops  uint8
	Flags uint8  // of the protocol's own
	Value uint16 // of the protocol's own
}

// Marshal writes the update. Lists are cut at 65535.
func (u *Update) Marshal() []byte {
	heard, entries := u.Heard[:min(len(u.Heard), 0xffff)], u.Entries[:min(len(u.Entries), 0xffff)]
	b := make([]byte, 0, HeaderBytes+len(heard)*HeardBytes+len(entries)*EntryBytes+len(u.Remainder))
	flags := byte(0)
	if u.Full {
		flags |= flagFull
	}
	if u.Complete {
		flags |= flagHeard
	}
	b = append(b, Version, u.Kind, flags, 0)
	b = binary.BigEndian.AppendUint32(b, u.Boot)
	b = binary.BigEndian.AppendUint16(b, uint16(len(heard)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(entries)))
	for _, h := range heard {
		b = appendAddr(b, h.Addr)
		b = binary.BigEndian.AppendUint32(b, h.Boot)
	}
	for _, e := range entries {
		b = appendAddr(b, e.To)
		b = binary.BigEndian.AppendUint32(b, e.Seq)
		b = append(b, e.Hops, e.Flags)
		b = binary.BigEndian.AppendUint16(b, e.Value)
	}
	return append(b, u.Remainder...)
}

func appendAddr(b []byte, a netip.Addr) []byte {
	four := a.As4()
	return append(b, four[:]...)
}

func readAddr(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[:4])) }

// Parse reads an update. Remainder refers to b.
func Parse(b []byte) (*Update, error) {
	if len(b) < HeaderBytes {
		return nil, fmt.Errorf("%w update: %d bytes", manet.ErrMalformed, len(b))
	}
	if b[0] != Version {
		return nil, fmt.Errorf("%w update: version %d", manet.ErrMalformed, b[0])
	}
	if b[2]&^(flagFull|flagHeard) != 0 || b[3] != 0 {
		return nil, fmt.Errorf("%w update: reserved bits are set", manet.ErrMalformed)
	}
	u := &Update{Kind: b[1], Full: b[2]&flagFull != 0, Complete: b[2]&flagHeard != 0,
		Boot: binary.BigEndian.Uint32(b[4:])}
	heard, entries := int(binary.BigEndian.Uint16(b[8:])), int(binary.BigEndian.Uint16(b[10:]))
	rest := b[HeaderBytes:]
	if len(rest) < heard*HeardBytes+entries*EntryBytes {
		return nil, fmt.Errorf("%w update: %d bytes for %d neighbours and %d entries", manet.ErrMalformed, len(b),
			heard, entries)
	}
	for ; heard > 0; heard-- {
		u.Heard = append(u.Heard, Heard{readAddr(rest), binary.BigEndian.Uint32(rest[4:])})
		rest = rest[HeardBytes:]
	}
	for ; entries > 0; entries-- {
		e := Entry{readAddr(rest), binary.BigEndian.Uint32(rest[4:]), rest[8], rest[9],
			binary.BigEndian.Uint16(rest[10:])}
		if (e.Seq%2 == 1) != (e.Hops == Infinite) {
			return nil, fmt.Errorf("%w update: %d hops with the number %d", manet.ErrMalformed, e.Hops, e.Seq)
		}
		u.Entries = append(u.Entries, e)
		rest = rest[EntryBytes:]
	}
	if len(rest) > 0 {
		u.Remainder = rest
	}
	return u, nil
}
