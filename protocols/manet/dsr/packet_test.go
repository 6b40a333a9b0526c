package dsr

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func addrs(last ...byte) (out []netip.Addr) {
	for _, b := range last {
		out = append(out, netip.AddrFrom4([4]byte{10, 0, 0, b}))
	}
	return out
}

// wanted are headers written down byte by byte from RFC 4728 section 6: next
// header, flags, length, then options, padded to four bytes.
var wanted = map[string]struct {
	hex string
	o   Option
}{
	"Route Request": {"3b00" + "0010" + "010e" + "0007" + "0a000009" + "0a000002" + "0a000003",
		RouteRequest{ID: 7, Target: addr("10.0.0.9"), Route: addrs(2, 3)}},
	"Route Reply": {"3b00" + "000c" + "0209" + "80" + "0a000002" + "0a000009" + "e0",
		RouteReply{LastExternal: true, Route: addrs(2, 9)}},
	"Route Error": {"3b00" + "0010" + "030e" + "01" + "05" + "0a000003" + "0a000001" + "0a000004",
		RouteError{Type: NodeUnreachable, Salvage: 5, Source: addr("10.0.0.3"), Destination: addr("10.0.0.1"),
			Unreachable: addr("10.0.0.4")}},
	"Route Error about an option": {"3b00" + "0010" + "030b" + "03" + "00" + "0a000003" + "0a000001" + "81" + "000100",
		RouteError{Type: OptionNotSupported, Source: addr("10.0.0.3"), Destination: addr("10.0.0.1"),
			Unsupported: 0x81}},
	"Route Error about flow state": {"3b00" + "000c" + "030a" + "02" + "00" + "0a000003" + "0a000001",
		RouteError{Type: FlowStateNotSupported, Source: addr("10.0.0.3"), Destination: addr("10.0.0.1")}},
	"Acknowledgement Request": {"3b00" + "0004" + "a002" + "0102", AckRequest{ID: 0x102}},
	"Acknowledgement": {"3b00" + "000c" + "200a" + "0102" + "0a000002" + "0a000001",
		Ack{ID: 0x102, Source: addr("10.0.0.2"), Destination: addr("10.0.0.1")}},
	"DSR Source Route": {"3b00" + "0010" + "600e" + "c0c2" + "0a000002" + "0a000003" + "0a000004",
		SourceRoute{FirstExternal: true, LastExternal: true, Salvage: 3, SegmentsLeft: 2, Route: addrs(2, 3, 4)}},
	"unknown": {"3b00" + "0008" + "7f03" + "010203" + "000100", Unknown{Type: 0x7f, Data: []byte{1, 2, 3}}},
}

