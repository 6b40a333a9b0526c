// Package drive reckons what a schedule takes: the time and the road of each trial
// and of all, from the courses alone. The car gathers speed uniformly, keeps its
// target speed, and brakes uniformly.
package drive

import (
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Turnaround is what an estimate assumes for all that lies between the end of
// one trial's braking and the start of the next trial's drive. It is an
// assumption and is printed with every total.
type Turnaround struct {
	TrialS float64 `json:"trial_s"`          // driving back, reading the cue
	SwapS  float64 `json:"swap_s"`           // added when another node goes into the car
	NodeS  float64 `json:"node_s,omitempty"` // added for each node that takes part
}

// onRoad is a driver who turns round at a quiet place, and an experimenter
// who carries a laptop from the car to the roadside and back.
func onRoad() Turnaround { return Turnaround{TrialS: 60, SwapS: 300} }

// inRehearsal is the emulated field, which puts the car at its start. What goes
// by is the end of flows (traffic.Grace), and for each node its daemons' start,
// records and captures: measured with 6 to 25 nodes on two busy cores.
func inRehearsal() Turnaround { return Turnaround{TrialS: 3, NodeS: 0.3} }

// Trial is the time and the road of one trial, in seconds and metres.
type Trial struct {
	Number    int     `json:"number"`
	ApproachS float64 `json:"approach_s"` // run-up, hold, and the way to the gate's place
	LeadS     float64 `json:"lead_s"`
	WindowS   float64 `json:"window_s"`
	BrakeS    float64 `json:"brake_s"`
	ApproachM float64 `json:"approach_m"`
	LeadM     float64 `json:"lead_m"`
	WindowM   float64 `json:"window_m"`
	BrakeM    float64 `json:"brake_m"`
	// FromM and ToM are the ends of the strip of road that the trial covers,
	// along the road from the roadside node's mark; a loop's are 0 and its
	// circumference.
	FromM float64 `json:"from_m"`
	ToM   float64 `json:"to_m"`
}

// DriveS is the time from setting off until the car stands again.
func (e Trial) DriveS() float64 { return e.ApproachS + e.LeadS + e.WindowS + e.BrakeS }

// RoadM is the length of the trial's strip of road.
func (e Trial) RoadM() float64 { return e.ToM - e.FromM }

// Estimate is the time and the road of a whole schedule in which every trial
// is accepted at its first attempt.
type Estimate struct {
	Trials      []Trial    `json:"trials"`
	WindowS     float64    `json:"window_s"`               // all windows together
	DriveS      float64    `json:"drive_s"`                // all drives together, windows included
	SwapsBefore []int      `json:"swaps_before,omitempty"` // the trials before which the node in the car changes
	Road        Turnaround `json:"road_turnaround"`
	RoadTotalS  float64    `json:"road_total_s"`
	Rehearsal   Turnaround `json:"rehearsal_turnaround"`
	RehearsalS  float64    `json:"rehearsal_total_s"` // in one field
	FromM       float64    `json:"from_m"`            // the strip of road that covers every trial's
	ToM         float64    `json:"to_m"`
	LongestM    float64    `json:"longest_m"` // the longest strip of one trial
	LongestAt   int        `json:"longest_trial"`
	AttemptsMax int        `json:"attempts_max"`
}

// SpanM is the length of the road that covers every trial's strip, without any run-off.
func (e Estimate) SpanM() float64 { return e.ToM - e.FromM }

// Of estimates a schedule.
func Of(trials []wire.Trial, attemptsMax int) Estimate {
	e := Estimate{Road: onRoad(), Rehearsal: inRehearsal(), AttemptsMax: attemptsMax}
	for i, t := range trials {
		x := trialOf(t)
		e.Trials = append(e.Trials, x)
		e.WindowS += x.WindowS
		e.DriveS += x.DriveS()
		if i == 0 {
			e.FromM, e.ToM = x.FromM, x.ToM
		}
		e.FromM, e.ToM = min(e.FromM, x.FromM), max(e.ToM, x.ToM)
		if x.RoadM() > e.LongestM {
			e.LongestM, e.LongestAt = x.RoadM(), t.Number
		}
		e.RehearsalS += e.Rehearsal.NodeS * float64(len(t.Nodes()))
		if t.Timed() { // on a road the car brakes meanwhile
			e.RehearsalS += wire.DelayGrace.Seconds()
		}
		if i > 0 && t.Car != trials[i-1].Car {
			e.SwapsBefore = append(e.SwapsBefore, t.Number)
		}
	}
	n := float64(len(trials))
	e.RoadTotalS = e.DriveS + n*e.Road.TrialS + float64(len(e.SwapsBefore))*e.Road.SwapS
	e.RehearsalS += e.DriveS + n*e.Rehearsal.TrialS
	return e
}

func trialOf(t wire.Trial) Trial {
	e := Trial{Number: t.Number, LeadS: t.Gate.LeadS, WindowS: t.DurationS}
	if t.SpeedMps == nil || !Moves(t.Course.Kind) {
		e.ApproachS = max(t.Gate.HoldS, orZero(t.Gate.AfterS))
		if t.Course.MarkM != nil {
			e.FromM, e.ToM = *t.Course.MarkM, *t.Course.MarkM
		}
		return e
	}
	v := *t.SpeedMps
	e.ApproachS, e.ApproachM = Approach(t, v, t.Course.AccelMps2, t.Gate.HoldS)
	e.LeadM, e.WindowM = v*e.LeadS, v*e.WindowS
	e.BrakeS, e.BrakeM = v/t.Course.BrakeMps2, RunUpM(v, t.Course.BrakeMps2)
	way := e.ApproachM + e.LeadM + e.WindowM + e.BrakeM
	start := t.Course.StartM
	switch {
	case t.Course.Kind == "loop":
		e.FromM, e.ToM = 0, orZero(t.Course.LengthM)
	case t.Direction != "inbound":
		e.FromM, e.ToM = start, start+way
	case t.Course.Kind == "segment":
		far := orZero(t.Course.SegmentM)*2 + orZero(t.Course.LengthM) - start
		e.FromM, e.ToM = far-way, far
	default: // the mirror image about the roadside node
		e.FromM, e.ToM = -start-way, -start
	}
	return e
}

// Moves reports whether a kind of course has the car drive.
func Moves(kind string) bool {
	return slices.Contains([]string{"depart", "pass", "loop", "segment"}, kind)
}

// Approach is the drive from standing until the gate can open: at the target
// speed, held for hold seconds, and past the gate's place and time.
func Approach(t wire.Trial, speed, accel, hold float64) (seconds, metres float64) {
	metres = RunUpM(speed, accel) + speed*hold
	if t.Gate.PlaceM != nil {
		ahead := *t.Gate.PlaceM - t.Course.StartM
		if t.Direction == "inbound" {
			ahead = -*t.Gate.PlaceM - t.Course.StartM
			if t.Course.Kind == "segment" {
				ahead = 2*orZero(t.Course.SegmentM) + orZero(t.Course.LengthM) - t.Course.StartM - *t.Gate.PlaceM
			}
		}
		metres = max(metres, ahead)
	}
	seconds = speed/accel + (metres-RunUpM(speed, accel))/speed
	if after := orZero(t.Gate.AfterS); after > seconds {
		metres += (after - seconds) * speed
		seconds = after
	}
	return seconds, metres
}

// RunUpM is the way in which a uniform acceleration brings a car from rest to
// a speed, or braking brings it from the speed to rest: v² / 2a.
func RunUpM(speedMps, accelMps2 float64) float64 {
	return math.Pow(speedMps, 2) / (2 * accelMps2)
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
