package live

import (
	"fmt"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Next is the attempt that comes after those under way.
type Next struct {
	Trial     int               `json:"trial"`
	Attempt   int               `json:"attempt"`
	Pass      string            `json:"pass,omitempty"`
	Factors   map[string]string `json:"factors,omitempty"`
	Sender    string            `json:"sender"`
	Receiver  string            `json:"receiver"`
	Car       string            `json:"car,omitempty"`
	Direction string            `json:"direction,omitempty"`
	TargetMps *float64          `json:"target_mps,omitempty"`
	DurationS float64           `json:"duration_s"`
}

// Left is how long the run still takes, as `fieldmesh run` estimates it.
type Left struct {
	About string `json:"about"`
	By    string `json:"by"` // what the estimate rests on
}

// pauseMax parts what one controller drove from what the next one did: no trial waits so long for its verdict.
const pauseMax = 30 * time.Minute

// planned is the schedule as far as the verdicts have it.
type planned struct {
	total, decided int // trials that are driven here; those of them that are accepted or given up
	next           *Next
}

func plannedOf(a *archive.Archive, decisions []wire.Verdict) planned {
	var p planned
	verdicts := byTrial(decisions)
	info := a.Info()
	for _, t := range info.Plan.Trials {
		if !a.Drives(t) {
			continue
		}
		p.total++
		attempt, more := verdict.Next(info.Plan.AttemptsMax, verdicts[t.Number])
		switch {
		case !more:
			p.decided++
		case p.next == nil && !a.Begun(wire.TrialKey{Trial: t.Number, Attempt: attempt}):
			p.next = &Next{Trial: t.Number, Attempt: attempt, Pass: t.Pass, Factors: t.Factors, Sender: t.Sender,
				Receiver: t.Receiver, Car: t.Car, Direction: t.Direction, TargetMps: t.SpeedMps, DurationS: t.DurationS}
		}
	}
	return p
}

func byTrial(decisions []wire.Verdict) map[int][]wire.Verdict {
	out := map[int][]wire.Verdict{}
	for _, v := range decisions {
		out[v.Trial] = append(out[v.Trial], v)
	}
	return out
}

// Remaining estimates how long a run still takes at a time, by its decisions so far; 0: nothing is estimated, or
// nothing is left. By is how many decided trials it rests on, 0 where it is the plan alone. The archive does not say
// when the controller that drives it was started: that is taken to be the verdict before the newest ones that follow
// each other without a pause, or the run's beginning. In virtual time, whose pace nobody knows, nothing is estimated.
func Remaining(a *archive.Archive, now time.Time) (left time.Duration, by int, err error) {
	decisions := a.Decisions()
	return remaining(a, plannedOf(a, decisions), decisions, now)
}

func remaining(a *archive.Archive, p planned, decisions []wire.Verdict, now time.Time) (left time.Duration, by int,
	err error) {
	info := a.Info()
	if len(info.Plan.Trials) == 0 || info.Clock.Virtual() || p.decided == p.total {
		return 0, 0, nil
	}
	judged, err := a.Judged()
	if err != nil {
		return 0, 0, fmt.Errorf("read when attempts were judged: %w", err)
	}
	begun := begunAt(info.CreatedWall, judged)
	var before []wire.Verdict
	for _, v := range decisions {
		if at := judged[v.TrialKey]; !at.After(begun) {
			before = append(before, v)
		}
	}
	first := plannedOf(a, before).decided
	estimate := drive.Left{
		Trial: drive.Of(info.Plan.Trials, info.Plan.AttemptsMax).Each(info.Place == archive.PlaceRehearsal),
		Begun: begun, First: first,
	}
	return estimate.After(p.decided, p.total, now), p.decided - first, nil
}

// leftOf words what remains.
func leftOf(a *archive.Archive, p planned, decisions []wire.Verdict, now time.Time) (*Left, error) {
	about, done, err := remaining(a, p, decisions, now)
	switch {
	case err != nil || about == 0:
		return nil, err
	case done == 0:
		return &Left{About: drive.About(about), By: "by the plan"}, nil
	case done == 1:
		return &Left{About: drive.About(about), By: "by the trial decided so far"}, nil
	default:
		return &Left{About: drive.About(about), By: fmt.Sprintf("by the %d trials decided so far", done)}, nil
	}
}

// begunAt is the last verdict before the newest row of them, or when the run was made.
func begunAt(created time.Time, judged map[wire.TrialKey]time.Time) time.Time {
	times := []time.Time{created}
	for _, t := range judged {
		times = append(times, t)
	}
	slices.SortFunc(times, time.Time.Compare)
	begun := times[0]
	for i := 1; i < len(times); i++ {
		if times[i].Sub(times[i-1]) > pauseMax {
			begun = times[i]
		}
	}
	return begun
}
