package olsr

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// wanted are packets written down byte by byte from the formats in RFC 3626
// sections 3.3, 5.1, 6.1, 9.1 and 12.1.
var wanted = map[string]struct {
	hex  string
	make func() Message
}{
	"HELLO": {
		"0030" + "0007" + // packet length, packet sequence number
			// type, vtime 6 s, size, originator, TTL, hops, sequence
			"01" + "86" + "002c" + "0a000001" + "01" + "00" + "1234" +
			"0000" + "05" + "03" + // reserved, htime 2 s, willingness
			"06" + "00" + "000c" + "0a000002" + "0a000003" + // SYM_NEIGH | SYM_LINK
			"0a" + "00" + "0008" + "0a000004" + // MPR_NEIGH | SYM_LINK
			"01" + "00" + "0008" + "0a000005", // NOT_NEIGH | ASYM_LINK
		func() Message {
			h := Hello{HTime: EncodeTime(2 * time.Second), Willingness: 3, Links: []Links{
				{LinkSymmetric, NeighborSym, []Neighbor{{Addr: addr("10.0.0.2")}, {Addr: addr("10.0.0.3")}}},
				{LinkSymmetric, NeighborMPR, []Neighbor{{Addr: addr("10.0.0.4")}}},
				{LinkAsymmetric, NeighborNot, []Neighbor{{Addr: addr("10.0.0.5")}}},
			}}
			return Message{Type: TypeHello, VTime: EncodeTime(6 * time.Second), TTL: 1, Seq: 0x1234,
				Body: h.Marshal(false)}
		},
	},
	"TC": {
		"001c" + "0007" + "02" + "e7" + "0018" + "0a000001" + "ff" + "00" + "1234" + "0102" + "0000" + "0a000002" +
			"0a000003",
		func() Message {
			tc := TC{ANSN: 0x0102, Neighbors: []Neighbor{{Addr: addr("10.0.0.2")}, {Addr: addr("10.0.0.3")}}}
			return Message{Type: TypeTC, VTime: EncodeTime(15 * time.Second), TTL: 255, Seq: 0x1234,
				Body: tc.Marshal(false)}
		},
	},
	"MID": {
		"0014" + "0007" + "03" + "e7" + "0010" + "0a000001" + "ff" + "00" + "1234" + "0a010001",
		func() Message {
			return Message{Type: TypeMID, VTime: EncodeTime(15 * time.Second), TTL: 255, Seq: 0x1234,
				Body: MarshalMID([]netip.Addr{addr("10.1.0.1")})}
		},
	},
	"HNA": {
		"0020" + "0007" + "04" + "e7" + "001c" + "0a000001" + "ff" + "00" + "1234" + "c0a80000" + "ffff0000" +
			"00000000" + "00000000",
		func() Message {
			networks := []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("0.0.0.0/0")}
			return Message{Type: TypeHNA, VTime: EncodeTime(15 * time.Second), TTL: 255, Seq: 0x1234,
				Body: MarshalHNA(networks)}
		},
	},
	"LQ_HELLO": {
		"0020" + "0007" + "c9" + "48" + "001c" + "0a000001" + "01" + "00" + "1234" + "0000" + "05" + "03" +
			"06" + "00" + "000c" + "0a000002" + "ff800000", // address, then LQ, NLQ, two reserved
		func() Message {
			h := Hello{HTime: EncodeTime(2 * time.Second), Willingness: 3, Links: []Links{
				{LinkSymmetric, NeighborSym, []Neighbor{{addr("10.0.0.2"), Quality{255, 128}}}}}}
			return Message{Type: TypeLQHello, VTime: EncodeTime(20 * time.Second), TTL: 1, Seq: 0x1234,
				Body: h.Marshal(true)}
		},
	},
	"LQ_TC": {
		"001c" + "0007" + "ca" + "2c" + "0018" + "0a000001" + "02" + "00" + "1234" + "0102" + "ffff" + "0a000002" +
			"ff800000",
		func() Message {
			tc := TC{ANSN: 0x0102, Border: 0xffff, Neighbors: []Neighbor{{addr("10.0.0.2"), Quality{255, 128}}}}
			return Message{Type: TypeLQTC, VTime: EncodeTime(288 * time.Second), TTL: 2, Seq: 0x1234,
				Body: tc.Marshal(true)}
		},
	},
}

