package earth

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s %g, want %g", what, got, want)
	}
}

// An independent way round: geodetic to Earth-centred coordinates and back
// into the plane of the site.
func TestLatLonAgainstEarthCentredCoordinates(t *testing.T) {
	const a, f = 6378137.0, 1 / 298.257223563
	e2 := f * (2 - f)
	ecef := func(lat, lon float64) (x, y, z float64) {
		sp, cp := math.Sincos(lat * math.Pi / 180)
		sl, cl := math.Sincos(lon * math.Pi / 180)
		n := a / math.Sqrt(1-e2*sp*sp)
		return n * cp * cl, n * cp * sl, n * (1 - e2) * sp
	}
	for _, site := range []Site{{0, 0}, {50, 8}, {-33, -70}, {60, 179.999}} {
		for _, p := range [][2]float64{{1000, 0}, {0, 1000}, {-700, 700}, {300, -20}} {
			lat, lon := site.LatLon(p[0], p[1])
			x0, y0, z0 := ecef(site.LatDeg, site.LonDeg)
			x1, y1, z1 := ecef(lat, lon)
			dx, dy, dz := x1-x0, y1-y0, z1-z0
			sp, cp := math.Sincos(site.LatDeg * math.Pi / 180)
			sl, cl := math.Sincos(site.LonDeg * math.Pi / 180)
			east, north := -sl*dx+cl*dy, -sp*cl*dx-sp*sl*dy+cp*dz
			bound := 1e6*math.Tan(math.Abs(site.LatDeg)*math.Pi/180)/(2*6.35e6) + 0.01
			near(t, "east", east, p[0], bound)
			near(t, "north", north, p[1], bound)
			if lon < -180 || lon >= 180 {
				t.Errorf("longitude %g", lon)
			}
		}
	}
}

func TestSiteAndPlaneAreInverse(t *testing.T) {
	for _, s := range []Site{{50, 8}, {-33.9, 151.2}, {0, 179.999}, {70, -180}} {
		for _, p := range [][2]float64{{0, 0}, {1000, -2000}, {-3000, 500}} {
			lat, lon := s.LatLon(p[0], p[1])
			x, y := s.XY(lat, lon)
			near(t, "x", x, p[0], 1e-6)
			near(t, "y", y, p[1], 1e-6)
		}
	}
}

func TestEastDegTakesTheShortWay(t *testing.T) {
	for _, c := range [][3]float64{{179.5, -179.5, 1}, {-179.5, 179.5, -1}, {8.25, 8.5, 0.25}, {-90, 90, 180},
		{180, -180, 0}} {
		near(t, "east", EastDeg(c[0], c[1]), c[2], 1e-12)
	}
}
