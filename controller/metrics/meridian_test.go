package metrics

import (
	"math"
	"testing"
)

func TestAPlaneReachesOverTheMeridian(t *testing.T) {
	if p := (Origin{0, 179.9999}).place(0, -179.9999); math.Abs(p.EastM-22.24) > 0.01 {
		t.Errorf("%.2f m to the east, want 22.24 m", p.EastM)
	}
}
