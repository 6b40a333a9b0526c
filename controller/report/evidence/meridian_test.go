package evidence

import (
	"math"
	"testing"
)

func TestAPlaneReachesOverTheMeridian(t *testing.T) {
	d := Run{origin: origin{0, 179.9999, true}}
	x, y := d.origin.plane(0, -179.9999)
	if math.Abs(x-22.24) > 0.01 {
		t.Errorf("%.2f m to the east, want 22.24 m", x)
	}
	if _, lon, _ := d.Earth(x, y); math.Abs(lon+179.9999) > 1e-9 {
		t.Errorf("longitude %.6f, want -179.9999", lon)
	}
}
