package trial

import (
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// heardPlaces is where the other nodes are, as the controller said last.
type heardPlaces struct {
	places []wire.Place
	at     time.Time
}

// now returns them with their ages now; those too old to say anything are left out.
func (h heardPlaces) now(now time.Time) []wire.Place {
	var out []wire.Place
	for _, p := range h.places {
		p.AgeMs += float64(now.Sub(h.at)) / 1e6
		if p.AgeMs <= wire.MaxPlaceAgeMs {
			out = append(out, p)
		}
	}
	return out
}

// hearPlaces takes what a lease says of the other nodes; one that says nothing
// leaves what is known. e.mu is held.
func (e *Engine) hearPlaces(told []wire.Place) {
	if len(told) > 0 {
		e.others = heardPlaces{places: slices.Clone(told), at: time.Now()}
	}
}

// ownPlace is where this node is, or was when it last had a fix.
func (e *Engine) ownPlace() []wire.Place {
	fix, ok := e.deps.GPS.Last()
	if !ok || fix.LatDeg == nil || fix.LonDeg == nil || fix.FixAgeMs == nil || *fix.FixAgeMs > wire.MaxPlaceAgeMs {
		return nil
	}
	return []wire.Place{{Node: e.cfg.Node, LatDeg: *fix.LatDeg, LonDeg: *fix.LonDeg, AgeMs: *fix.FixAgeMs}}
}
