package aodv

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/packettest"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// wanted are messages written down byte by byte from RFC 3561 section 5.
var wanted = map[string]struct {
	hex string
	m   Message
}{
	"RREQ": {"01" + "38" + "00" + "03" + "00000007" + "0a000009" + "00000102" + "0a000001" + "80000001",
		RREQ{Gratuitous: true, DestinationOnly: true, UnknownSeq: true, HopCount: 3, ID: 7,
			Destination: addr("10.0.0.9"), DestinationSeq: 0x102,
			Originator: addr("10.0.0.1"), OriginatorSeq: 0x80000001}},
	"RREQ for multicast": {"01" + "c0" + "00" + "00" + "00000007" + "0a000009" + "00000000" + "0a000001" + "00000001",
		RREQ{Join: true, Repair: true, ID: 7, Destination: addr("10.0.0.9"), Originator: addr("10.0.0.1"),
			OriginatorSeq: 1}},
	"RREP": {"02" + "40" + "18" + "02" + "0a000009" + "00000102" + "0a000001" + "00001770",
		RREP{AckWanted: true, PrefixBits: 24, HopCount: 2, Destination: addr("10.0.0.9"), DestinationSeq: 0x102,
			Originator: addr("10.0.0.1"), Lifetime: 6 * time.Second}},
	"RERR": {"03" + "80" + "00" + "02" + "0a000009" + "00000103" + "0a000008" + "00000000",
		RERR{NoDelete: true, Destinations: []Unreachable{{addr("10.0.0.9"), 0x103}, {addr("10.0.0.8"), 0}}}},
	"RREP-ACK": {"0400", RREPAck{}},
	"RREQ of AOMDV": {"01" + "08" + "00" + "03" + "00000007" + "0a000009" + "00000000" + "0a000001" + "80000001" +
		"4004" + "0a000005",
		RREQ{UnknownSeq: true, HopCount: 3, ID: 7, Destination: addr("10.0.0.9"), Originator: addr("10.0.0.1"),
			OriginatorSeq: 0x80000001, FirstHop: addr("10.0.0.5")}},
	"RREP of AOMDV": {"02" + "00" + "00" + "02" + "0a000009" + "00000102" + "0a000001" + "00001770" + "4004" +
		"0a000005",
		RREP{HopCount: 2, Destination: addr("10.0.0.9"), DestinationSeq: 0x102, Originator: addr("10.0.0.1"),
			Lifetime: 6 * time.Second, FirstHop: addr("10.0.0.5")}},
}

func TestPacketsByteForByte(t *testing.T) {
	for name, want := range wanted {
		got := want.m.Marshal()
		w := packettest.Written[Message]{Name: name, Hex: want.hex, Packet: want.m, Data: got, Parse: Parse}
		if strings.Contains(name, "AOMDV") { // without the extension it is AODV's
			w.Whole = func(bytes int) bool { return bytes == len(got)-len("\x40\x04....") }
		}
		w.Test(t)
		if _, err := Parse(append(got, 0)); !errors.Is(err, manet.ErrMalformed) {
			t.Errorf("%s with a byte too many: %v", name, err)
		}
	}
}

func TestExtensions(t *testing.T) {
	m := RREP{Destination: addr("10.0.0.9"), Originator: addr("10.0.0.1")}
	for name, c := range map[string]struct {
		extension string
		ok        bool
	}{
		"HELLO interval":            {"0104000003e8", true},
		"unknown, may be skipped":   {"7f00", true},
		"unknown, must not be":      {"8000", false},
		"cut short":                 {"0104000003", false},
		"first hop of three bytes":  {"40030a0000", false},
		"one byte":                  {"01", false},
		"two, the second cut short": {"7f000105", false},
	} {
		extension, err := hex.DecodeString(c.extension)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(append(m.Marshal(), extension...))
		if (err == nil) != c.ok || c.ok && !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// FuzzPacket: whatever arrives, the parser does not panic, and what it reads is
// the same after having been written.
func FuzzPacket(f *testing.F) {
	for _, want := range wanted {
		f.Add(want.m.Marshal())
	}
	f.Add([]byte{3, 0, 0, 0})
	f.Add(append(RREP{Destination: addr("10.0.0.9"), Originator: addr("10.0.0.9")}.Marshal(), 1, 4, 0, 0, 3, 0xe8))
	f.Add([]byte{})
	fuzz.Run(f, func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if simtest.Malformed(t, err) {
			return
		}
		written := m.Marshal()
		again, err := Parse(written)
		if err != nil || !reflect.DeepEqual(again, m) || len(written) > len(data) ||
			!bytes.Equal(again.Marshal(), written) {
			t.Fatalf("read %x, written %x, %v", data, written, err)
		}
	})
}
