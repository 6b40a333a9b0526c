package pcapng

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// written is a capture of n packets of growing length, and where each begins.
func written(t testing.TB, n int) (data []byte, starts []int64) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "test", Interface{Name: "wlan0", Filter: "tcp port 5000", LinkType: LinkEthernet,
		SnapBytes: 96})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		starts = append(starts, w.Bytes())
		if err := w.Packet(0, 1767225600123456789+int64(i), 1500+i, Direction(i%3),
			bytes.Repeat([]byte{byte(i)}, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Counts(0, 1767225600123456789, uint64(n), 3); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), starts
}

func opened(t *testing.T, data []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	data, starts := written(t, 50)
	r := opened(t, data)
	var p Packet
	for i := range 50 {
		if err := r.Next(&p); err != nil {
			t.Fatal(err)
		}
		if p.TimeNs != 1767225600123456789+int64(i) || p.WireBytes != 1500+i || len(p.Data) != i ||
			p.Direction != Direction(i%3) || r.Offset() != starts[i] {
			t.Fatalf("packet %d at byte %d is %+v", i, r.Offset(), p)
		}
	}
	if err := r.Next(&p); err != io.EOF {
		t.Fatalf("after the last packet: %v", err)
	}
	if c := r.Counts(); *c.Received != 50 || *c.Dropped != 3 {
		t.Errorf("counts %d, %d", *c.Received, *c.Dropped)
	}
	if i := r.Interfaces(); len(i) != 1 || i[0] != (Interface{"wlan0", "tcp port 5000", LinkEthernet, 96}) {
		t.Errorf("interfaces %+v", i)
	}
}

func TestACutCaptureSaysWhere(t *testing.T) {
	data, starts := written(t, 5)
	for cut := range len(data) {
		r, err := NewReader(bytes.NewReader(data[:cut]))
		var p Packet
		n := 0
		for ; err == nil; n++ {
			err = r.Next(&p)
		}
		var corrupt *CorruptError
		if errors.Is(err, io.EOF) {
			continue // cut between two blocks
		}
		if !errors.As(err, &corrupt) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if corrupt.Offset > int64(cut) || corrupt.Packet > 0 && cut > int(starts[4]) && corrupt.Offset < starts[4] {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestCorruptCaptures(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(data []byte, starts []int64) []byte
		want  string
	}{
		"no capture":         {func([]byte, []int64) []byte { return []byte("records\n") }, "not a pcapng file"},
		"nothing":            {func([]byte, []int64) []byte { return nil }, "not a pcapng file"},
		"magic":              {func(d []byte, _ []int64) []byte { d[8] = 9; return d }, "byte-order magic"},
		"version":            {func(d []byte, _ []int64) []byte { d[12] = 9; return d }, "version 9"},
		"length":             {func(d []byte, s []int64) []byte { d[s[1]+4] = 7; return d }, "its length is 7 bytes"},
		"length at the end":  {func(d []byte, s []int64) []byte { d[s[2]-4]++; return d }, "at its end"},
		"interface":          {func(d []byte, s []int64) []byte { d[s[1]+8] = 4; return d }, "of interface 4, of 1"},
		"more than there is": {func(d []byte, s []int64) []byte { d[s[1]+21] = 4; return d }, "with room for"},
		"option":             {func(d []byte, s []int64) []byte { d[s[2]-14] = 40; return d }, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			data, starts := written(t, 5)
			r, err := NewReader(bytes.NewReader(c.spoil(data, starts)))
			var p Packet
			for err == nil {
				err = r.Next(&p)
			}
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want one of %q", err, c.want)
			}
		})
	}
}

// foreign is a capture as another program may write one: big-endian, in
// microseconds, with blocks that are not known here.
func foreign() []byte {
	be := binary.BigEndian
	block := func(kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		out := be.AppendUint32(nil, kind)
		out = be.AppendUint32(out, uint32(len(body)+12))
		return be.AppendUint32(append(out, body...), uint32(len(body)+12))
	}
	out := block(blockSection, []byte{0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	out = append(out, block(0x80000001, []byte("custom"))...)
	out = append(out, block(blockInterface, []byte{0, 1, 0, 0, 0, 0, 0, 4})...)
	at := uint64(1767225600123456)
	packet := be.AppendUint32(nil, 0)
	packet = be.AppendUint64(packet, at)
	packet = be.AppendUint32(be.AppendUint32(packet, 2), 60)
	out = append(out, block(blockEnhanced, append(packet, 1, 2))...)
	return append(out, block(blockSimple, []byte{0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9})...)
}

func TestForeignCapturesAreRead(t *testing.T) {
	r := opened(t, foreign())
	var p Packet
	if err := r.Next(&p); err != nil || p.TimeNs != 1767225600123456000 || p.WireBytes != 60 || len(p.Data) != 2 {
		t.Fatalf("%+v %v", p, err)
	}
	if err := r.Next(&p); err != nil || p.WireBytes != 9 || len(p.Data) != 4 {
		t.Fatalf("%+v %v", p, err)
	}
	if err := r.Next(&p); err != io.EOF {
		t.Fatal(err)
	}
}

func TestResolutionsOfTime(t *testing.T) {
	for resolution, want := range map[byte]uint64{0: 1, 6: 1e6, 9: 1e9, 12: 1e12, 13: 0, 0x80: 1, 0x94: 1 << 20,
		0xff: 0} {
		if got := unitsPerSecond(resolution); got != want {
			t.Errorf("%#x: %d a second, want %d", resolution, got, want)
		}
	}
	d := described{perSecond: 1 << 20, offsetS: 10}
	if got := d.time(3<<20 + 1<<19); got != 13_500_000_000 {
		t.Errorf("3.5 s after 10 s are %d ns", got)
	}
}

func TestReadingDoesNotGrow(t *testing.T) {
	data, _ := written(t, 90)
	r := opened(t, data)
	var p Packet
	if n := testing.AllocsPerRun(60, func() { _ = r.Next(&p) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

//attack:archive a capture whose blocks lie about their lengths | a block has 16 MiB at most, and is read within
//attack:and itself
func FuzzReader(f *testing.F) {
	data, _ := written(f, 5)
	f.Add(data)
	f.Add(data[:len(data)-7])
	f.Add(foreign())
	f.Add([]byte("records\n"))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data))
		var p Packet
		n := 0
		for ; err == nil; n++ {
			if err = r.Next(&p); err == nil && len(p.Data) > len(data) {
				t.Fatalf("%d bytes of a packet out of %d", len(p.Data), len(data))
			}
		}
		var corrupt *CorruptError
		if !errors.Is(err, io.EOF) && !errors.As(err, &corrupt) {
			t.Fatal(err)
		}
		if n > len(data) {
			t.Fatalf("%d packets out of %d bytes", n, len(data))
		}
	})
}
