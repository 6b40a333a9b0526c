package tally

import (
	"maps"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

func TestRatesAreOfTheWindow(t *testing.T) {
	var kept []Tally
	for s := range time.Duration(maxTallies + 50) {
		n := uint64(s)
		if s >= 648 { // after the window below
			n = 1e6
		}
		sent := []medium.ClassCounts{{10 * n, 3 * n, n}, {medium.Management: 2 * n}}
		kept = Add(kept, Tally{s * time.Second, sent})
	}
	if len(kept) > maxTallies {
		t.Errorf("%d are kept, at most %d", len(kept), maxTallies)
	}
	got := Rates(kept, 640*time.Second+1, 647*time.Second)
	want := []map[string]float64{{"traffic": 10, "routing": 3, "arp": 1}, {"traffic": 0, "routing": 0, "arp": 0,
		"management": 2}}
	if len(got) != 2 || !maps.Equal(got[0], want[0]) || !maps.Equal(got[1], want[1]) {
		t.Errorf("rates %v, want %v", got, want)
	}
	if got := Rates(kept, 640*time.Second+1, 641*time.Second); got != nil {
		t.Errorf("rates of one tally: %v", got)
	}
}
