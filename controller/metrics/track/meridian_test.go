package track

import (
	"math"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/verdict"
)

// A car that drives east over the 180th meridian goes on where it was.
func TestATrackCrossesTheMeridian(t *testing.T) {
	const lat = 0.0
	var k Track
	for i, lon := range []float64{179.9999, -179.9999, -179.9997} {
		k.Add(float64(i), verdict.Fix{LatDeg: new(lat), LonDeg: &lon})
	}
	for s, eastM := range map[float64]float64{0.5: 11.12, 1.5: 33.36, 2.5: 55.6, -0.5: -11.12} {
		p, known := k.Place(s)
		if far := HaversineM(lat, 179.9999, p.Lat, p.Lon); !known || math.Abs(far-math.Abs(eastM)) > 0.1 {
			t.Errorf("after %g s %.2f m away, known %t, want %.2f m", s, far, known, eastM)
		}
		if _, e := OffsetM(lat, 179.9999, p.Lat, p.Lon); math.Abs(e-eastM) > 0.1 {
			t.Errorf("after %g s %.2f m to the east, want %.2f m", s, e, eastM)
		}
	}
}
