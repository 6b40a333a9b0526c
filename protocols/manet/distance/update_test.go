package distance

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/packettest"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// wanted are updates written down byte by byte from the README of package dsdv.
var wanted = map[string]struct {
	hex string
	u   Update
}{
	"full dump": {"01" + "00" + "c0" + "00" + "01020304" + "0001" + "0002" +
		"0a000002" + "000000ff" +
		"0a000001" + "00000102" + "00" + "00" + "0000" +
		"0a000009" + "ffffffff" + "ff" + "81" + "0007",
		Update{Full: true, Complete: true, Boot: 0x01020304, Heard: []Heard{{addr("10.0.0.2"), 255}},
			Entries: []Entry{{To: addr("10.0.0.1"), Seq: 0x102}, {addr("10.0.0.9"), 1<<32 - 1, Infinite, 0x81, 7}}}},
	"with a remainder": {"01" + "02" + "00" + "00" + "00000001" + "0000" + "0000" + "abcd",
		Update{Kind: 2, Boot: 1, Remainder: []byte{0xab, 0xcd}}},
}

func TestUpdatesByteForByte(t *testing.T) {
	for name, want := range wanted {
		got := want.u.Marshal()
		w := packettest.Written[*Update]{Name: name, Hex: want.hex, Packet: &want.u, Data: got, Parse: Parse}
		w.Whole = func(bytes int) bool { return bytes >= len(got)-len(want.u.Remainder) }
		w.Test(t)
	}
	for name, text := range map[string]string{
		"another version": "02000000" + "00000001" + "00000000",
		"a reserved bit":  "01002000" + "00000001" + "00000000",
		"a reserved byte": "01000001" + "00000001" + "00000000",
		"a broken route with an even number": "01000000" + "00000001" + "00000001" + "0a000009" + "00000002" +
			"ff000000",
		"a route with an odd number": "01000000" + "00000001" + "00000001" + "0a000009" + "00000003" + "01000000",
	} {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data); !errors.Is(err, manet.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzUpdate: whatever arrives, the parser does not panic, and what it reads is
// the same after having been written.
func FuzzUpdate(f *testing.F) {
	for _, want := range wanted {
		f.Add(want.u.Marshal())
	}
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{})
	fuzz.Run(f, func(t *testing.T, data []byte) {
		u, err := Parse(data)
		if err != nil {
			if !errors.Is(err, manet.ErrMalformed) {
				t.Fatalf("error %v is not ErrMalformed", err)
			}
			return
		}
		if written := u.Marshal(); !bytes.Equal(written, data) {
			t.Fatalf("read %x, written %x", data, written)
		}
	})
}
