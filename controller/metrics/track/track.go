// Package track is where a node was between its fixes, and by how much that may be off.
package track

import (
	"math"
	"sort"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/verdict"
)

// positionMaxS is how far apart in time two fixes may lie for a position
// between them to be told.
const positionMaxS = 3.0

// HaversineM is the great-circle distance of two positions in metres.
func HaversineM(latADeg, lonADeg, latBDeg, lonBDeg float64) float64 {
	const rad = math.Pi / 180
	sinLat := math.Sin((latBDeg - latADeg) * rad / 2)
	sinLon := math.Sin((lonBDeg - lonADeg) * rad / 2)
	h := sinLat*sinLat + math.Cos(latADeg*rad)*math.Cos(latBDeg*rad)*sinLon*sinLon
	return 2 * earth.MeanRadiusM * math.Asin(math.Sqrt(min(h, 1)))
}

// Track is a node's positions against the time since its window opened.
type Track struct {
	S, Lat, Lon []float64
	V           []Velocity
	OffS        float64 // by which a fix may be from another moment
	standing    *position
}

// Standing is the track of a node without fixes whose place is known to ± offM.
func Standing(latDeg, lonDeg, offM float64) Track {
	return Track{standing: &position{latDeg, lonDeg, offM}}
}

// Velocity is how a node moved at a fix; known is false where that is not told.
// Its speed may be told without a track.
type Velocity struct {
	northMps, eastMps, errMps float64
	known                     bool
	mps                       *float64
}

// Add adds a fix at so many seconds.
func (k *Track) Add(s float64, f verdict.Fix) {
	k.S, k.Lat, k.Lon = append(k.S, s), append(k.Lat, *f.LatDeg), append(k.Lon, *f.LonDeg)
	k.V = append(k.V, velocityOf(f))
}

// position is where a node was, and by how much that may be off because of what
// nobody saw: how it moved between fixes or beyond them, and when they were.
type position struct{ Lat, Lon, OffM float64 }

const (
	// SpeedErrMps is a receiver's error of speed where it does not tell its own.
	SpeedErrMps = 0.5
	// changeMps2 is how hard a car brakes, gathers speed or turns in traffic.
	changeMps2 = 4.0
	// StandsMps is a speed at which receivers tell no track.
	StandsMps = 0.5
)

func velocityOf(f verdict.Fix) Velocity {
	v := Velocity{errMps: SpeedErrMps, mps: f.SpeedMps}
	if f.SpeedErrMps != nil {
		v.errMps = *f.SpeedErrMps
	}
	switch {
	case f.SpeedMps == nil:
	case f.TrackDeg != nil:
		north, east := math.Cos(*f.TrackDeg*math.Pi/180), math.Sin(*f.TrackDeg*math.Pi/180)
		v.northMps, v.eastMps, v.known = *f.SpeedMps*north, *f.SpeedMps*east, true
	case *f.SpeedMps < StandsMps:
		v.known = true
	}
	return v
}

// Place interpolates between the two fixes around a moment. Before the first and
// beyond the last it extrapolates, for as long as a fix may be old.
func (k Track) Place(s float64) (position, bool) {
	if k.standing != nil {
		return *k.standing, true
	}
	if len(k.S) == 0 {
		return position{}, false
	}
	i := sort.SearchFloat64s(k.S, s)
	switch {
	case i < len(k.S) && k.S[i] == s:
		return position{k.Lat[i], k.Lon[i], k.late(k.fastest(i, i))}, true
	case i == 0:
		return k.extrapolate(0, 1, s)
	case i == len(k.S):
		return k.extrapolate(i-1, i-2, s)
	case k.S[i]-k.S[i-1] > positionMaxS:
		return position{}, false
	}
	share := (s - k.S[i-1]) / (k.S[i] - k.S[i-1])
	p := position{Lat: k.Lat[i-1] + share*(k.Lat[i]-k.Lat[i-1]),
		Lon: k.Lon[i-1] + share*earth.EastDeg(k.Lon[i-1], k.Lon[i])}
	if mps := k.fastest(i-1, i); mps > 0 {
		p.OffM = changeMps2/2*(s-k.S[i-1])*(k.S[i]-s) + k.late(mps)
	}
	return p, true
}

