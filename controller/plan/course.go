package plan

import (
	"math"
	"slices"
	"strings"
)

// courseKeys says which keys of a course belong to which kind, the needed
// ones first.
func courseKeys(kind string) (needed, possible []string) {
	place := []string{"site_lat_deg", "site_lon_deg", "heading_deg", "offset_m"}
	car := []string{"start_m", "accel_mps2", "brake_mps2"}
	switch kind {
	case "depart", "pass":
		return car, place
	case "loop":
		return append(car, "length_m"), place
	case "segment":
		return append(car, "segment_m", "length_m"), place
	case "parked":
		return []string{"mark_m"}, place
	}
	return nil, place
}

// moves reports whether a kind of course has the car drive.
func moves(kind string) bool {
	return slices.Contains([]string{"depart", "pass", "loop", "segment"}, kind)
}

func (c *check) course() {
	c.need("course.kind", "depart, pass, loop, segment, parked or none")
	kind := c.tree.textAt("course.kind")
	if kind == "" {
		return
	}
	needed, possible := courseKeys(kind)
	for _, key := range needed {
		c.need("course."+key, "a number, which a course of kind "+kind+" needs")
	}
	for _, e := range c.tree.child("course").entries {
		if e.key != "kind" && (object{(schema{}).courseKeys()}).field(e.key) != nil &&
			!slices.Contains(needed, e.key) && !slices.Contains(possible, e.key) {
			c.unfit("course."+e.key, "in a course of kind "+kind, strings.Join(append(needed, possible...), ", "))
		}
	}
	if kind != "none" {
		c.need("car", "a node, since a course of kind "+kind+" has a car")
		c.need("roadside", "a node, from whose mark the course is measured")
	}
	if c.has("course.site_lat_deg") != c.has("course.site_lon_deg") {
		given, missing := "site_lat_deg", "site_lon_deg"
		if !c.has("course." + given) {
			given, missing = missing, given
		}
		c.unfit("course."+given, "without "+missing, "both or neither")
	}
	if start := c.tree.numberAt("course.start_m"); kind == "pass" && start != nil && *start >= 0 {
		c.add(c.tree.lookup("course.start_m").at, "trial.course.start_m: %s is not before the roadside node, which a "+
			"course of kind pass drives past; allowed: below 0", formatNumber(*start))
	}
}

// speed judges the target speed against the course.
func (c *check) speed() {
	kind := c.tree.textAt("course.kind")
	switch {
	case moves(kind):
		c.need("speed_mps", "a number above 0 and up to 60 m/s, since the course has the car drive")
	case kind == "parked":
		c.unfit("speed_mps", "in a course of kind parked", "leave it out")
	}
	if c.lacks("speed_mps") {
		c.unfit("direction", "without trial.speed_mps", "leave it out, or name a speed")
		return
	}
	if !moves(kind) {
		c.need("car", "a node, whose GPS the speed is read from")
	}
}

// direction is outbound unless the file says otherwise, and absent when nobody moves.
func (c *check) direction() string {
	if !c.has("speed_mps") {
		return ""
	}
	return orElse(c.tree.textAt("direction"), "outbound")
}

// duration is the window's length in seconds. A segment sets it: the window
// is the time that the car spends on it.
func (c *check) duration() float64 {
	if d := c.tree.numberAt("duration_s"); d != nil {
		return *d
	}
	length, speed := c.tree.numberAt("course.length_m"), c.tree.numberAt("speed_mps")
	if c.tree.textAt("course.kind") != "segment" || length == nil || speed == nil {
		return 0
	}
	return roundTo(*length / *speed, 1e3)
}

func (c *check) window() {
	m := c.tree
	length, speed, given := m.numberAt("course.length_m"), m.numberAt("speed_mps"), m.numberAt("duration_s")
	if m.textAt("course.kind") != "segment" {
		c.need("duration_s", "a number from 1 up to 3600 s")
		return
	}
	if length == nil || speed == nil {
		return
	}
	stay := *length / *speed
	if given != nil && *given > stay+0.001 {
		c.add(m.child("duration_s").at, "trial.duration_s: %s s is longer than the segment lasts at %s m/s; allowed: "+
			"at most %.1f s, or leave it out",
			formatNumber(*given), formatNumber(*speed), stay)
	}
	if given == nil && (stay < 1 || stay > 3600) {
		c.add(m.lookup("course.length_m").at, "trial.course.length_m: %s m last %.2f s at %s m/s; allowed: a length "+
			"that takes 1 to 3600 s",
			formatNumber(*length), stay, formatNumber(*speed))
	}
}

