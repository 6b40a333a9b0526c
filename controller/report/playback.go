package report

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// replay is one attempt as the page plays it back. Its JSON is the page's own.
type replay struct {
	Name    string                      `json:"name"`
	What    string                      `json:"what"`
	Seconds float64                     `json:"seconds"`
	Roles   map[string]string           `json:"roles"`
	Places  map[string][]evidence.Place `json:"places"`
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
	Streets  *ground
	Unmapped string // why the street map is not drawn
}

// maxPlaces bounds the page: with more, attempts come in coarser steps and at
// last not at all.
const maxPlaces = 60_000

// viewPlayback plays every accepted attempt back.
func viewPlayback(d *evidence.Run) (any, error) {
	v := playbackView{}
	total := 0
	for _, a := range d.Attempts {
		for _, p := range a.Places {
			total += len(p)
		}
	}
	every := (total + maxPlaces - 1) / maxPlaces
	kept := 0
	for _, a := range d.Attempts {
		if !a.Accepted() || len(a.Places) == 0 || len(a.Points) == 0 {
			continue
		}
		r := replayOf(a, max(every, 1))
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
	v.Emulated = d.Info.Place == "rehearsal"
	if !v.Emulated {
		var err error
		if v.Streets, err = groundOf(d, v.Attempts); err != nil {
			v.Unmapped = err.Error()
		}
	}
	return v, nil
}

func replayOf(a evidence.Attempt, every int) replay {
	r := replay{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a),
		Seconds: a.Points[len(a.Points)-1].S,
		Roles:   map[string]string{}, Places: map[string][]evidence.Place{}, StepS: float64(every) / metrics.TickHz}
	for _, n := range []struct{ name, role string }{{a.Trial.Receiver, "receiver"}, {a.Trial.Sender, "sender"},
		{a.Trial.Roadside, "roadside"}, {a.Trial.Car, "car"}} {
		if n.name != "" {
			r.Roles[n.name] = n.role
		}
	}
	if r.Roles[a.Trial.Sender] != "sender" {
		r.Roles[a.Trial.Sender] += ", sends"
	}
	for node, all := range a.Places {
		r.Places[node] = thin(all, every)
	}
	for i := 0; i < len(a.Points); i += every {
		p := a.Points[i]
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
	return new(evidence.Round(*v, per))
}

// thin keeps every so manieth place and the last; of places that do not
// change, the edges.
func thin(all []evidence.Place, every int) []evidence.Place {
	still := !slices.ContainsFunc(all, func(p evidence.Place) bool { return p[1] != all[0][1] || p[2] != all[0][2] })
	if still && len(all) > 2 {
		return []evidence.Place{all[0], all[len(all)-1]}
	}
	var out []evidence.Place
	for i, p := range all {
		if i%every == 0 || i == len(all)-1 {
			out = append(out, p)
		}
	}
	return out
}
