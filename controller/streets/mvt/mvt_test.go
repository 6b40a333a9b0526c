package mvt

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// field is a field of a message that holds bytes.
func field(number int, text ...byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

func joined(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// tileOf is a tile with one feature, a major road in the layer "roads".
func tileOf(kind Geometry, geometry ...byte) []byte {
	feature := joined(field(2, 0, 0), []byte{3 << 3, byte(kind)}, field(4, geometry...))
	return field(3, joined(field(1, []byte("roads")...), field(2, feature...), field(3, []byte("kind")...),
		field(4, field(1, []byte("major_road")...)...), []byte{5 << 3, 128, 32, 15 << 3, 2})...)
}

// partsOf reads everything of a tile.
func partsOf(tile []byte) (kinds []string, parts [][]Point, err error) {
	layers, err := Read(tile)
	for _, l := range layers {
		if err == nil {
			err = l.Each(func(f Feature) error {
				kinds = append(kinds, f.Text("kind"))
				some, err := f.Parts()
				parts = append(parts, some...)
				return err
			})
		}
	}
	return kinds, parts, err
}

// The examples of section 4.3.5 of the specification.
func TestGeometryIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		kind     Geometry
		geometry []byte
		want     [][]Point
	}{
		"a point": {Points, []byte{9, 50, 34}, [][]Point{{{25, 17}}}},
		"points":  {Points, []byte{17, 10, 14, 3, 9}, [][]Point{{{5, 7}}, {{3, 2}}}},
		"a line":  {Lines, []byte{9, 4, 4, 18, 0, 16, 16, 0}, [][]Point{{{2, 2}, {2, 10}, {10, 10}}}},
		"lines": {Lines, []byte{9, 4, 4, 18, 0, 16, 16, 0, 9, 17, 17, 10, 4, 8},
			[][]Point{{{2, 2}, {2, 10}, {10, 10}}, {{1, 1}, {3, 5}}}},
		"a polygon": {Polygons, []byte{9, 6, 12, 18, 10, 12, 24, 44, 15}, [][]Point{{{3, 6}, {8, 12}, {20, 34}}}},
	} {
		kinds, parts, err := partsOf(tileOf(tc.kind, tc.geometry...))
		if err != nil || !reflect.DeepEqual(parts, tc.want) || !reflect.DeepEqual(kinds, []string{"major_road"}) {
			t.Errorf("%s: %q %v, %v; want %v", name, kinds, parts, err, tc.want)
		}
	}
	layers, err := Read(tileOf(Lines))
	if err != nil || len(layers) != 1 || layers[0].Name != "roads" || layers[0].Extent != 4096 {
		t.Errorf("%+v, %v", layers, err)
	}
}

//attack:file a street map's tile whose lengths, counts and places lie | it is read within its own bytes
func TestDamagedTilesAreRefused(t *testing.T) {
	for name, tile := range map[string][]byte{
		"a length beyond the end":      {3<<3 | 2, 100, 0},
		"a length without a bound":     {3<<3 | 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
		"a number that never ends":     {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
		"a type that there is not":     {3<<3 | 3},
		"half of a fixed number":       {9<<3&0x7f | 1, 0},
		"more places than there are":   tileOf(Lines, 9, 4, 4, 250, 255, 255, 255, 15, 2, 2),
		"a line that begins nowhere":   tileOf(Lines, 18, 0, 16, 16, 0),
		"a command that there is not":  tileOf(Lines, 12, 0, 0),
		"a place far outside":          tileOf(Lines, 9, 254, 255, 255, 255, 15, 0),
		"a layer without any width":    field(3, 5<<3, 0),
		"a layer of more than a width": field(3, 5<<3, 255, 255, 255, 127),
	} {
		if _, parts, err := partsOf(tile); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v, %v", name, parts, err)
		}
	}
	feature := joined(field(2, 7, 0, 0, 9), field(4, 9, 0, 0))
	if kinds, _, err := partsOf(field(3, joined(field(2, feature...), field(3, []byte("kind")...))...)); err != nil ||
		kinds[0] != "" {
		t.Errorf("tags that there are not: %q, %v", kinds, err)
	}
}

// Whatever a tile is, it is read within its own bytes.
func FuzzTile(f *testing.F) {
	f.Add(tileOf(Lines, 9, 4, 4, 18, 0, 16, 16, 0))
	f.Add(tileOf(Polygons, 9, 6, 12, 18, 10, 12, 24, 44, 15))
	fuzz.Run(f, func(t *testing.T, tile []byte) {
		_, parts, _ := partsOf(tile) // an error is an answer
		if len(parts) > len(tile) {
			t.Errorf("%d parts of %d bytes", len(parts), len(tile))
		}
	})
}
