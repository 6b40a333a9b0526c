package streets

import (
	"errors"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/streets/mvt"
)

// Kind is what a path shows.
type Kind string

// The kinds in the order in which they lie on each other.
const (
	Water    Kind = "water"
	Stream   Kind = "stream"
	Building Kind = "building"
	Way      Kind = "way" // for feet and tractors
	Rail     Kind = "rail"
	Minor    Kind = "minor"
	Major    Kind = "major"
	Highway  Kind = "highway"
)

var order = []Kind{Water, Stream, Building, Way, Rail, Minor, Major, Highway}

// roads are the values of "kind" in Protomaps' basemap (docs.protomaps.com/basemaps/layers) and
// of "class" in OpenMapTiles (openmaptiles.org/schema). What is not listed is not drawn.
var roads = map[string]Kind{
	"highway": Highway, "motorway": Highway, "trunk": Highway,
	"major_road": Major, "medium_road": Major, "primary": Major, "secondary": Major, "tertiary": Major,
	"minor_road": Minor, "minor": Minor, "service": Minor, "raceway": Minor, "busway": Minor,
	"path": Way, "track": Way, "other": Way,
	"rail": Rail, "transit": Rail,
}

// kindOf is what a feature of a layer is, by both schemes; "" if it is not drawn.
func kindOf(layer string, f mvt.Feature) Kind {
	switch layer {
	case "roads", "transit", "transportation":
		if f.Type != mvt.Lines {
			return ""
		}
		for _, key := range []string{"kind", "pmap:kind", "class"} { // the second: of Protomaps before 2024
			if is := f.Text(key); is != "" {
				return roads[is]
			}
		}
	case "water", "waterway":
		switch f.Type {
		case mvt.Polygons:
			return Water
		case mvt.Lines:
			return Stream
		}
	case "buildings", "building":
		if f.Type == mvt.Polygons {
			return Building
		}
	}
	return ""
}

// errFull is returned when a drawing would be too large.
var errFull = errors.New("there is more than a drawing may have")

// pen draws tiles in a box, in at most so many bytes. Buildings are what it leaves out first.
type pen struct {
	box         Box
	step        float64
	most, bytes int
	drawn       map[Kind][]byte
	bare        bool // without buildings
}

func (p *pen) tile(t tile, text []byte) error {
	layers, err := mvt.Read(text)
	if err != nil {
		return err
	}
	for _, l := range layers {
		err := l.Each(func(f mvt.Feature) error {
			kind := kindOf(l.Name, f)
			if kind == "" || kind == Building && p.bare {
				return nil
			}
			parts, err := f.Parts()
			if err != nil {
				return err
			}
			for _, part := range parts {
				if err := p.part(kind, f.Type, t, part, float64(l.Extent)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// part draws a line or a ring, if any of it may lie in the box.
func (p *pen) part(kind Kind, of mvt.Geometry, t tile, part []mvt.Point, extent float64) error {
	if len(part) < 2 || kind == Building && p.bare {
		return nil
	}
	steps := make([][2]int, 0, len(part))
	for _, at := range part {
		x, y := t.steps(Point{float64(at.X) / extent, float64(at.Y) / extent}, p.box, p.step)
		if n := len(steps); n == 0 || steps[n-1] != [2]int{x, y} {
			steps = append(steps, [2]int{x, y})
		}
	}
	if len(steps) < 2 || !p.inside(steps) {
		return nil
	}
	if p.drawn == nil {
		p.drawn = map[Kind][]byte{}
	}
	had := p.drawn[kind]
	text := path(had, steps, of == mvt.Polygons)
	p.drawn[kind] = text
	if p.bytes += len(text) - len(had); p.bytes <= p.most {
		return nil
	}
	if p.bare {
		return errFull
	}
	p.bytes, p.bare = p.bytes-len(p.drawn[Building]), true
	delete(p.drawn, Building)
	if p.bytes > p.most {
		return errFull
	}
	return nil
}

// inside reports whether a rectangle round the steps meets the box.
func (p *pen) inside(steps [][2]int) bool {
	least, most := steps[0], steps[0]
	for _, at := range steps {
		for i, v := range at {
			least[i], most[i] = min(least[i], v), max(most[i], v)
		}
	}
	return most[0] >= 0 && most[1] >= 0 && float64(least[0]) <= (p.box.East-p.box.West)/p.step &&
		float64(least[1]) <= (p.box.North-p.box.South)/p.step
}

// path appends a line or a ring: its first place, and the steps from each to the next.
func path(text []byte, steps [][2]int, closed bool) []byte {
	number := func(v int) {
		if last := text[len(text)-1]; v >= 0 && last >= '0' && last <= '9' {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, int64(v), 10)
	}
	text = append(text, 'M')
	number(steps[0][0])
	number(steps[0][1])
	text = append(text, 'l')
	for i := 1; i < len(steps); i++ {
		number(steps[i][0] - steps[i-1][0])
		number(steps[i][1] - steps[i-1][1])
	}
	if closed {
		text = append(text, 'z')
	}
	return text
}

func (p *pen) paths() (out []Path) {
	for _, kind := range order {
		if text := p.drawn[kind]; len(text) > 0 {
			out = append(out, Path{kind, string(text)})
		}
	}
	return out
}
