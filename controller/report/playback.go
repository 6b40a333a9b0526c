package report

import (
	"fmt"
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// place is where a node was: seconds since the window opened, metres east and
// north of the run's origin.
type place [3]float64

// replay is one attempt as the page plays it back. Its JSON is the page's own.
type replay struct {
	Name    string             `json:"name"`
	What    string             `json:"what"`
	Seconds float64            `json:"seconds"`
	Roles   map[string]string  `json:"roles"`
	Places  map[string][]place `json:"places"`
	// By tick of StepS; null where nothing was known.
	StepS    float64    `json:"step_s"`
	Mbps     []*float64 `json:"mbps"`
	Speed    []*float64 `json:"speed"`
	Distance []*float64 `json:"distance"`
	Signal   []*float64 `json:"signal"`
}

type playbackView struct {
	Attempts []replay
	Emulated bool // the places are the field's truth and not GPS
	Left     int  // attempts that have no place in the page
}

// maxPlaces bounds the page: with more, attempts come in coarser steps and at
// last not at all.
const maxPlaces = 60_000

// origin is the place on Earth that a run's GPS positions are told from.
type origin struct {
	latDeg, lonDeg float64
	set            bool
}

// plane is a position in metres from the origin, on a sphere of the mean
// radius (IUGG R1), which a few kilometres do not tell from the ellipsoid.
func (o *origin) plane(latDeg, lonDeg float64) (xM, yM float64) {
	const radiusM = 6371008.8
	if !o.set {
		*o = origin{latDeg, lonDeg, true}
	}
	perDegree := radiusM * math.Pi / 180
	return (lonDeg - o.lonDeg) * perDegree * math.Cos(o.latDeg*math.Pi/180), (latDeg - o.latDeg) * perDegree
}

// placesOf are the nodes' places in an attempt's window: the emulated field's
// truth where there is one, else the nodes' GPS.
func placesOf(t wire.Trial, records []wire.Record, o *origin) map[string][]place {
	out := map[string][]place{}
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
			out[t.Roadside] = []place{{}} // it is the origin of the field's plane
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

func at(bootNs int64, w wire.Window, x, y float64) place {
	return place{round(float64(bootNs-w.OpenBootNs)/1e9, 100), round(x, 10), round(y, 10)}
}

func round(v, per float64) float64 { return math.Round(v*per) / per }

// viewPlayback plays every accepted attempt back.
func viewPlayback(d *data) (any, error) {
	v := playbackView{}
	total := 0
	for _, a := range d.attempts {
		for _, p := range a.places {
			total += len(p)
		}
	}
	every := (total + maxPlaces - 1) / maxPlaces
	kept := 0
	for _, a := range d.attempts {
		if !a.accepted() || len(a.places) == 0 || len(a.points) == 0 {
			continue
		}
		r := d.replay(a, max(every, 1))
		for _, p := range r.Places {
			kept += len(p)
		}
		if kept > 2*maxPlaces {
			v.Left++
			continue
		}
		v.Attempts = append(v.Attempts, r)
	}
	if len(v.Attempts) == 0 {
		return nil, nil
	}
	v.Emulated = d.info.Place == "rehearsal"
	return v, nil
}

func (d *data) replay(a attempt, every int) replay {
	r := replay{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a),
		Seconds: a.points[len(a.points)-1].S,
		Roles:   map[string]string{}, Places: map[string][]place{}, StepS: float64(every) / metrics.TickHz}
	for _, n := range []struct{ name, role string }{{a.Trial.Receiver, "receiver"}, {a.Trial.Sender, "sender"},
		{a.Trial.Roadside, "roadside"}, {a.Trial.Car, "car"}} {
		if n.name != "" {
			r.Roles[n.name] = n.role
		}
	}
	if r.Roles[a.Trial.Sender] != "sender" {
		r.Roles[a.Trial.Sender] += ", sends"
	}
	for node, all := range a.places {
		r.Places[node] = thin(all, every)
	}
	for i := 0; i < len(a.points); i += every {
		p := a.points[i]
		r.Mbps = append(r.Mbps, tenth(scaled(p.ThroughputBps, 1e-6), 100))
		r.Speed, r.Distance = append(r.Speed, tenth(p.SpeedMps, 10)), append(r.Distance, tenth(p.DistanceM, 10))
		r.Signal = append(r.Signal, tenth(p.SignalDbm, 10))
	}
	return r
}

func tenth(v *float64, per float64) *float64 {
	if v == nil {
		return nil
	}
	return new(round(*v, per))
}

// thin keeps every so manieth place and the last; of places that do not
// change, the edges.
func thin(all []place, every int) []place {
	still := !slices.ContainsFunc(all, func(p place) bool { return p[1] != all[0][1] || p[2] != all[0][2] })
	if still && len(all) > 2 {
		return []place{all[0], all[len(all)-1]}
	}
	var out []place
	for i, p := range all {
		if i%every == 0 || i == len(all)-1 {
			out = append(out, p)
		}
	}
	return out
}
