package ring

import (
	"errors"
	"io"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// block is a ring's block of frames, as the kernel fills one.
func block(frames ...Frame) []byte {
	const behind = headBytes + 20 // struct sockaddr_ll
	b := make([]byte, descEnd)
	native.PutUint32(b[descCount:], uint32(len(frames)))
	native.PutUint32(b[descFirst:], descEnd)
	for _, f := range frames {
		h := make([]byte, behind, behind+len(f.Data))
		native.PutUint32(h[headNext:], uint32(behind+len(f.Data)))
		native.PutUint32(h[headSec:], uint32(f.TimeNs/1e9))
		native.PutUint32(h[headNsec:], uint32(f.TimeNs%1e9))
		native.PutUint32(h[headSnap:], uint32(len(f.Data)))
		native.PutUint32(h[headLen:], uint32(f.WireBytes))
		native.PutUint16(h[headMAC:], behind)
		if f.Outbound {
			h[headBytes+linkType] = unix.PACKET_OUTGOING
		}
		b = append(b, append(h, f.Data...)...)
	}
	native.PutUint32(b[descBytes:], uint32(len(b)))
	return b
}

// told sends bytes to a reader and gives what it makes of them.
func told(t *testing.T, sent []byte) (frames []Frame, drops uint64, err error) {
	t.Helper()
	feed, read, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(read)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = feed.Write(sent) // a reader that found a fault reads no further
		_ = feed.Close()
	}()
	drops, err = r.Frames(func(f Frame) error {
		f.Data = slices.Clone(f.Data)
		frames = append(frames, f)
		return nil
	})
	return frames, drops, errors.Join(err, r.Close())
}

func sent(b []byte) []byte { return append(native.AppendUint32(nil, uint32(len(b))), b...) }

func end(drops uint64) []byte { return native.AppendUint64(make([]byte, lengthBytes), drops) }

func TestFramesAreThoseOfTheBlocks(t *testing.T) {
	first, second := Frame{TimeNs: 1_700_000_000_123_456_789, WireBytes: 1500, Outbound: true, Data: []byte("abcd")},
		Frame{TimeNs: 1_700_000_001_000_000_001, WireBytes: 60, Data: []byte("efgh")}
	got, drops, err := told(t, slices.Concat(sent(block(first, second)), sent(block()), sent(block(first)), end(7)))
	if err != nil || drops != 7 || len(got) != 3 {
		t.Fatalf("%d frames, %d drops, %v", len(got), drops, err)
	}
	for i, want := range []Frame{first, second, first} {
		if g := got[i]; g.TimeNs != want.TimeNs || g.WireBytes != want.WireBytes || g.Outbound != want.Outbound ||
			string(g.Data) != string(want.Data) {
			t.Errorf("frame %d is %+v, want %+v", i, g, want)
		}
	}
}

// An interface that overhears its neighbours has frames that this node neither sent
// nor got.
func TestFramesForOthersAreLeftOut(t *testing.T) {
	b := block(Frame{WireBytes: 60, Data: []byte("abcd")}, Frame{WireBytes: 61, Data: []byte("efgh")})
	b[descEnd+headBytes+linkType] = unix.PACKET_OTHERHOST
	got, _, err := told(t, slices.Concat(sent(b), end(0)))
	if err != nil || len(got) != 1 || string(got[0].Data) != "efgh" {
		t.Errorf("%+v, %v; want the second frame alone", got, err)
	}
}

func TestFramesThatAreAmissAreSaid(t *testing.T) {
	whole := sent(block(Frame{Data: []byte("abcd")}))
	beyond := slices.Clone(whole)
	native.PutUint32(beyond[lengthBytes+descFirst:], 1<<31)
	for name, c := range map[string][]byte{
		"nothing":             nil,
		"no end":              whole,
		"half a block":        whole[:len(whole)-3],
		"half an end":         end(0)[:6],
		"a block too long":    native.AppendUint32(nil, blockBytes+1),
		"a block too short":   sent(make([]byte, descEnd-1)),
		"a frame outside":     beyond,
		"a frame that is cut": sent(whole[lengthBytes : len(whole)-3]),
	} {
		if _, _, err := told(t, c); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A frame that is not the last has another behind it; else a block of few bytes had 2^32.
func TestFramesThatDoNotEndAreRefused(t *testing.T) {
	b := block(Frame{Data: []byte("a")})
	native.PutUint32(b[native.Uint32(b[descFirst:])+headNext:], 0)
	take := func(Frame) error { return nil }
	if err := walk(b, take); err != nil {
		t.Errorf("one frame: %v", err)
	}
	native.PutUint32(b[descCount:], 2)
	if err := walk(b, take); err == nil {
		t.Error("a frame was taken twice")
	}
}

func FuzzBlock(f *testing.F) {
	f.Add(block())
	f.Add(block(Frame{TimeNs: 5e9, WireBytes: 99, Outbound: true, Data: []byte("abcd")}, Frame{Data: []byte("e")}))
	fuzz.Run(f, func(t *testing.T, b []byte) {
		if len(b) < descEnd {
			return
		}
		frames := 0
		_ = walk(b, func(f Frame) error { // an error is its right
			if frames++; len(f.Data) > len(b) || frames > len(b) {
				t.Fatalf("frame %d of a block of %d bytes has %d", frames, len(b), len(f.Data))
			}
			return nil
		})
	})
}
