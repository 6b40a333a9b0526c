package dot11

import (
	"bytes"
	"slices"
	"testing"
)

// What is in a frame is told as of Ethernet, where it can be read.
func TestWhatIsInAnMPDU(t *testing.T) {
	relay, peer := []byte("\x02\x0a\x5e\x00\x00\x06"), []byte("\x02\x0a\x5e\x00\x00\x07")
	wire := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x06"), make([]byte, 40)...)
	plain := slices.Concat([]byte{typeData << 2, 0, 0, 0}, wire[:12], relay, []byte{0, 0},
		[]byte{0xaa, 0xaa, 3, 0, 0, 0}, wire[12:])
	qos := append([]byte{(subtypeQoS<<4 | typeData<<2), 0}, plain[2:24]...)
	qos = append(append(qos, 0, 0), plain[24:]...)
	station := append([]byte{typeData << 2, controlToDS, 0, 0}, relay...)
	station = append(append(append(station, wire[6:12]...), wire[:6]...), plain[22:]...)
	inMesh := func(flags byte, addresses ...[]byte) []byte { // four addresses, or three to all
		out := append([]byte{subtypeQoS<<4 | typeData<<2, flags, 0, 0}, slices.Concat(addresses[:3]...)...)
		out = append(append(out, 0, 0), slices.Concat(addresses[3:]...)...)
		return out
	}
	control := func(extension byte, addresses ...[]byte) []byte {
		return append([]byte{0, meshControl, extension, 31, 1, 0, 0, 0}, slices.Concat(addresses...)...)
	}
	body := plain[24:]
	both := byte(controlToDS | controlFromDS)
	toPeer := slices.Concat(inMesh(both, relay, peer, wire[:6], wire[6:12]), control(0), body)
	proxied := slices.Concat(inMesh(both, relay, peer, relay, peer), control(2, wire[:6], wire[6:12]), body)
	group := bytes.Clone(wire)
	copy(group, "\xff\xff\xff\xff\xff\xff")
	toAllOfMesh := slices.Concat(inMesh(controlFromDS, group[:6], peer, wire[6:12]), control(0), body)
	proxiedToAll := slices.Concat(inMesh(controlFromDS, group[:6], peer, relay), control(1, wire[6:12]), body)
	secret := bytes.Clone(plain)
	secret[1] |= controlProtected
	for name, c := range map[string]struct{ frame, want []byte }{
		"plain": {plain, wire}, "QoS": {qos, wire}, "to an access point": {station, wire},
		"in a mesh": {toPeer, wire}, "in a mesh for others": {proxied, wire},
		"to all of a mesh": {toAllOfMesh, group}, "for others to all of a mesh": {proxiedToAll, group},
		"cut off in a mesh": {proxied[:44], nil},
		"encrypted":         {secret, nil}, "a beacon": {append([]byte{subtypeBeacon << 4, 0}, plain[2:]...), nil},
		"a null frame": {append([]byte{0x48, 0}, plain[2:24]...), nil},
	} {
		if got := AppendEthernet(nil, c.frame); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}
