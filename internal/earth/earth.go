// Package earth has the shape of the Earth, and planes that touch it.
package earth

import "math"

// WGS 84 (NIMA TR 8350.2, section 3.2): semi-major axis in metres and flattening.
const (
	wgs84A = 6378137.0
	wgs84F = 1 / 298.257223563
)

// MeanRadiusM is the mean radius R1 of the Earth (IUGG; Moritz, "Geodetic
// Reference System 1980").
const MeanRadiusM = 6371008.8

// EastDeg is how many degrees of longitude a place is east of another, the short way round: of two on either side of
// the 180th meridian, too.
func EastDeg(fromLonDeg, lonDeg float64) float64 { return math.Remainder(lonDeg-fromLonDeg, 360) }

// Site is the place on Earth of a plane's origin.
type Site struct{ LatDeg, LonDeg float64 }

// LatLon is the place x metres east and y metres north of the site, by the
// radii of curvature of the ellipsoid at the site.
//
// Its error is the second-order term that a plane leaves out, about
// d²·tan(latitude) ÷ 2R for a distance d: at 45° 0.08 m at 1 km and 2 m at
// 5 km. A receiver's own error is metres. It does not serve near a pole.
func (s Site) LatLon(xM, yM float64) (latDeg, lonDeg float64) {
	meridian, vertical, cos := s.radii()
	lat := s.LatDeg + yM/meridian*180/math.Pi
	lon := s.LonDeg + xM/(vertical*cos)*180/math.Pi
	return lat, math.Mod(lon+540, 360) - 180
}

// XY is the inverse of LatLon: where a place on Earth lies in the site's plane.
func (s Site) XY(latDeg, lonDeg float64) (xM, yM float64) {
	meridian, vertical, cos := s.radii()
	return EastDeg(s.LonDeg, lonDeg) * math.Pi / 180 * vertical * cos, (latDeg - s.LatDeg) * math.Pi / 180 * meridian
}

// radii are those of curvature at the site, north to south and east to west,
// and the latitude's cosine.
func (s Site) radii() (meridian, vertical, cos float64) {
	const e2 = wgs84F * (2 - wgs84F)
	sin, c := math.Sincos(s.LatDeg * math.Pi / 180)
	w := math.Sqrt(1 - e2*sin*sin)
	meridian = wgs84A * (1 - e2) / (w * w * w) // radius of curvature north to south
	vertical = wgs84A / w                      // and east to west
	return meridian, vertical, c
}
