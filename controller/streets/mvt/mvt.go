// Package mvt reads vector tiles: version 2 of Mapbox's specification
// (github.com/mapbox/vector-tile-spec, 2.1). It reads layers, properties that are
// texts, and geometry. What they mean is for others.
package mvt

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Geometry says what a feature's parts are.
type Geometry byte

// The types of section 4.3.4: a line's part is open, a polygon's a ring.
const (
	Points Geometry = iota + 1
	Lines
	Polygons
)

// Feature is one feature of a layer.
type Feature struct {
	Type           Geometry
	layer          *Layer
	tags, geometry []byte
}

// Layer is one layer of a tile.
type Layer struct {
	Name   string
	Extent int // steps from one side of the tile to the other

	features, keys, values [][]byte
}

// Point is a place in steps to the right of the tile's left upper corner, and below it. It may lie outside.
type Point struct{ X, Y int }

// Bounds of what a tile that was made to do harm may say.
const (
	extentMost = 1 << 16
	farMost    = 1 << 20 // steps from the corner
)

var errDamaged = errors.New("the tile is damaged")

// Read reads the layers of a tile.
func Read(tile []byte) (layers []Layer, err error) {
	err = fields(tile, func(number int, _ uint64, text []byte) error {
		if number != 3 || text == nil {
			return nil
		}
		l, err := readLayer(text)
		layers = append(layers, l)
		return err
	})
	return layers, err
}

func readLayer(text []byte) (Layer, error) {
	l := Layer{Extent: 4096}
	err := fields(text, func(number int, v uint64, text []byte) error {
		switch number {
		case 1:
			l.Name = string(text)
		case 2:
			l.features = append(l.features, text)
		case 3:
			l.keys = append(l.keys, text)
		case 4:
			l.values = append(l.values, text)
		case 5:
			if v == 0 || v > extentMost {
				return fmt.Errorf("%w: it is %d steps wide", errDamaged, v)
			}
			l.Extent = int(v)
		}
		return nil
	})
	return l, err
}

// Each gives every feature to a function, until one fails.
func (l *Layer) Each(use func(Feature) error) error {
	for _, text := range l.features {
		f := Feature{layer: l}
		err := fields(text, func(number int, v uint64, text []byte) error {
			switch number {
			case 2:
				f.tags = text
			case 3:
				f.Type = Geometry(min(v, uint64(Polygons)+1))
			case 4:
				f.geometry = text
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// Text is a property of a feature; "" if it has none, or none that is a text.
func (f Feature) Text(key string) (found string) {
	for tags := f.tags; len(tags) > 0; {
		k, n := binary.Uvarint(tags)
		if n <= 0 {
			return ""
		}
		v, m := binary.Uvarint(tags[n:])
		if m <= 0 || k >= uint64(len(f.layer.keys)) || v >= uint64(len(f.layer.values)) {
			return ""
		}
		tags = tags[n+m:]
		if string(f.layer.keys[k]) != key {
			continue
		}
		_ = fields(f.layer.values[v], func(number int, _ uint64, text []byte) error { // what is damaged is no text
			if number == 1 {
				found = string(text)
			}
			return nil
		})
		return found
	}
	return ""
}

// Commands of section 4.3.1.
const (
	moveTo    = 1
	lineTo    = 2
	closePath = 7
)

// Parts are the feature's lines or rings. A ring does not repeat its first point.
func (f Feature) Parts() (parts [][]Point, err error) {
	text := f.geometry
	next := func() (uint32, error) {
		v, n := binary.Uvarint(text)
		if n <= 0 || v > 1<<32-1 {
			return 0, errDamaged
		}
		text = text[n:]
		return uint32(v), nil
	}
	var at Point
	for len(text) > 0 {
		command, err := next()
		if err != nil {
			return nil, err
		}
		count := command >> 3
		switch command & 7 {
		case closePath:
			continue
		case moveTo, lineTo:
		default:
			return nil, errDamaged
		}
		for range count {
			x, xerr := next()
			y, yerr := next()
			if xerr != nil || yerr != nil {
				return nil, errDamaged
			}
			at = Point{at.X + signed(x), at.Y + signed(y)}
			if max(at.X, at.Y, -at.X, -at.Y) > farMost {
				return nil, fmt.Errorf("%w: it has a place far outside", errDamaged)
			}
			switch {
			case command&7 == moveTo:
				parts = append(parts, []Point{at})
			case len(parts) == 0:
				return nil, errDamaged
			default:
				parts[len(parts)-1] = append(parts[len(parts)-1], at)
			}
		}
	}
	return parts, nil
}

// signed is a number as section 4.3.2 writes it, by zigzag.
func signed(v uint32) int { return int(int32(v>>1) ^ -int32(v&1)) }

// fields gives each field of a protobuf message to a function: its number, and its value or its bytes.
func fields(text []byte, use func(number int, v uint64, text []byte) error) error {
	for len(text) > 0 {
		key, n := binary.Uvarint(text)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29-1 {
			return errDamaged
		}
		text = text[n:]
		var v uint64
		var inside []byte
		switch key & 7 {
		case 0:
			if v, n = binary.Uvarint(text); n <= 0 {
				return errDamaged
			}
		case 1:
			n = 8
		case 2:
			length, m := binary.Uvarint(text)
			if m <= 0 || length > uint64(len(text)-m) {
				return errDamaged
			}
			n = m + int(length)
			inside = text[m:n:n]
		case 5:
			n = 4
		default:
			return errDamaged
		}
		if n > len(text) {
			return errDamaged
		}
		if err := use(int(key>>3), v, inside); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}