// Holds reports whether fixes reach over a span: of an extrapolated position the
// speed is that of its fix.
func (k Track) Holds(from, to float64) bool {
	return k.standing != nil || len(k.S) > 1 && k.S[0] <= from && k.S[len(k.S)-1] >= to
}

// fastest is how fast a node went at two fixes at most, its speed's own error in
// it: by what they tell, or by the way between them. One that stands by both is at 0.
func (k Track) fastest(i, j int) float64 {
	most := 0.0
	for _, v := range []Velocity{k.V[i], k.V[j]} {
		if v.mps == nil {
			return k.byWay(min(i, len(k.S)-2))
		}
		if *v.mps >= StandsMps {
			most = max(most, *v.mps+v.errMps)
		}
	}
	return most
}

// byWay is a speed by the way from a fix to the next, 0 where that is of a node
// that stands or where there is no other fix.
func (k Track) byWay(i int) float64 {
	if i < 0 {
		return 0
	}
	mps := HaversineM(k.Lat[i], k.Lon[i], k.Lat[i+1], k.Lon[i+1]) / (k.S[i+1] - k.S[i])
	if mps < StandsMps {
		return 0
	}
	return mps + SpeedErrMps
}

// late is how far a node goes in the time by which a fix may be from another
// moment.
func (k Track) late(mps float64) float64 {
	if mps == 0 {
		return 0
	}
	return mps*k.OffS + changeMps2*k.OffS*k.OffS/2
}

// MetresPerDeg is the length of a degree of latitude.
const MetresPerDeg = earth.MeanRadiusM * math.Pi / 180

// extrapolate goes from a fix by its velocity or, where it tells none, by the way
// between it and its neighbour.
func (k Track) extrapolate(from, neighbour int, s float64) (position, bool) {
	dt, v := s-k.S[from], k.V[from]
	if math.Abs(dt) > verdict.FixAgeMsDefault/1e3 {
		return position{}, false
	}
	cos := math.Cos(k.Lat[from] * math.Pi / 180)
	if !v.known {
		if neighbour < 0 || neighbour >= len(k.S) || math.Abs(k.S[from]-k.S[neighbour]) > positionMaxS {
			return position{}, false
		}
		span := k.S[from] - k.S[neighbour]
		v.northMps = (k.Lat[from] - k.Lat[neighbour]) * MetresPerDeg / span
		v.eastMps = earth.EastDeg(k.Lon[neighbour], k.Lon[from]) * MetresPerDeg * cos / span
	}
	return position{
		Lat:  k.Lat[from] + v.northMps*dt/MetresPerDeg,
		Lon:  k.Lon[from] + v.eastMps*dt/(MetresPerDeg*cos),
		OffM: v.errMps*math.Abs(dt) + changeMps2*dt*dt/2 + k.late(k.fastest(from, from)),
	}, true
}

// Distances are distances in the emulated field, in the order of their times.
type Distances []Distance

// Distance is how far apart two nodes were, in m, at a moment of the boot clock.
type Distance struct {
	BootNs int64
	M      float64
}

// truthSlackNs is how far from a moment one sample alone may stand for it: the
// field records the window's edges themselves, by its own clock.
const truthSlackNs = 10e6

// At interpolates between the samples about a moment; nil where there are none.
func (t Distances) At(bootNs int64) *float64 {
	i := sort.Search(len(t), func(i int) bool { return t[i].BootNs >= bootNs })
	if i > 0 && i < len(t) && float64(t[i].BootNs-t[i-1].BootNs) <= positionMaxS*1e9 {
		share := float64(bootNs-t[i-1].BootNs) / float64(t[i].BootNs-t[i-1].BootNs)
		return new(t[i-1].M + share*(t[i].M-t[i-1].M))
	}
	for _, k := range []int{i, i - 1} {
		if k >= 0 && k < len(t) && math.Abs(float64(t[k].BootNs-bootNs)) <= truthSlackNs {
			return &t[k].M
		}
	}
	return nil
}
