package trial

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Places travel with the lease: the node tells its own, and shows an app those
// of the others with ages that grow.
func TestPlacesTravelWithTheLease(t *testing.T) {
	r, _, plan := pair(t, 1)
	other := wire.Place{Node: "roadside", LatDeg: 50.001, LonDeg: 8.002, AgeMs: 1500}
	answer, err := r.Lease(ctx, holder, wire.Lease{Holder: holder, TTLS: 60, Places: []wire.Place{other}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (wire.Place{Node: "car", LatDeg: 50, LonDeg: 8, AgeMs: 10}); len(answer.Places) != 1 ||
		answer.Places[0] != want {
		t.Errorf("the lease's answer tells %v, the node is at %v", answer.Places, want)
	}
	takeLease(t, r, 60) // says nothing of places

	view, err := r.View(ctx, plan.Run, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := view.Places
	if len(shown) != 1 || shown[0].AgeMs <= other.AgeMs {
		t.Fatalf("the view shows %v of %v: an age does not stand still", shown, other)
	}
	shown[0].AgeMs = other.AgeMs
	if shown[0] != other {
		t.Errorf("the view shows %v, told was %v", shown[0], other)
	}
}

func TestPlacesOfLongAgoAreUnknown(t *testing.T) {
	start := time.Now()
	h := heardPlaces{at: start, places: []wire.Place{{Node: "old", AgeMs: wire.MaxPlaceAgeMs - 1000},
		{Node: "new", AgeMs: 0}}}
	if got := h.now(start.Add(time.Second)); len(got) != 2 || got[1].AgeMs != 1000 {
		t.Errorf("after a second: %v", got)
	}
	if got := h.now(start.Add(1001 * time.Millisecond)); len(got) != 1 || got[0].Node != "new" {
		t.Errorf("after more than the limit: %v, want the new one only", got)
	}
}
