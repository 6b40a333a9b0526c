package streets

import "math"

// tile is one square of the Earth by the projection that all such maps have, Web
// Mercator: 2^zoom of them lie side by side, and below each other.
type tile struct{ zoom, x, y int }

// Point is a place in a tile, from its left upper corner: 1 is its side.
type Point struct{ X, Y float64 }

// steps is where a place lies in a drawing of a box.
func (t tile) steps(p Point, b Box, step float64) (x, y int) {
	side := math.Ldexp(1, -t.zoom)
	lon := (float64(t.x)+p.X)*side*360 - 180
	lat := math.Atan(math.Sinh(math.Pi*(1-2*(float64(t.y)+p.Y)*side))) * 180 / math.Pi
	return int(math.Round((lon - b.West) / step)), int(math.Round((b.North - lat) / step))
}

// grid are the tiles of a zoom in which a box lies.
type grid struct{ zoom, left, top, right, bottom int }

func gridOf(b Box, zoom int) grid {
	side := math.Ldexp(1, zoom)
	column := func(lon float64) int { return int(min((lon+180)/360*side, side-1)) }
	row := func(lat float64) int {
		y := (1 - math.Asinh(math.Tan(lat*math.Pi/180))/math.Pi) / 2
		return int(max(min(y*side, side-1), 0))
	}
	return grid{zoom, column(b.West), row(b.North), column(b.East), row(b.South)}
}

func (g grid) count() int { return (g.right - g.left + 1) * (g.bottom - g.top + 1) }

// all gives every tile.
func (g grid) all(yield func(tile) bool) {
	for y := g.top; y <= g.bottom; y++ {
		for x := g.left; x <= g.right; x++ {
			if !yield(tile{g.zoom, x, y}) {
				return
			}
		}
	}
}
