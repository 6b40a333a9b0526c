package distance

import "fieldmesh.dev/fieldmesh/protocols/manet"

// udpHeaders are IPv4's and UDP's.
const udpHeaders = 28

// defaultMTU is Ethernet's, for an interface that does not say; minMTU is the
// least that is reckoned with.
const (
	defaultMTU = 1500
	minMTU     = 512
)

// room is how many entries fit a packet of a link besides so many neighbours.
// An MTU of 0 is unknown.
func room(mtu, heard int) int {
	if mtu == 0 {
		mtu = defaultMTU
	}
	return (max(mtu, minMTU) - udpHeaders - HeaderBytes - heard*HeardBytes) / EntryBytes
}

// Split makes packets of an update, one at least. The list of neighbours is in
// the first; where it would take more than half of that, a part of it is, from
// a random neighbour on so that each has its turn, and it is not complete. What
// remains after the entries is in the first too.
func (u Update) Split(heard []Heard, mtu int, jitter *manet.Jitter) (out []Update) {
	complete := true
	if limit := room(mtu, 0) * EntryBytes / HeardBytes / 2; len(heard) > limit {
		start := int(jitter.Below(manet.Time(len(heard))))
		heard, complete = append(append([]Heard(nil), heard[start:]...), heard[:start]...)[:limit], false
	}
	rest := u.Entries
	for first := true; first || len(rest) > 0; first = false {
		part := Update{Kind: u.Kind, Full: u.Full, Boot: u.Boot}
		left := room(mtu, 0)
		if first {
			part.Heard, part.Complete, part.Remainder = heard, complete, u.Remainder
			left = room(mtu, len(heard)) - (len(u.Remainder)+EntryBytes-1)/EntryBytes
		}
		k := min(len(rest), left)
		part.Entries, rest = rest[:k], rest[k:]
		out = append(out, part)
	}
	return out
}
