package mobility

import "math"

// WGS 84 (NIMA TR 8350.2, section 3.2): semi-major axis in metres and flattening.
const (
	wgs84A = 6378137.0
	wgs84F = 1 / 298.257223563
)

// Site is the place on Earth of a plane's origin.
type Site struct{ LatDeg, LonDeg float64 }

// LatLon is the place x metres east and y metres north of the site, by the
// radii of curvature of the ellipsoid at the site.
//
// Its error is the second-order term that a plane leaves out, about
// d²·tan(latitude) ÷ 2R for a distance d: at 45° 0.08 m at 1 km and 2 m at
// 5 km. A receiver's own error is metres. It does not serve near a pole.
func (s Site) LatLon(xM, yM float64) (latDeg, lonDeg float64) {
	const e2 = wgs84F * (2 - wgs84F)
	sin, cos := math.Sincos(s.LatDeg * math.Pi / 180)
	w := math.Sqrt(1 - e2*sin*sin)
	meridian := wgs84A * (1 - e2) / (w * w * w) // radius of curvature north to south
	vertical := wgs84A / w                      // and east to west
	lat := s.LatDeg + yM/meridian*180/math.Pi
	lon := s.LonDeg + xM/(vertical*cos)*180/math.Pi
	return lat, math.Mod(lon+540, 360) - 180
}
