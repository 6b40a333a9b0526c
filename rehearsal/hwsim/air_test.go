package hwsim

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// attribute is one in the kernel's form (struct nlattr).
func attribute(kind uint16, value ...byte) []byte {
	out := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	out = append(binary.NativeEndian.AppendUint16(out, kind), value...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func u16(v uint16) []byte { return binary.NativeEndian.AppendUint16(nil, v) }

func TestFramesAreReadAsTheKernelWritesThem(t *testing.T) {
	flags := slices.Concat([]byte{11}, u16(rateRTS), []byte{4}, u16(0), []byte{0xff}, u16(0), []byte{0xff}, u16(0))
	message := slices.Concat(
		attribute(attrTransmitter, 0x02, 'F', 'M', 0, 0, 1),
		attribute(attrFrame, 1, 2, 3, 4, 5),
		attribute(attrFlags, u32(flagNoACK|1)...),
		attribute(attrFrequency, u32(2437)...),
		attribute(attrTxInfo, 11, 3, 4, 2, 0xff, 0, 0xff, 0),
		attribute(attrTxInfoFlags, flags...),
		attribute(attrCookie, binary.NativeEndian.AppendUint64(nil, 77)...),
		attribute(63, 9), // of a later kernel
	)
	f, err := decodeFrame(message)
	if err != nil {
		t.Fatal(err)
	}
	want := []Rate{{Index: 11, Times: 3, RTS: true}, {Index: 4, Times: 2}}
	if f.From != [6]byte{0x02, 'F', 'M', 0, 0, 1} || !bytes.Equal(f.Bytes, []byte{1, 2, 3, 4, 5}) || f.MHz != 2437 ||
		!f.NoACK || f.Cookie != 77 || !slices.Equal(f.Rates, want) {
		t.Errorf("read as %+v", f)
	}
	for _, foreign := range []uint16{rateCTSProtect, rateMCS, rateVHT} {
		f, err := decodeFrame(slices.Concat(attribute(attrTxInfo, 1, 1, 0xff, 0, 0xff, 0, 0xff, 0),
			attribute(attrTxInfoFlags, append([]byte{1}, u16(foreign)...)...)))
		if err != nil || len(f.Rates) != 1 || !f.Rates[0].Foreign {
			t.Errorf("flags %#x: %+v, %v", foreign, f.Rates, err)
		}
	}
}

// The width of a rate of 802.11n or 802.11ac with the long guard interval is told, and of no other.
func TestRatesHaveTheirWidth(t *testing.T) {
	for flags, want := range map[uint16]int{0: 0, rateRTS: 0, rateMCS: 20, rateMCS | rate40MHz | rateRTS: 40,
		rateVHT: 20, rateVHT | rate80MHz: 80, rateVHT | rate160MHz: 0, rateMCS | rateShortGI: 0} {
		f, err := decodeFrame(slices.Concat(attribute(attrTxInfo, 7, 1, 0xff, 0, 0xff, 0, 0xff, 0),
			attribute(attrTxInfoFlags, append([]byte{7}, u16(flags)...)...)))
		if err != nil || len(f.Rates) != 1 || f.Rates[0].WidthMHz != want {
			t.Errorf("flags %#x: %+v, %v, want %d MHz", flags, f.Rates, err, want)
		}
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add(attribute(attrTransmitter, 0x02, 'F', 'M', 0, 0, 1))
	f.Add(attribute(attrTxInfo, 11, 3, 4))
	fuzz.Run(f, func(t *testing.T, message []byte) {
		if got, err := decodeFrame(message); err == nil && len(got.Rates) > len(message) {
			t.Errorf("%d rates in %d bytes", len(got.Rates), len(message))
		}
	})
}

func TestTheTableTellsHowOftenEachRateWasTried(t *testing.T) {
	rates := []Rate{{Index: 11, Times: 3}, {Index: 4, Times: 2}}
	const none = 0xff
	for times, want := range map[int][]byte{
		0: {none, 0, none, 0, none, 0, none, 0},
		2: {11, 2, none, 0, none, 0, none, 0},
		3: {11, 3, none, 0, none, 0, none, 0},
		4: {11, 3, 4, 1, none, 0, none, 0},
		9: {11, 3, 4, 2, none, 0, none, 0},
	} {
		if got := tried(rates, times); !bytes.Equal(got, want) {
			t.Errorf("%d tries: %v, want %v", times, got, want)
		}
	}
}

func TestAFailureIsToldFromAFrame(t *testing.T) {
	ack := func(code int32) []byte {
		m := make([]byte, unix.NLMSG_HDRLEN+4)
		binary.NativeEndian.PutUint16(m[4:], unix.NLMSG_ERROR)
		binary.NativeEndian.PutUint32(m[unix.NLMSG_HDRLEN:], uint32(code))
		return m
	}
	if code, is := failure(ack(0)); !is || code != 0 {
		t.Errorf("success: %v, %v", code, is)
	}
	if code, is := failure(ack(-22)); !is || code != syscall.EINVAL {
		t.Errorf("a failure: %v, %v", code, is)
	}
	if _, is := failure(make([]byte, 40)); is {
		t.Error("a frame is a failure")
	}
}

func TestRatesHaveTheIndexOfTheirBand(t *testing.T) {
	for _, c := range []struct {
		mhz, index int
		mbps       float64
	}{{2437, 0, 1}, {2437, 11, 54}, {2437, 4, 6}, {5180, 0, 6}, {5180, 7, 54}} {
		if got := RateMbps(c.mhz, c.index); got != c.mbps {
			t.Errorf("rate %d at %d MHz: %g, want %g", c.index, c.mhz, got, c.mbps)
		}
		if got := RateIndex(c.mhz, c.mbps); got != c.index {
			t.Errorf("index of %g Mbit/s at %d MHz: %d, want %d", c.mbps, c.mhz, got, c.index)
		}
	}
	if RateMbps(5180, 8) != 0 || RateMbps(2437, -1) != 0 || RateIndex(5180, 11) != -1 {
		t.Error("a rate that the band has not")
	}
}