func TestPacketsByteForByte(t *testing.T) {
	for name, want := range wanted {
		h := Header{Next: noNextHeader, Options: []Option{want.o}}
		got := h.Marshal()
		if hex.EncodeToString(got) != want.hex {
			t.Errorf("%s is written\n%x, want\n%s", name, got, want.hex)
		}
		back, size, err := Parse(append(got, 1, 2, 3))
		if err != nil || size != len(got) || !reflect.DeepEqual(back, h) {
			t.Errorf("%s is read back as %+v, %d bytes, %v", name, back, size, err)
		}
		for end := range got {
			if _, _, err := Parse(got[:end]); !errors.Is(err, manet.ErrMalformed) {
				t.Errorf("%s cut to %d bytes: %v", name, end, err)
			}
		}
	}
	for name, text := range map[string]string{"flow state header": "3b800000",
		"request with half an address": "3b000008" + "0108" + "0007" + "0a0000090000",
		"a reply without addresses":    "3b000004" + "0201" + "00e0", "an error without its node": "3b00000c" + "030a" +
			"0100" + "0a0000030a000001",
		"a short acknowledgement": "3b000004" + "2002" + "0001", "an odd source route": "3b000008" + "6005" + "0000" +
			"0a0000" + "e0",
		"an option beyond the header": "3b000004" + "a009" + "0001"} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Parse(b); !errors.Is(err, manet.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// data is an IPv4 packet with a payload, from node 1 to node 5.
func data(payload int) []byte {
	p := make([]byte, ipBytes+payload)
	p[0], p[8], p[9] = 0x45, 64, 17
	copy(p[12:], []byte{10, 0, 0, 1, 10, 0, 0, 5})
	for i := range payload {
		p[ipBytes+i] = byte(i)
	}
	seal(p)
	return p
}

func TestDataPlane(t *testing.T) {
	original := data(100)
	p, err := Encapsulate(bytes.Clone(original), addrs(2, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	want := "1100" + "0010" + "600e" + "0003" + "0a000002" + "0a000003" + "0a000004"
	if got := hex.EncodeToString(p[ipBytes : ipBytes+20]); got != want || p[9] != Protocol || len(p) != len(original)+
		20 {
		t.Errorf("header %s, want %s", got, want)
	}
	for i, node := range addrs(2, 3, 4) {
		if _, err := Forward(bytes.Clone(p), addr("10.0.0.9")); err == nil {
			t.Error("a node that is not next forwards")
		}
		if i == 1 { // a request for an acknowledgement is for one hop
			if p, err = requestAck(p, 77); err != nil {
				t.Fatal(err)
			}
		}
		next, err := Forward(p, node)
		if err != nil || next != addrs(3, 4, 5)[i] || int(p[8]) != 63-i {
			t.Errorf("node %v hands to %v with a TTL of %d, %v", node, next, p[8], err)
		}
		if c, err := look(p); err != nil || c.ack != 0 || c.left(p) != 2-i || !c.sound(p) {
			t.Errorf("after %v: %+v, %v", node, c, err)
		}
	}
	got, err := Decapsulate(p)
	original[8] = 61
	seal(original)
	if err != nil || !bytes.Equal(got, original) {
		t.Errorf("arrived as\n%x, %v, want\n%x", got, err, original)
	}
	dying := data(10)
	dying[8] = 1
	if p, err = Encapsulate(dying, addrs(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := Forward(p, addr("10.0.0.2")); err == nil {
		t.Error("a packet with a TTL of 1 goes on")
	}
}

// TestSoundRoutes: no source route names an address that a node cannot have, or
// a node twice.
func TestSoundRoutes(t *testing.T) {
	for name, route := range map[string][]netip.Addr{"multicast": {addr("224.0.0.1")},
		"broadcast": {addr("255.255.255.255")},
		"loopback":  {addr("127.0.0.1")}, "none": {addr("0.0.0.0")}, "twice": addrs(2, 3, 2), "the source": addrs(2, 1),
		"the destination": addrs(5)} {
		p, err := Encapsulate(data(8), route)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := look(p); err != nil || c.sound(p) {
			t.Errorf("%s is taken for a route, %v", name, err)
		}
	}
	if _, err := Encapsulate(data(8), make([]netip.Addr, maxAddresses+1)); err == nil {
		t.Error("a route that does not fit is written")
	}
}

// FuzzPacket: whatever arrives, neither parser panics, both agree on what is
// malformed, and what is read is the same after having been written.
func FuzzPacket(f *testing.F) {
	for _, want := range wanted {
		h := Header{Next: 17, Options: []Option{want.o, AckRequest{ID: 9},
			SourceRoute{SegmentsLeft: 1, Route: addrs(2)}}}
		f.Add(append(h.Marshal(), 1, 2, 3))
	}
	f.Add([]byte{59, 0, 0, 4, 0, 2, 0, 0})
	f.Add([]byte{})
	fuzz.Run(f, func(t *testing.T, b []byte) {
		h, size, err := Parse(b)
		whole := append(data(0), b...)
		if len(whole) <= 0xffff {
			whole[9] = Protocol
			seal(whole)
			exercise(t, whole, err)
		}
		if simtest.Malformed(t, err) {
			return
		}
		written := h.Marshal()
		again, size2, err := Parse(written)
		if err != nil || !reflect.DeepEqual(again, h) || size2 != len(written) || size > len(b) {
			t.Fatalf("read %x as %+v, written %x, read as %+v, %v", b, h, written, again, err)
		}
	})
}

// exercise runs the data plane over a packet.
func exercise(t *testing.T, p []byte, parsed error) {
	c, err := look(p)
	if simtest.Malformed(t, err) {
		return
	}
	if parsed != nil && !c.others {
		t.Fatalf("the data plane takes what the parser refuses: %v", parsed)
	}
	if c.option != 0 {
		c.path(p)
		c.sound(p)
		_, _ = Forward(bytes.Clone(p), c.hop(p, c.next(p)))
	}
	if asked, err := requestAck(bytes.Clone(p), 1); err != nil {
		t.Fatal(err)
	} else if again, err := look(asked); err != nil || again.ack == 0 {
		t.Fatalf("asked for an acknowledgement: %+v, %v", again, err)
	}
	if _, err := Decapsulate(p); err != nil {
		t.Fatal(err)
	}
}
