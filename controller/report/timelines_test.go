package report

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// What Android says about the access point has a column of its own, under its own name, where
// there is any; a reading that stands alone is drawn.
func TestAPhonesSignalHasAColumnOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		dbm  *float64
		want bool
	}{"a phone without root": {new(-61.0), true}, "any other node": {nil, false}} {
		d := &evidence.Run{Attempts: []evidence.Attempt{{Points: []metrics.Point{
			{S: 0, SignalDbm: new(-70.0)}, {S: 0.1, WiFiDbm: c.dbm}, {S: 0.2}}}}}
		view, err := viewTimelines(d)
		if err != nil {
			t.Fatal(err)
		}
		v := view.(timelinesView)
		at := -1
		for i, track := range v.Tracks {
			if track.Name == "signal of the access point, by Android" {
				at = i
			}
		}
		if (at >= 0) != c.want || len(v.Rows[0].Strips) != len(v.Tracks) {
			t.Errorf("%s: %d columns with %d strips, at %d", name, len(v.Tracks), len(v.Rows[0].Strips), at)
		}
		if at >= 0 && !strings.Contains(string(v.Rows[0].Strips[at]), "h0") {
			t.Errorf("%s: its one reading is not drawn: %s", name, v.Rows[0].Strips[at])
		}
	}
}
