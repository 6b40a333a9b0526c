package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/drive"
)

// courseKeys says which keys of a course belong to which kind, the needed ones first.
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

func (c *check) course() {
	c.need("course.kind", "depart, pass, loop, segment, parked or none")
	kind := c.tree.TextAt("course.kind")
	if kind == "" {
		return
	}
	needed, possible := courseKeys(kind)
	for _, key := range needed {
		c.need("course."+key, "a number, which a course of kind "+kind+" needs")
	}
	fitting := append(needed, possible...)
	for _, e := range c.tree.Child("course").Entries {
		other := e.Key == "kind" || (object{(schema{}).courseKeys()}).field(e.Key) == nil
		if !other && !slices.Contains(fitting, e.Key) {
			c.unfit("course."+e.Key, "in a course of kind "+kind, strings.Join(fitting, ", "))
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
	if start := c.tree.NumberAt("course.start_m"); kind == "pass" && start != nil && *start >= 0 {
		c.add(c.tree.Lookup("course.start_m").At, "trial.course.start_m: %s is not before the roadside node, which a "+
			"course of kind pass drives past; allowed: below 0", formatNumber(*start))
	}
}

// speed judges the target speed against the course.
func (c *check) speed() {
	kind := c.tree.TextAt("course.kind")
	switch {
	case drive.Moves(kind):
		c.need("speed_mps", "a number above 0 and up to 60 m/s, since the course has the car drive")
	case kind == "parked":
		c.unfit("speed_mps", "in a course of kind parked", "leave it out")
	}
	if c.lacks("speed_mps") {
		c.unfit("direction", "without trial.speed_mps", "leave it out, or name a speed")
		return
	}
	if !drive.Moves(kind) {
		c.need("car", "a node, whose GPS the speed is read from")
	}
}

// direction is outbound unless the file says otherwise, and absent when nobody moves.
func (c *check) direction() string {
	if !c.has("speed_mps") {
		return ""
	}
	return cmp.Or(c.tree.TextAt("direction"), "outbound")
}

// duration is the window's length in seconds. A segment sets it: the window is the time that the car spends on it.
func (c *check) duration() float64 {
	if d := c.tree.NumberAt("duration_s"); d != nil {
		return *d
	}
	length, speed := c.tree.NumberAt("course.length_m"), c.tree.NumberAt("speed_mps")
	if c.tree.TextAt("course.kind") != "segment" || length == nil || speed == nil {
		return 0
	}
	return roundTo(*length / *speed, 1e3)
}

func (c *check) window() {
	m := c.tree
	length, speed, given := m.NumberAt("course.length_m"), m.NumberAt("speed_mps"), m.NumberAt("duration_s")
	if m.TextAt("course.kind") != "segment" {
		c.need("duration_s", "a number from 1 up to 3600 s")
		return
	}
	if length == nil || speed == nil {
		return
	}
	stay := *length / *speed
	if given != nil && *given > stay+0.001 {
		c.add(m.Child("duration_s").At, "trial.duration_s: %s s is longer than the segment lasts at %s m/s; allowed: "+
			"at most %.1f s, or leave it out",
			formatNumber(*given), formatNumber(*speed), stay)
	}
	if given == nil && (stay < 1 || stay > 3600) {
		c.add(m.Lookup("course.length_m").At, "trial.course.length_m: %s m last %.2f s at %s m/s; allowed: a length "+
			"that takes 1 to 3600 s",
			formatNumber(*length), stay, formatNumber(*speed))
	}
}

func (c *check) gate() {
	m, kind := c.tree, c.tree.TextAt("course.kind")
	c.need("gate.timeout_s", "a number from 1 up to 3600 s")
	c.need("gate.lead_s", "a number from 0.3 up to 10 s")
	if m.NumberOrZero("gate.lead_s") < 0.3 && !c.p.archived {
		c.unfit("gate.lead_s", "below 0.3 s, for GO is silent for the last 0.1 s", "a number from 0.3 up to 10 s")
	}
	band := m.BoolAt("gate.speed_band")
	held := band != nil && *band
	if !held && (c.lacks("gate.speed_band") || band != nil) && c.lacks("gate.place_m") && c.lacks("gate.after_s") &&
		c.has("gate") && kind != "segment" {
		c.add(m.Child("gate").Home, "trial.gate: nothing opens it; allowed: speed_band: true, place_m or after_s, or "+
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
		if c.has("gate.place_m") || kind == "pass" {
			c.need("course.heading_deg", "the true bearing of outbound, since the gate waits for a place")
		}
		if place, start := m.NumberAt("gate.place_m"), m.NumberAt("course.start_m"); place != nil && start != nil &&
			*place < *start {
			c.add(m.Lookup("gate.place_m").At, "trial.gate.place_m: %s lies behind the car, which starts at %s; "+
				"allowed: from %s on",
				formatNumber(*place), formatNumber(*start), formatNumber(*start))
		}
	default:
		waits := m.BoolAt("gate.at_start")
		parked := kind == "parked" && (waits == nil || *waits)
		if parked && c.has("course.site_lat_deg") && !c.p.archived { // the gate waits for the car at its mark
			c.need("course.heading_deg", "the true bearing of outbound, along which a parked car's mark is looked for")
		}
		without := "in a course of kind " + cmp.Or(kind, "none")
		c.unfit("gate.place_m", without, "leave it out; depart and pass have places")
		if kind != "parked" || parked {
			c.unfit("gate.at_start", without, "leave it out")
		}
	}
}

// marginS is what a gate needs beyond run-up and hold: a fix of a 1 Hz
// receiver may be a second old, and the car drives on meanwhile.
const marginS = 1

// gateTime asks that the gate can open at all: before its time-out, and on a segment before the car has reached it.
func (c *check) gateTime(kind string, held bool) {
	m := c.tree
	timeout, after := m.NumberAt("gate.timeout_s"), m.NumberAt("gate.after_s")
	if timeout != nil && after != nil && *after >= *timeout {
		c.add(m.Lookup("gate.after_s").At, "trial.gate.after_s: %s is not before timeout_s %s; allowed: below it",
			formatNumber(*after), formatNumber(*timeout))
		return
	}
	speed, accel := m.NumberAt("speed_mps"), m.NumberAt("course.accel_mps2")
	if !drive.Moves(kind) || speed == nil || accel == nil {
		return
	}
	hold, lead := m.NumberOrZero("gate.hold_s"), m.NumberOrZero("gate.lead_s")
	start, first := m.NumberAt("course.start_m"), m.NumberAt("course.segment_m")
	if kind == "segment" && start != nil && first != nil {
		room := *first - *start
		need := drive.RunUpM(*speed, *accel) + *speed*(hold+lead)
		if held {
			need += *speed * marginS
		}
		if room < need {
			c.add(m.Lookup("course.start_m").At, "trial.course.start_m: %s leaves %s m before the segment at %s, and "+
				"%s m/s needs %.0f m of run-up (%s m/s², hold, lead and %d s for GPS); allowed: at most %.0f",
				formatNumber(*start), formatNumber(room), formatNumber(*first), formatNumber(*speed), need,
				formatNumber(*accel), marginS, math.Floor(*first-need))
		}
	}
	if at, _ := drive.Approach(c.decode(), *speed, *accel, hold); timeout != nil && at >= *timeout {
		c.add(m.Lookup("gate.timeout_s").At, "trial.gate.timeout_s: %s s is too short: the car needs %.1f s to "+
			"reach the gate at %s m/s; allowed: above %.1f s",
			formatNumber(*timeout), at, formatNumber(*speed), at)
	}
}
