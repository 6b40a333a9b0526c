// Package pmtiles reads archives of map tiles: version 3 of PMTiles
// (github.com/protomaps/PMTiles has its specification), from a file. It writes none,
// fetches none, and knows nothing of what a tile shows.
package pmtiles

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Bounds of what is read of a file that somebody made to do harm. The archive of the
// whole Earth, with 16 zooms, has leaves of some 40,000 entries.
const (
	rootMost     = 16<<10 - headerBytes // compressed (section 4)
	packedMost   = 2 << 20              // of anything else, as it lies in the file
	unpackedMost = 4 << 20
	entriesMost  = 1 << 18 // of a directory
	leavesMost   = 3       // of directories below each other; a writer ought to make one
	zoomMost     = 26      // whose numbers fit everything here
)

const headerBytes = 127

// Type says what tiles are.
type Type byte

// The types of section 3.2 that are read.
const (
	MVT Type = iota + 1
	PNG
	JPEG
	WebP
)

// The compressions of section 3.3 that are read.
const (
	packedNot  = 1
	packedGzip = 2
)

// Archive is an archive whose header and root directory have been read.
type Archive struct {
	Type                     Type
	MinZoom, MaxZoom         int
	West, South, East, North float64 // in degrees, as the archive says it
	file                     io.ReaderAt
	size                     int64
	metadata, leaves, tiles  section
	packed, tilesPacked      byte
	root                     []entry
	leaf                     [leavesMost][]entry // which were read last, one for each level
	leafAt                   [leavesMost]section // where they lie
}

type section struct{ offset, length uint64 }

// entry is of run tiles, or of a directory if run is 0.
type entry struct {
	id, run uint64
	at      section
}

// Read reads the header and the root directory of an archive of so many bytes.
func Read(file io.ReaderAt, size int64) (*Archive, error) {
	var h [headerBytes]byte
	if _, err := file.ReadAt(h[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read its header: %w", err)
	}
	switch {
	case string(h[:7]) != "PMTiles" && string(h[:2]) != "PM":
		return nil, errors.New("it is no PMTiles archive")
	case string(h[:7]) != "PMTiles" || h[7] != 3:
		return nil, errors.New("it is PMTiles of another version than 3; `pmtiles convert` writes version 3")
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(h[i:]) }
	degrees := func(i int) float64 { return float64(int32(binary.LittleEndian.Uint32(h[i:]))) / 1e7 }
	a := &Archive{file: file, size: size, metadata: section{at(24), at(32)}, leaves: section{at(40), at(48)},
		tiles: section{at(56), at(64)}, packed: h[97], tilesPacked: h[98], Type: Type(h[99]), MinZoom: int(h[100]),
		MaxZoom: int(h[101]), West: degrees(102), South: degrees(106), East: degrees(110), North: degrees(114)}
	if err := a.readable(); err != nil {
		return nil, err
	}
	root := section{at(8), at(16)}
	if root.length > rootMost {
		return nil, fmt.Errorf("its root directory has %d bytes, and may have %d", root.length, rootMost)
	}
	var err error
	a.root, err = a.directory(root)
	return a, err
}

// readable refuses what no code here reads.
func (a *Archive) readable() error {
	for _, packed := range []byte{a.packed, a.tilesPacked} {
		if packed != packedNot && packed != packedGzip {
			return fmt.Errorf("it is compressed in a way that is not read (number %d of the format; only gzip and "+
				"none are); `pmtiles extract` and `pmtiles convert` write gzip", packed)
		}
	}
	if a.Type < MVT || a.Type > WebP {
		return fmt.Errorf("its tiles are of a type that is not drawn (number %d of the format; only MVT, PNG, JPEG "+
			"and WebP are)", a.Type)
	}
	if a.MinZoom > a.MaxZoom || a.MaxZoom > zoomMost {
		return fmt.Errorf("it has zooms %d to %d, which cannot be", a.MinZoom, a.MaxZoom)
	}
	return nil
}

// Metadata decodes the archive's JSON into a value.
func (a *Archive) Metadata(into any) error {
	text, err := a.bytes(a.metadata, a.packed)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read its metadata: %w", err)
	}
	return nil
}

// Tile is the content of a tile, unpacked; the archive need not have it: nil.
func (a *Archive) Tile(zoom, x, y int) ([]byte, error) {
	if zoom < a.MinZoom || zoom > a.MaxZoom || min(x, y) < 0 || max(x, y) >= 1<<zoom {
		return nil, nil
	}
	at, err := a.find(tileID(zoom, x, y))
	if err != nil || at.length == 0 {
		return nil, err
	}
	text, err := a.bytes(at, a.tilesPacked)
	if err != nil {
		return nil, fmt.Errorf("read its tile %d/%d/%d: %w", zoom, x, y, err)
	}
	return text, nil
}

