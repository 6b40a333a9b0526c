package report

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stopping"
)

// stoppingView is why the run stopped when it did.
type stoppingView struct {
	Wish, Spent, Reason, Beyond string
	Looks                       []lookRow
}

type lookRow struct {
	Blocks, Whole, Wanted string
	Contrasts             []string
	Enough                bool
}

func viewStopping(d *evidence.Run) (any, error) {
	e := d.Info.Enough
	if e == nil {
		return nil, nil
	}
	looks := stopping.Plan(*e, d.Info.Plan)
	v := stoppingView{Wish: wishOf(d), Reason: "The run has not stopped yet.",
		Spent: fmt.Sprintf("There can be %s, from block %d to block %d, at %s; each interval is told at %s, so that "+
			"all of them together hold at %s.",
			words.Count(looks.Count(), "look"), looks.First, looks.Last, words.Count(looks.Questions, "estimate"),
			words.Percent(looks.Each()), words.Percent(e.Confidence))}
	if d.Stop != nil {
		v.Reason = fmt.Sprintf("Stopped after block %d: %s.", d.Stop.Blocks, d.Stop.Reason)
	}
	mbps, open := d.PerTrial()
	driven := stopping.Driven(d.Info.Plan, func(trial int) bool { return open[trial] })
	for _, b := range stopping.Due(*e, d.Info.Plan, driven) {
		if d.Stop != nil && b > d.Stop.Blocks {
			break
		}
		v.Looks = append(v.Looks, lookRowOf(stopping.Take(*e, d.Info.Plan, b, func(trial int) *float64 {
			return mbps[trial]
		})))
	}
	if n := d.DrivenBeyond(); n > 0 {
		v.Beyond = fmt.Sprintf("%s of later blocks had been driven when the run stopped, by nodes that went on "+
			"alone. They are kept, and in no mean and no model.", words.Count(n, "attempt"))
	}
	return v, nil
}

// wishOf is what the campaign wanted to know, in words.
func wishOf(d *evidence.Run) string {
	e := d.Info.Enough
	what := "the mean"
	if e.Of != plan.StopOfMean {
		what = fmt.Sprintf("every difference between levels of %s", e.Of)
	}
	if e.HalfWidthMbps != nil {
		return fmt.Sprintf("%s to ± %g Mbit/s", what, *e.HalfWidthMbps)
	}
	return fmt.Sprintf("%s to ± %g %% of the mean", what, *e.HalfWidthPercent)
}

func lookRowOf(l stopping.Look) lookRow {
	r := lookRow{Blocks: fmt.Sprint(l.Blocks), Whole: fmt.Sprint(l.Whole), Wanted: fmt.Sprintf("± %.3g", l.Wanted),
		Enough: l.Enough}
	for _, c := range l.Contrasts {
		if c.Half == nil {
			r.Contrasts = append(r.Contrasts, c.Label+": no interval yet")
			continue
		}
		r.Contrasts = append(r.Contrasts, fmt.Sprintf("%s: %s ± %.3g", c.Label, words.Signed(c.Value), *c.Half))
	}
	return r
}
