package evidence

import (
	"math"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Place is where a node was: seconds since the window opened, metres east and
// north of the run's origin.
type Place [3]float64

// origin is the place on Earth that a run's GPS positions are told from.
type origin struct {
	latDeg, lonDeg float64
	set            bool
}

// plane is a position in metres from the origin, on a sphere of the mean
// radius (IUGG R1), which a few kilometres do not tell from the ellipsoid.
func (o *origin) plane(latDeg, lonDeg float64) (xM, yM float64) {
	if !o.set {
		*o = origin{latDeg, lonDeg, true}
	}
	perDegree := earth.MeanRadiusM * math.Pi / 180
	return earth.EastDeg(o.lonDeg, lonDeg) * perDegree * math.Cos(o.latDeg*math.Pi/180),
		(latDeg - o.latDeg) * perDegree
}

// Earth is where on Earth a place is, that is told in metres from the run's origin; nothing is known of it where no
// GPS placed a node.
func (d *Run) Earth(xM, yM float64) (latDeg, lonDeg float64, known bool) {
	perDegree := earth.MeanRadiusM * math.Pi / 180
	lonDeg = d.origin.lonDeg + xM/perDegree/math.Cos(d.origin.latDeg*math.Pi/180)
	return d.origin.latDeg + yM/perDegree, earth.EastDeg(0, lonDeg), d.origin.set
}

// placesOf are the nodes' places in an attempt's window: the emulated field's
// truth where there is one, else the nodes' GPS.
func placesOf(t wire.Trial, records []wire.Record, o *origin) map[string][]Place {
	out := map[string][]Place{}
	var field *wire.Window
	for _, node := range []string{"field", t.Car, t.Initiator, t.Receiver} {
		if field = verdict.WindowOf(node, records); field != nil && node != "" {
			break // the field's clock is its nodes'
		}
	}
	for _, r := range records {
		if b, ok := r.Body.(*wire.Truth); ok && field != nil {
			out[b.Of] = append(out[b.Of], at(r.TBootNs, *field, b.XM, b.YM))
		}
	}
	if len(out) > 0 {
		if _, told := out[t.Roadside]; !told && t.Roadside != "" {
			out[t.Roadside] = []Place{{}} // it is the origin of the field's plane
		}
		return out
	}
	for _, r := range records {
		b, ok := r.Body.(*wire.GPS)
		if !ok || b.LatDeg == nil || b.LonDeg == nil || b.FixBootNs == nil {
			continue
		}
		if w := verdict.WindowOf(r.Node, records); w != nil && *b.FixBootNs >= w.OpenBootNs-1e9 && *b.FixBootNs <=
			w.CloseBootNs {
			x, y := o.plane(*b.LatDeg, *b.LonDeg)
			out[r.Node] = append(out[r.Node], at(*b.FixBootNs, *w, x, y))
		}
	}
	return out
}

func at(bootNs int64, w wire.Window, x, y float64) Place {
	return Place{Round(float64(bootNs-w.OpenBootNs)/1e9, 100), Round(x, 10), Round(y, 10)}
}

// Round rounds to so many parts of one.
func Round(v, per float64) float64 { return math.Round(v*per) / per }