func (c *check) gate() {
	m := c.tree
	kind := m.textAt("course.kind")
	c.need("gate.timeout_s", "a number from 1 up to 3600 s")
	c.need("gate.lead_s", "a number from 0.1 up to 10 s")
	band := m.boolAt("gate.speed_band")
	held := band != nil && *band
	if !held && (c.lacks("gate.speed_band") || band != nil) && c.lacks("gate.place_m") && c.lacks("gate.after_s") &&
		c.has("gate") && kind != "segment" {
		c.add(m.child("gate").home, "trial.gate: nothing opens it; allowed: speed_band: true, place_m or after_s, or "+
			"several")
	}
	switch {
	case held && c.lacks("speed_mps"):
		c.unfit("gate.speed_band", "without trial.speed_mps", "leave it out, or name a speed")
	case held && c.lacks("acceptance.speed_band_mps"):
		c.unfit("gate.speed_band", "without acceptance.speed_band_mps, which is the band",
			"give the band, or leave it out")
	case !held && (c.lacks("gate.speed_band") || band != nil):
		c.unfit("gate.hold_s", "without gate.speed_band: true", "leave it out")
	}
	c.gatePlace(kind)
	c.gateTime(kind, held)
}

func (c *check) gatePlace(kind string) {
	m := c.tree
	switch kind {
	case "segment":
		c.unfit("gate.place_m", "in a course of kind segment, whose edge is the place", "leave it out")
		c.need("course.heading_deg", "the true bearing of outbound, since the gate waits for a place")
	case "depart", "pass":
		if c.has("gate.place_m") {
			c.need("course.heading_deg", "the true bearing of outbound, since the gate waits for a place")
		}
		if place, start := m.numberAt("gate.place_m"), m.numberAt("course.start_m"); place != nil && start != nil &&
			*place < *start {
			c.add(m.lookup("gate.place_m").at, "trial.gate.place_m: %s lies behind the car, which starts at %s; "+
				"allowed: from %s on",
				formatNumber(*place), formatNumber(*start), formatNumber(*start))
		}
	default:
		c.unfit("gate.place_m", "in a course of kind "+orElse(kind, "none"), "leave it out; depart and pass "+
			"have places")
	}
}

// marginS is what a gate needs beyond run-up and hold: a fix of a 1 Hz
// receiver may be a second old, and the car drives on meanwhile.
const marginS = 1

// gateTime asks that the gate can open at all: before its time-out, and on a
// segment before the car has reached it.
func (c *check) gateTime(kind string, held bool) {
	m := c.tree
	timeout, after := m.numberAt("gate.timeout_s"), m.numberAt("gate.after_s")
	if timeout != nil && after != nil && *after >= *timeout {
		c.add(m.lookup("gate.after_s").at, "trial.gate.after_s: %s is not before timeout_s %s; allowed: below it",
			formatNumber(*after), formatNumber(*timeout))
		return
	}
	speed, accel := m.numberAt("speed_mps"), m.numberAt("course.accel_mps2")
	if !moves(kind) || speed == nil || accel == nil {
		return
	}
	hold, lead := orZero(m.numberAt("gate.hold_s")), orZero(m.numberAt("gate.lead_s"))
	start, first := m.numberAt("course.start_m"), m.numberAt("course.segment_m")
	if kind == "segment" && start != nil && first != nil {
		room := *first - *start
		need := runUpM(*speed, *accel) + *speed*(hold+lead)
		if held {
			need += *speed * marginS
		}
		if room < need {
			c.add(m.lookup("course.start_m").at, "trial.course.start_m: %s leaves %s m before the segment at %s, and "+
				"%s m/s needs %.0f m of run-up (%s m/s², hold, lead and %d s for GPS); allowed: at most %.0f",
				formatNumber(*start), formatNumber(room), formatNumber(*first), formatNumber(*speed), need,
				formatNumber(*accel), marginS, math.Floor(*first-need))
		}
	}
	if at := approach(c.decode(), *speed, *accel, hold).seconds; timeout != nil && at >= *timeout {
		c.add(m.lookup("gate.timeout_s").at, "trial.gate.timeout_s: %s s pass before the car can be at the gate, "+
			"which takes %.1f s at %s m/s; allowed: above %.1f s",
			formatNumber(*timeout), at, formatNumber(*speed), at)
	}
}
