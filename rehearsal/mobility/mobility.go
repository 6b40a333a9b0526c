// Package mobility says where nodes are at any time, and where that is on
// Earth: cars on a course, Random Waypoint, chains and grids with scripted
// moves, and movements read from files. It is pure: time and seed come in as
// arguments. How often somebody looks, who is told, and what a radio makes of
// the distance stay out.
package mobility

import (
	"fmt"
	"math"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Directions of travel.
//
// "outbound" is the course's heading. "inbound" is the opposite heading, by
// mirroring the course so that both directions see the same distances:
//   - depart: the car stands on the other side of the roadside node and drives
//     away from it there; in both directions the distance grows.
//   - pass: the car comes from the other side.
//   - loop: it goes round the other way, from the place opposite in s.
//   - segment: it drives the same stretch from its far end, with the same
//     run-up before it.
//   - parked, none: nothing changes.
const (
	Outbound = "outbound"
	Inbound  = "inbound"
)

// State is the car at one instant. The plane is local to the site: x points
// east, y north, the roadside node stands at (0, 0).
type State struct {
	XM, YM    float64
	SpeedMps  float64
	TrackDeg  float64 // true bearing of travel, 0 ≤ track < 360; of the heading while it stands
	DistanceM float64 // to the roadside node
}

// Drive is one drive of a course. The zero time of its methods is whatever
// the caller counts from; a Drive is a value and never changes.
type Drive struct {
	course  wire.Course
	speed   float64 // target
	startM  float64 // along the road at rest, positive outbound of the mark
	sign    float64 // +1 drives outbound, -1 inbound
	moving  bool    // this kind of course moves at all
	departs *time.Duration
	brakes  *time.Duration
}

// New checks a course and puts the car at its start, standing.
func New(c wire.Course, speedMps float64, direction string) (Drive, error) {
	d := Drive{course: c, speed: speedMps, startM: c.FromM(direction == Inbound), sign: 1}
	switch direction {
	case Outbound, "":
	case Inbound:
		d.sign = -1
	default:
		return Drive{}, fmt.Errorf("plan drive: direction %q is neither outbound nor inbound", direction)
	}
	switch c.Kind {
	case "parked":
		if c.MarkM == nil {
			return Drive{}, fmt.Errorf("plan drive: a parked course needs mark_m")
		}
		return d, nil
	case "none":
		return d, nil
	case "depart", "pass":
	case "loop":
		if c.LengthM == nil || *c.LengthM <= 0 {
			return Drive{}, fmt.Errorf("plan drive: a loop needs length_m above 0")
		}
	case "segment":
		if err := d.placeForSegment(); err != nil {
			return Drive{}, err
		}
	default:
		return Drive{}, fmt.Errorf("plan drive: course %q is none of depart, pass, loop, segment, parked, none", c.Kind)
	}
	if !(speedMps > 0) || !(c.AccelMps2 > 0) || !(c.BrakeMps2 > 0) {
		return Drive{}, fmt.Errorf("plan drive: speed %g m/s, acceleration %g m/s² and braking %g m/s² must be above 0",
			speedMps, c.AccelMps2, c.BrakeMps2)
	}
	d.moving = true
	return d, nil
}

// placeForSegment puts the car before the stretch, as far as start_m says,
// and refuses a run-up in which the car cannot reach its speed.
func (d *Drive) placeForSegment() error {
	c := d.course
	if c.SegmentM == nil || c.LengthM == nil || *c.LengthM <= 0 {
		return fmt.Errorf("plan drive: a segment needs segment_m, and length_m above 0")
	}
	runUp := *c.SegmentM - c.StartM
	if need := StopM(d.speed, c.AccelMps2); runUp < need {
		return fmt.Errorf("plan drive: from start_m %g to segment_m %g the car has %.1f m to reach %g m/s and "+
			"needs %.1f m",
			c.StartM, *c.SegmentM, runUp, d.speed, need)
	}
	return nil
}

// Depart is the drive that sets off at t.
func (d Drive) Depart(t time.Duration) Drive {
	if d.moving && d.departs == nil {
		d.departs = &t
	}
	return d
}

// Brake is the drive that begins to brake at t and then stands. Braking
// before the departure cancels it.
func (d Drive) Brake(t time.Duration) Drive {
	switch {
	case d.departs == nil || d.brakes != nil:
	case t <= *d.departs:
		d.departs = nil
	default:
		d.brakes = &t
	}
	return d
}

// Moves reports whether this kind of course moves at all.
func (d Drive) Moves() bool { return d.moving }

// At is the car at t.
func (d Drive) At(t time.Duration) State {
	travelled, speed := d.travelled(t)
	return d.place(d.startM+d.sign*travelled, speed)
}

// travelled is the way since the start, and the speed.
func (d Drive) travelled(t time.Duration) (wayM, speedMps float64) {
	if d.departs == nil || t <= *d.departs {
		return 0, 0
	}
	if d.brakes == nil || t <= *d.brakes {
		return d.cruise((t - *d.departs).Seconds())
	}
	way, v0 := d.cruise((*d.brakes - *d.departs).Seconds())
	b := d.course.BrakeMps2
	tau := min((t - *d.brakes).Seconds(), v0/b)
	return way + v0*tau - b*tau*tau/2, v0 - b*tau
}

// cruise is uniform acceleration to the target speed, then that speed.
func (d Drive) cruise(tau float64) (wayM, speedMps float64) {
	a := d.course.AccelMps2
	ramp := d.speed / a
	if tau <= ramp {
		return a * tau * tau / 2, a * tau
	}
	return d.speed*ramp/2 + d.speed*(tau-ramp), d.speed
}

// place turns a distance along the road into a place. A straight road runs
// offset_m to the right of the node, seen along the heading; a loop leaves
// that road at the mark by a constant curve to the right.
func (d Drive) place(s, speed float64) State {
	along, right, bend := s, d.course.OffsetM, 0.0
	if d.course.Kind == "loop" {
		r := *d.course.LengthM / (2 * math.Pi)
		bend = s / r
		along, right = r*math.Sin(bend), d.course.OffsetM+r*(1-math.Cos(bend))
	}
	sin, cos := math.Sincos(d.course.HeadingDeg * math.Pi / 180)
	track := d.course.HeadingDeg + bend*180/math.Pi
	if d.sign < 0 {
		track += 180
	}
	track = math.Mod(track, 360)
	if track < 0 {
		track += 360
	}
	return State{
		XM: along*sin + right*cos, YM: along*cos - right*sin,
		SpeedMps: speed, TrackDeg: track, DistanceM: math.Hypot(along, right),
	}
}

// StopM is the way in which a uniform acceleration (or braking) of accelMps2
// takes a car from rest to speedMps (or from it to rest).
func StopM(speedMps, accelMps2 float64) float64 { return speedMps * speedMps / (2 * accelMps2) }
