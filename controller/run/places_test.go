package run

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestNodesHearOfTheOthersPlaces(t *testing.T) {
	var p places
	start := time.Now()
	at := func(node string, ageMs float64) wire.Place {
		return wire.Place{Node: node, LatDeg: 50, LonDeg: 8, AgeMs: ageMs}
	}
	if got := p.others("car", start); got != nil {
		t.Errorf("before anybody told: %v", got)
	}
	p.hear("car", start, wire.Lease{Places: []wire.Place{at("car", 20)}})
	p.hear("roadside", start, wire.Lease{Places: []wire.Place{at("roadside", 100)}})
	p.hear("roadside", start.Add(time.Second), wire.Lease{})                                   // no fix any more
	p.hear("roadside", start.Add(time.Second), wire.Lease{Places: []wire.Place{at("car", 0)}}) // not its own to tell

	later := start.Add(2 * time.Second)
	for node, want := range map[string]wire.Place{"car": at("roadside", 2100), "roadside": at("car", 2020)} {
		if got := p.others(node, later); len(got) != 1 || got[0] != want {
			t.Errorf("%s hears %v, want %v", node, got, want)
		}
	}
	// Told between the caller's look at its clock and its question.
	if got := p.others("roadside", start.Add(-time.Second)); len(got) != 1 || got[0] != at("car", 20) {
		t.Errorf("a moment before it was told: %v", got)
	}
	if got := p.others("a third", start.Add(time.Hour)); got != nil {
		t.Errorf("after an hour: %v", got)
	}
}