// Size is how many bytes a tile has in the file; 0 if the archive has none.
func (a *Archive) Size(zoom, x, y int) (int, error) {
	if zoom < a.MinZoom || zoom > a.MaxZoom || min(x, y) < 0 || max(x, y) >= 1<<zoom {
		return 0, nil
	}
	at, err := a.find(tileID(zoom, x, y))
	return int(min(at.length, math.MaxInt32)), err
}

// find is where a tile lies in the file; its length is 0 if the archive has none.
func (a *Archive) find(id uint64) (section, error) {
	entries := a.root
	for level := 0; ; level++ {
		i, _ := slices.BinarySearchFunc(entries, id, func(e entry, id uint64) int {
			if e.id <= id {
				return -1
			}
			return 1
		})
		if i == 0 {
			return section{}, nil
		}
		e := entries[i-1]
		if e.run > 0 {
			if id-e.id >= e.run {
				return section{}, nil
			}
			return within(a.tiles, e.at)
		}
		if level == leavesMost {
			return section{}, fmt.Errorf("its directories lie deeper than %d below each other", leavesMost)
		}
		at, err := within(a.leaves, e.at)
		if err != nil {
			return section{}, err
		}
		if a.leaf[level] == nil || a.leafAt[level] != at {
			if a.leaf[level], err = a.directory(at); err != nil {
				return section{}, err
			}
			a.leafAt[level] = at
		}
		entries = a.leaf[level]
	}
}

// within is where a part of a section lies in the file.
func within(of, part section) (section, error) {
	if part.length == 0 || part.offset > of.length || part.length > of.length-part.offset ||
		part.offset > math.MaxUint64-of.offset {
		return section{}, errors.New("it is damaged: a directory points out of the file")
	}
	return section{of.offset + part.offset, part.length}, nil
}

// directory reads a directory (section 4.2): all numbers of tiles, then all runs, lengths and offsets.
func (a *Archive) directory(at section) ([]entry, error) {
	text, err := a.bytes(at, a.packed)
	if err != nil {
		return nil, fmt.Errorf("read its directory: %w", err)
	}
	broken := false
	next := func() uint64 {
		v, n := binary.Uvarint(text)
		broken = broken || n <= 0
		text = text[max(n, 0):]
		return v
	}
	n := next()
	if broken || n == 0 || n > entriesMost || n > uint64(len(text))/4 {
		return nil, fmt.Errorf("it is damaged: a directory has %d entries", n)
	}
	entries := make([]entry, n)
	for i, id := 0, uint64(0); i < len(entries); i++ {
		step := next()
		broken = broken || step > math.MaxInt64-id || i > 0 && step == 0
		id += step
		entries[i].id = id
	}
	for i := range entries {
		entries[i].run = next()
	}
	for i := range entries {
		entries[i].at.length = next()
	}
	for i := range entries {
		offset := next()
		switch {
		case offset > 0:
			entries[i].at.offset = offset - 1
		case i > 0:
			entries[i].at.offset = entries[i-1].at.offset + entries[i-1].at.length
		default:
			broken = true
		}
	}
	if broken {
		return nil, errors.New("it is damaged: a directory cannot be read")
	}
	return entries, nil
}

// bytes are those of a section, unpacked.
func (a *Archive) bytes(at section, packed byte) ([]byte, error) {
	if at.length > packedMost {
		return nil, fmt.Errorf("%d bytes are more than the %d that are read", at.length, packedMost)
	}
	if at.offset > uint64(a.size) || at.length > uint64(a.size)-at.offset {
		return nil, errors.New("the file is too short for it; was it copied completely?")
	}
	raw := make([]byte, at.length)
	if _, err := a.file.ReadAt(raw, int64(at.offset)); err != nil {
		return nil, err
	}
	if packed == packedNot {
		return raw, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, unpackedMost+1))
	if len(text) > unpackedMost {
		return nil, fmt.Errorf("it unpacks to more than the %d bytes that are read", unpackedMost)
	}
	return text, err
}

// tileID is a tile's place in the file's order (section 4.1): zoom after zoom, each
// along a Hilbert curve.
func tileID(zoom, x, y int) uint64 {
	id := (uint64(1)<<(2*zoom) - 1) / 3 // of all zooms before
	for side := 1 << zoom >> 1; side > 0; side >>= 1 {
		right, low := x&side != 0, y&side != 0
		quarter := uint64(0)
		switch {
		case right && low:
			quarter = 2
		case right:
			quarter = 3
		case low:
			quarter = 1
		}
		id += quarter * uint64(side) * uint64(side)
		x, y = x&(side-1), y&(side-1)
		if !low { // the curve of an upper quarter is turned
			if right {
				x, y = side-1-x, side-1-y
			}
			x, y = y, x
		}
	}
	return id
}
