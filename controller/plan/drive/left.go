package drive

import (
	"fmt"
	"time"
)

// Each is what a trial of the schedule takes on average, turnaround included.
func (e Estimate) Each(rehearsal bool) time.Duration {
	seconds := e.RoadTotalS
	if rehearsal {
		seconds = e.RehearsalS
	}
	return time.Duration(seconds / float64(len(e.Trials)) * float64(time.Second))
}

// Left estimates how long a run still takes: by the trials that it has decided
// since it was begun or resumed, and before the first by the plan.
type Left struct {
	Trial time.Duration // what a trial takes by the plan; 0: nothing is estimated
	Begun time.Time
	First int // trials that were decided then
}

// After is the estimate when so many of all trials are decided; 0: none, or none is left.
func (l Left) After(decided, total int, now time.Time) time.Duration {
	if l.Trial == 0 {
		return 0
	}
	each := l.Trial
	if done := decided - l.First; done > 0 {
		each = now.Sub(l.Begun) / time.Duration(done)
	}
	return max(each*time.Duration(total-decided), 0)
}

// About words a time that is an estimate.
func About(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
