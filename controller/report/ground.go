package report

import (
	"errors"
	"math"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/streets"
)

// streetsMost bounds what a report holds of a street map, in bytes.
const streetsMost = 140_000

// ground is what a street map has under the tracks. Its paths count steps to the east and the south from a
// corner; all that is in metres from the run's origin.
type ground struct {
	Attribution string         `json:"-"`
	X           float64        `json:"x"` // of the corner
	Y           float64        `json:"y"`
	East        float64        `json:"east"` // of a step
	South       float64        `json:"south"`
	Paths       []streets.Path `json:"paths"`
}

// groundOf is the ground of a run that was driven on Earth, if a street map lies beside it. A map of pictures
// has none: they are too large for a page.
func groundOf(d *evidence.Run, attempts []replay) (g *ground, err error) {
	x0, y0, x1, y1 := shownBy(attempts)
	south, west, known := d.Earth(x0, y0)
	north, east, _ := d.Earth(x1, y1)
	b := streets.Box{West: west, South: south, East: east, North: north}
	if !known || !b.Valid() {
		return nil, nil
	}
	m, err := streets.Open(d.Dir)
	if err != nil || m == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	drawn, err := m.Draw(b, streetsMost)
	if err != nil || len(drawn.Paths) == 0 {
		return nil, err
	}
	return &ground{Attribution: drawn.Attribution, X: x0, Y: y1, East: (x1 - x0) / (east - west) * drawn.StepDeg,
		South: (y1 - y0) / (north - south) * drawn.StepDeg, Paths: drawn.Paths}, nil
}

// shownBy are the bounds of all that the page's player shows: it puts each attempt into its middle.
func shownBy(attempts []replay) (x0, y0, x1, y1 float64) {
	x0, y0, x1, y1 = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, a := range attempts {
		left, low, right, high := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
		for _, places := range a.Places {
			for _, p := range places {
				left, right, low, high = min(left, p[1]), max(right, p[1]), min(low, p[2]), max(high, p[2])
			}
		}
		const wide, high0 = 960, 420 // of the player's field, as page/playback.html has it
		perPixel := max(max(right-left, 30)*1.45/wide, max(high-low, 30)*1.35/high0)
		x, y := (left+right)/2, (low+high)/2
		x0, x1 = min(x0, x-wide/2*perPixel), max(x1, x+wide/2*perPixel)
		y0, y1 = min(y0, y-high0/2*perPixel), max(y1, y+high0/2*perPixel)
	}
	return x0, y0, x1, y1
}