func TestPacketsByteForByte(t *testing.T) {
	for name, want := range wanted {
		t.Run(name, func(t *testing.T) {
			m := want.make()
			m.Originator = addr("10.0.0.1")
			got, err := Packet{Seq: 7, Messages: []Message{m}}.Marshal()
			if err != nil || hex.EncodeToString(got) != want.hex {
				t.Fatalf("written\n%x, want\n%s (%v)", got, want.hex, err)
			}
			back, err := ParsePacket(got, 4)
			if err != nil || back.Seq != 7 || len(back.Messages) != 1 || !reflect.DeepEqual(back.Messages[0], m) {
				t.Fatalf("read back as %+v, %v; want %+v", back, err, m)
			}
			for end := range got {
				if _, err := ParsePacket(got[:end], 4); !errors.Is(err, manet.ErrMalformed) {
					t.Fatalf("cut to %d bytes: %v", end, err)
				}
			}
		})
	}
}

func TestTimesEncode(t *testing.T) {
	// The values proposed in section 18.3 for 2, 5, 6 and 15 s.
	for seconds, code := range map[time.Duration]uint8{2: 0x05, 5: 0x46, 6: 0x86, 15: 0xe7} {
		if got := EncodeTime(seconds * time.Second); got != code || DecodeTime(code) != seconds*time.Second {
			t.Errorf("%d s is %#x and back %v, want %#x", seconds, got, DecodeTime(code), code)
		}
	}
	for code := range 256 {
		if got := EncodeTime(DecodeTime(uint8(code))); got != uint8(code) {
			t.Errorf("code %#x comes back as %#x", code, got)
		}
	}
	if EncodeTime(time.Hour*2) != 0xff || EncodeTime(0) != 0 || EncodeTime(-1) != 0 {
		t.Error("times out of range are not clamped")
	}
	if d := DecodeTime(EncodeTime(300 * time.Second)); d < 300*time.Second {
		t.Errorf("300 s became %v: a time must not be cut short", d)
	}
}

func TestIPv6(t *testing.T) {
	m := Message{Type: TypeMID, Originator: addr("fd00::1"), TTL: 9, Seq: 3,
		Body: MarshalMID([]netip.Addr{addr("fd00::2")})}
	b, err := Packet{Messages: []Message{m}}.Marshal()
	if err != nil || len(b) != 4+24+16 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	back, err := ParsePacket(b, 16)
	if err != nil || !reflect.DeepEqual(back.Messages[0], m) {
		t.Fatalf("%+v, %v", back, err)
	}
}

func corpus(f *testing.F) {
	for _, want := range wanted {
		b, err := hex.DecodeString(want.hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0, 4, 0, 0})
	f.Add([]byte{0, 16, 0, 0, 1, 0, 0, 0, 10, 0, 0, 1, 1, 0, 0, 0})
}

// FuzzPacket: whatever arrives, parsers do not panic, and what is read is
// written back to the same bytes where the format has no reserved field.
func FuzzPacket(f *testing.F) {
	corpus(f)
	fuzz.Run(f, func(t *testing.T, data []byte) {
		p, err := ParsePacket(data, 4)
		if simtest.Malformed(t, err) {
			return
		}
		if back, err := p.Marshal(); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("read %x, written back %x (%v)", data, back, err)
		}
		for _, m := range p.Messages {
			quality := m.Type >= TypeLQHello
			if tc, err := ParseTC(m.Body, 4, quality); err == nil && !quality && !bytes.Equal(tc.Marshal(false),
				m.Body) {
				t.Fatalf("TC %x changed", m.Body)
			}
			if h, err := ParseHello(m.Body, 4, quality); err == nil {
				again, err := ParseHello(h.Marshal(quality), 4, quality)
				if err != nil || !reflect.DeepEqual(again, h) {
					t.Fatalf("HELLO %x changed: %v", m.Body, err)
				}
			}
			if mid, err := ParseMID(m.Body, 4); err == nil && !bytes.Equal(MarshalMID(mid), m.Body) {
				t.Fatalf("MID %x changed", m.Body)
			}
			if hna, err := ParseHNA(m.Body, 4); err == nil {
				if again, err := ParseHNA(MarshalHNA(hna), 4); err != nil || !reflect.DeepEqual(again, hna) {
					t.Fatalf("HNA %x changed: %v", m.Body, err)
				}
			}
		}
		_, _ = ParsePacket(data, 16)
	})
}
