package gps

import (
	"math"

	"fieldmesh.dev/fieldmesh/internal/earth"
)

// derived finds speeds that gpsd worked out from two positions because the
// receiver had told none yet. They are off by metres per second and more where
// a position jumps.
//
// A report does not say so. But gpsd (gpsd_error_model, releases 3.20 to 3.25)
// divides the distance of this report's position and the newest one of an
// earlier time by the time between, and gives such a report no track. A receiver
// may leave its track out too, while it stands; its own speed is then another.
type derived struct {
	before, newest *tpv // of two times
}

// speed reports whether gpsd worked out the speed of a report. Each report is
// asked about once, in its order.
func (d *derived) speed(t *tpv) bool {
	if t.utc.IsZero() || t.fix.LatDeg == nil {
		return false
	}
	if d.newest == nil || !t.utc.Equal(d.newest.utc) {
		d.before = d.newest
	}
	d.newest = t
	if t.fix.SpeedMps == nil || t.fix.TrackDeg != nil || d.before == nil || *t.fix.SpeedMps == 0 {
		return false // where nothing moves, both speeds are 0
	}
	between := t.utc.Sub(d.before.utc)
	if between <= 0 {
		return false
	}
	was, is := d.before.fix, t.fix
	middle := earth.Site{LatDeg: (*was.LatDeg + *is.LatDeg) / 2, LonDeg: *was.LonDeg}
	eastM, northM := middle.XY(*is.LatDeg, *is.LonDeg)
	_, wasNorthM := middle.XY(*was.LatDeg, *was.LonDeg)
	// gpsd prints speeds to 1 mm/s and positions to 1e-9 degrees, which is 0.1 mm.
	within := 0.001 + 0.0003/between.Seconds()
	return math.Abs(math.Hypot(eastM, northM-wasNorthM)/between.Seconds()-*t.fix.SpeedMps) <= within
}
