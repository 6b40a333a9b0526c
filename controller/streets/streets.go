// Package streets draws what a driver needs of a street map, in a box on Earth: roads
// by class, railways, water and buildings, as paths of SVG, from a file of tiles that
// lies beside a run. It has no colours, and fetches nothing.
package streets

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/streets/pmtiles"
)

// Box is a part of the Earth, in degrees.
type Box struct{ West, South, East, North float64 }

// latMost is where square maps of the Earth end.
const latMost = 85.05

// Valid reports whether the box is one: not empty, on Earth, and not across the 180th meridian.
func (b Box) Valid() bool {
	return b.West >= -180 && b.West < b.East && b.East <= 180 && b.South >= -latMost && b.South < b.North &&
		b.North <= latMost
}

// Drawing is what lies in a box: paths, or the pictures that the file has instead. Its
// coordinates are whole steps of so many degrees to the east of its corner, and to the south.
type Drawing struct {
	Attribution string  `json:"attribution,omitempty"` // of whom the map is, in their own words
	Note        string  `json:"note,omitempty"`        // why nothing is drawn
	West        float64 `json:"west"`
	North       float64 `json:"north"`
	StepDeg     float64 `json:"step_deg"`
	Zoom        int     `json:"zoom"`
	Paths       []Path  `json:"paths,omitempty"` // the lowest first
	Images      []Image `json:"images,omitempty"`
}

// Path is everything of one kind, as the attribute d of a path of SVG.
type Path struct {
	Kind Kind   `json:"kind"`
	D    string `json:"d"`
}

// Image is a tile that is a picture.
type Image struct {
	Zoom   int `json:"zoom"`
	X      int `json:"x"`
	Y      int `json:"y"`
	Left   int `json:"left"`
	Top    int `json:"top"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// File is an opened map.
type File struct {
	name  string // as whoever knows the run's folder would call it
	file  *os.File
	tiles *pmtiles.Archive
}

// Open opens the map of a run's folder, or else that of the folder above, which serves
// all runs of a place. There need be none: nil.
func Open(run string) (*File, error) {
	run, err := filepath.Abs(run)
	if err != nil {
		return nil, fmt.Errorf("open the street map: %w", err)
	}
	for _, at := range []struct{ dir, name string }{
		{run, archive.MapFile}, {filepath.Dir(run), "../" + archive.MapFile},
	} {
		m, err := open(filepath.Join(at.dir, archive.MapFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", at.name, err)
		}
		m.name = at.name
		return m, nil
	}
	return nil, nil
}

func open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would keep its reader waiting
	if err != nil {
		return nil, pathless(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	m := &File{file: f}
	if err == nil {
		m.tiles, err = pmtiles.Read(f, info.Size())
	}
	if err != nil {
		return nil, errors.Join(pathless(err), f.Close())
	}
	return m, nil
}

// pathless is an error without the path of the file, which says more of this machine than a viewer needs.
func pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Close closes the file.
func (m *File) Close() error { return m.file.Close() }

// Picture is a tile that is a picture, and its media type; nil if the map has none there.
func (m *File) Picture(zoom, x, y int) (picture []byte, media string, err error) {
	media, ok := map[pmtiles.Type]string{pmtiles.PNG: "image/png", pmtiles.JPEG: "image/jpeg",
		pmtiles.WebP: "image/webp"}[m.tiles.Type]
	if !ok {
		return nil, "", nil
	}
	if picture, err = m.tiles.Tile(zoom, x, y); err != nil {
		return nil, "", fmt.Errorf("%s cannot be read: %w", m.name, err)
	}
	return picture, media, nil
}

// Bounds of a drawing besides the bytes of its paths.
const (
	tilesMost      = 20
	picturesMost   = 48
	pictureBytes   = 1 << 20 // of all pictures together
	attributionLen = 200
)

// Draw draws what lies in a box, in at most so many bytes of paths: at the finest zoom
// for which that, and a few tiles, are enough.
func (m *File) Draw(b Box, most int) (*Drawing, error) {
	d, err := m.draw(b, most)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", m.name, err)
	}
	return d, nil
}

func (m *File) draw(b Box, most int) (*Drawing, error) {
	d := &Drawing{}
	var told struct {
		Attribution string `json:"attribution"`
	}
	if err := m.tiles.Metadata(&told); err != nil {
		return nil, err
	}
	d.Attribution = plain(told.Attribution)
	tiles := tilesMost
	if m.tiles.Type != pmtiles.MVT {
		tiles = picturesMost
	}
	zoom := m.tiles.MaxZoom
	for zoom > m.tiles.MinZoom && gridOf(b, zoom).count() > tiles {
		zoom--
	}
	for ; zoom >= m.tiles.MinZoom && gridOf(b, zoom).count() <= picturesMost; zoom-- {
		d.Zoom, d.West, d.North, d.StepDeg = zoom, b.West, b.North, stepDeg(zoom)
		found, fits, err := m.at(d, b, most)
		switch {
		case err != nil:
			return nil, err
		case !found:
			d.Note = fmt.Sprintf("the street map has nothing here: it is of latitude %.3f to %.3f, "+
				"longitude %.3f to %.3f", m.tiles.South, m.tiles.North, m.tiles.West, m.tiles.East)
			return d, nil
		case fits:
			return d, nil
		}
	}
	d.Paths, d.Images = nil, nil
	d.Note = "the street map has too much here to be drawn: come closer"
	return d, nil
}

// at draws at the drawing's zoom, and reports whether the map has any of its tiles, and whether they fit.
func (m *File) at(d *Drawing, b Box, most int) (found, fits bool, err error) {
	if m.tiles.Type != pmtiles.MVT {
		return m.pictures(d, b)
	}
	p := &pen{box: b, step: d.StepDeg, most: most}
	for t := range gridOf(b, d.Zoom).all {
		text, err := m.tiles.Tile(t.zoom, t.x, t.y)
		if err != nil {
			return false, false, err
		}
		found = found || text != nil
		switch err := p.tile(t, text); {
		case errors.Is(err, errFull):
			return true, false, nil
		case err != nil:
			return false, false, fmt.Errorf("tile %d/%d/%d: %w", t.zoom, t.x, t.y, err)
		}
	}
	d.Paths = p.paths()
	return found, true, nil
}

// pictures lists those in a box.
func (m *File) pictures(d *Drawing, b Box) (found, fits bool, err error) {
	d.Images = nil
	bytes := 0
	for t := range gridOf(b, d.Zoom).all {
		n, err := m.tiles.Size(t.zoom, t.x, t.y)
		if err != nil {
			return false, false, err
		}
		if n == 0 {
			continue
		}
		bytes += n
		left, top := t.steps(Point{0, 0}, b, d.StepDeg)
		right, bottom := t.steps(Point{1, 1}, b, d.StepDeg)
		d.Images = append(d.Images, Image{t.zoom, t.x, t.y, left, top, right - left, bottom - top})
	}
	return len(d.Images) > 0, bytes <= pictureBytes, nil
}

var tag = regexp.MustCompile(`<[^>]*>`)

// plain is a text without its markup, in one line, and not long.
func plain(markup string) string {
	text := html.UnescapeString(tag.ReplaceAllString(markup, " "))
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > attributionLen {
		text = string(r[:attributionLen]) + "…"
	}
	return text
}

// stepDeg is a step of a drawing at a zoom: as fine as its tiles are, where they are finest.
func stepDeg(zoom int) float64 { return 360 / math.Ldexp(1, zoom) / 8192 }
