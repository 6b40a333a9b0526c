package calibrate

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// What is left out by distance is not counted among what the numbers come from.
func TestCountsWhatIsKept(t *testing.T) {
	var all []moment
	for i := range 100 {
		m := moment{sample: sample{attempt: i / 50, link: "a b", tx: "x", rx: "y", distanceM: 10 + float64(i),
			b: metrics.Place{EastM: 10 + float64(i)}}, heard: i < 50 || i%2 == 0}
		all = append(all, m)
	}
	s := &Survey{}
	if err := s.choose(all); err != nil {
		t.Fatal(err)
	}
	if s.CutM == nil || *s.CutM != 60 || s.Heard != 50 || s.Attempts != 1 {
		t.Errorf("cut at %v m; %d signals in %d attempts, want 60 m, 50 and 1", s.CutM, s.Heard, s.Attempts)
	}
}
