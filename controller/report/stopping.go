package report

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// level is the confidence of the run's intervals: where the run looked several
// times whether it had enough, the chance of error is shared among the looks
// (see stats.Looks).
func (d *data) level() float64 {
	e := d.info.Enough
	if e == nil {
		return stats.Confidence
	}
	return 1 - (1-e.Confidence)/float64(stopping.Plan(*e, d.info.Plan).Count())
}

// beyond reports whether a trial is of a block after that which was enough.
func (d *data) beyond(t wire.Trial) bool { return d.stop.Beyond(t) }

// counts reports whether an attempt is a result of the campaign.
func (d *data) counts(a attempt) bool { return archive.Counts(a.Trial, a.Verdict, d.stop) }

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

func viewStopping(d *data) (any, error) {
	e := d.info.Enough
	if e == nil {
		return nil, nil
	}
	looks := stopping.Plan(*e, d.info.Plan)
	v := stoppingView{Wish: wishOf(d), Reason: "The run has not stopped yet.",
		Spent: fmt.Sprintf("There can be %s, from block %d to block %d, at %s; each interval is told at %s, so that "+
			"all of them together hold at %s.",
			words.Count(looks.Count(), "look"), looks.First, looks.Last, words.Count(looks.Questions, "estimate"),
			words.Percent(looks.Each()), words.Percent(e.Confidence))}
	if d.stop != nil {
		v.Reason = fmt.Sprintf("Stopped after block %d: %s.", d.stop.Blocks, d.stop.Reason)
	}
	mbps, open := d.perTrial()
	driven := stopping.Driven(d.info.Plan, func(trial int) bool { return open[trial] })
	for _, b := range stopping.Due(*e, d.info.Plan, driven) {
		if d.stop != nil && b > d.stop.Blocks {
			break
		}
		v.Looks = append(v.Looks, lookRowOf(stopping.Take(*e, d.info.Plan, b, func(trial int) *float64 {
			return mbps[trial]
		})))
	}
	if n := d.drivenBeyond(); n > 0 {
		v.Beyond = fmt.Sprintf("%s of later blocks had been driven when the run stopped, by nodes that went on "+
			"alone. They are kept, and in no mean and no model.", words.Count(n, "attempt"))
	}
	return v, nil
}

// wishOf is what the campaign wanted to know, in words.
func wishOf(d *data) string {
	e := d.info.Enough
	what := "the mean"
	if e.Of != plan.StopOfMean {
		what = fmt.Sprintf("every difference between levels of %s", e.Of)
	}
	if e.HalfWidthMbps != nil {
		return fmt.Sprintf("%s to ± %g Mbit/s", what, *e.HalfWidthMbps)
	}
	return fmt.Sprintf("%s to ± %g %% of the mean", what, *e.HalfWidthPercent)
}

// perTrial is what every trial's accepted attempt measured, and which trials may
// still be driven.
func (d *data) perTrial() (mbps map[int]*float64, open map[int]bool) {
	mbps, open = map[int]*float64{}, map[int]bool{}
	verdicts := map[int][]wire.Verdict{}
	for _, a := range d.attempts {
		if a.Verdict != nil {
			verdicts[a.Trial.Number] = append(verdicts[a.Trial.Number], *a.Verdict)
		}
		if a.accepted() {
			mbps[a.Trial.Number] = a.Mbps
		}
	}
	for _, t := range d.info.Plan.Trials {
		_, more := verdict.Next(d.info.Plan.AttemptsMax, verdicts[t.Number])
		open[t.Number] = more
	}
	return mbps, open
}

// spared is how many planned trials need not be driven any more.
func (d *data) spared() int {
	n := 0
	for _, t := range d.info.Plan.Trials {
		if d.beyond(t) {
			n++
		}
	}
	return n
}

func (d *data) drivenBeyond() int {
	n := 0
	for _, a := range d.attempts {
		if d.beyond(a.Trial) {
			n++
		}
	}
	return n
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
