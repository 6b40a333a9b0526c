package pmtiles

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// town is a small archive, written by others' writer: ../testdata/town.py.
func town(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("../testdata/town.pmtiles")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func read(raw []byte) (*Archive, error) { return Read(bytes.NewReader(raw), int64(len(raw))) }

// Section 4.1 of the specification has these numbers.
func TestTilesHaveTheirNumbers(t *testing.T) {
	for at, want := range map[[3]int]uint64{{0, 0, 0}: 0, {1, 0, 0}: 1, {1, 0, 1}: 2, {1, 1, 1}: 3, {1, 1, 0}: 4,
		{2, 0, 0}: 5, {12, 3423, 1763}: 19078479} {
		if got := tileID(at[0], at[1], at[2]); got != want {
			t.Errorf("%v has number %d, want %d", at, got, want)
		}
	}
	seen := map[uint64]bool{}
	for x := range 64 {
		for y := range 64 {
			id := tileID(6, x, y)
			if first := uint64((1<<12 - 1) / 3); id < first || id >= first+1<<12 || seen[id] {
				t.Fatalf("6/%d/%d has number %d", x, y, id)
			}
			seen[id] = true
		}
	}
}

func TestAnArchiveIsRead(t *testing.T) {
	a, err := read(town(t))
	if err != nil {
		t.Fatal(err)
	}
	if a.Type != MVT || a.MinZoom != 11 || a.MaxZoom != 15 || a.South > 52.5 || a.North < 52.5 || a.West > 13.4 ||
		a.East < 13.4 {
		t.Errorf("%+v", a)
	}
	var told struct{ Attribution string }
	if err := a.Metadata(&told); err != nil || !strings.Contains(told.Attribution, "Nobody") {
		t.Errorf("%+v, %v", told, err)
	}
	for at, want := range map[[3]int]bool{{15, 17603, 10747}: true, {15, 17603, 10700}: false,
		{16, 35206, 21494}: false,
		{10, 550, 335}:     false, {15, -1, 0}: false, {15, 0, 1 << 15}: false} {
		tile, err := a.Tile(at[0], at[1], at[2])
		size, serr := a.Size(at[0], at[1], at[2])
		if err != nil || serr != nil || (tile != nil) != want || (size > 0) != want {
			t.Errorf("%v: %d bytes of %d, %v, %v", at, len(tile), size, err, serr)
		}
	}
}

func packed(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// made is an archive of a root directory and what follows it, of zoom 0 to 15.
func made(t testing.TB, root, leaves, tiles []byte) []byte {
	t.Helper()
	h := make([]byte, headerBytes)
	copy(h, "PMTiles\x03")
	root = packed(t, root)
	at := uint64(headerBytes)
	for i, part := range [][]byte{root, nil, leaves, tiles} {
		binary.LittleEndian.PutUint64(h[8+16*i:], at)
		binary.LittleEndian.PutUint64(h[16+16*i:], uint64(len(part)))
		at += uint64(len(part))
	}
	h[97], h[98], h[99], h[101] = packedGzip, packedGzip, byte(MVT), 15
	return bytes.Join([][]byte{h, root, leaves, tiles}, nil)
}

// directory has one entry, of the first tile.
func directory(run, length, offset uint64) []byte {
	var out []byte
	for _, v := range []uint64{1, 0, run, length, offset + 1} {
		out = binary.AppendUvarint(out, v)
	}
	return out
}

//attack:file a street map made to do harm: directories in each other without an end, or that point out of the file,
//attack:and numbers of entries, sizes and compressed texts that fill the memory | what is read is bounded, and lies
//attack:and within the file
func TestHostileArchivesAreRefused(t *testing.T) {
	edited := func(at int, with ...byte) []byte {
		raw := bytes.Clone(town(t))
		copy(raw[at:], with)
		return raw
	}
	bomb := packed(t, make([]byte, unpackedMost+1))
	loop := packed(t, directory(0, 0, 0))
	loop = packed(t, directory(0, uint64(len(packed(t, directory(0, uint64(len(loop)), 0)))), 0))
	tile := packed(t, []byte("tile"))
	for name, tc := range map[string]struct {
		raw  []byte
		want string
	}{
		"nothing":                    {nil, "no PMTiles archive"},
		"another format":             {edited(0, []byte("SQLite format 3")...), "no PMTiles archive"},
		"an older version":           {edited(2, 2, 0), "`pmtiles convert` writes version 3"},
		"a newer version":            {edited(7, 4), "another version than 3"},
		"brotli":                     {edited(98, 3), "write gzip"},
		"zstd":                       {edited(97, 4), "write gzip"},
		"AVIF":                       {edited(99, 5), "type that is not drawn"},
		"zooms that cannot be":       {edited(100, 14, 200), "zooms 14 to 200"},
		"a root of any size":         {edited(16, 0, 0, 0, 0, 1), "root directory has 4294967296 bytes"},
		"a root out of the file":     {edited(8, 255, 255, 255, 255, 255, 255, 255, 255), "too short"},
		"half a file":                {town(t)[:200], "too short"},
		"entries that are not there": {made(t, []byte{255, 255, 255, 255, 15, 0}, nil, nil), "4294967295 entries"},
		"no entry":                   {made(t, []byte{0}, nil, nil), "0 entries"},
		"a root that never ends":     {made(t, make([]byte, unpackedMost+1), nil, nil), "unpacks to more"},
		"a tile out of the file":     {made(t, directory(1, 100, 0), nil, tile), "points out of the file"},
		"a tile before the file":     {made(t, directory(1, 10, 1<<63), nil, tile), "points out of the file"},
		"a tile of any size": {made(t, directory(1, packedMost+1, 0), nil, make([]byte, packedMost+1)),
			"are more than"},
		"a tile that never ends":        {made(t, directory(1, uint64(len(bomb)), 0), nil, bomb), "unpacks to more"},
		"a tile that is not compressed": {made(t, directory(1, 12, 0), nil, []byte("tile of text")), "gzip"},
		"a leaf that is itself":         {made(t, directory(0, uint64(len(loop)), 0), loop, nil), "deeper than 3"},
		"a tile":                        {made(t, directory(1, uint64(len(tile)), 0), nil, tile), ""},
	} {
		a, err := read(tc.raw)
		var text []byte
		if err == nil {
			text, err = a.Tile(0, 0, 0)
		}
		if tc.want == "" && (err != nil || string(text) != "tile") ||
			tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, tc.want)
		}
	}
}

// Whatever the file is, it is read within bounds, and nothing ends the program.
func FuzzArchive(f *testing.F) {
	f.Add(town(f))
	f.Add(made(f, directory(1, 4, 0), nil, []byte("tile")))
	f.Add(made(f, directory(0, 4, 0), packed(f, directory(1, 4, 0)), nil))
	fuzz.Run(f, func(t *testing.T, raw []byte) {
		a, err := read(raw)
		if err != nil {
			return
		}
		for zoom := range 16 {
			text, err := a.Tile(zoom, 1<<zoom/2, 1<<zoom/3)
			if len(text) > unpackedMost || err != nil && text != nil {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		}
		_ = a.Metadata(new(any)) // it may be broken
	})
}
