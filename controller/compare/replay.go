package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// Replay is how well the rehearsal of a calibrated field foretold the throughput of the
// repetitions that were held out from the calibration.
//
// What a repetition's trials have in common, its shadows first of all, makes the
// repetition the unit of chance. A run whose repetitions have channels of their own had
// one chance for each that was held out, and one for each that calibrated the field: a
// field is no nearer to its kind of channel than they were. Their throughput scatters by
// as much as that or more, because the fit of the signals is of all places together. On a
// road all repetitions see the same shadows. It is one channel of its kind, and may be as
// far from the rehearsal's mean as any one of the rehearsal's repetitions. The field
// follows that road's shadows in part, so that this is rather too much.
type Replay struct {
	HeldOut []int // repetitions
	Errors  []Error
}

// Error is of a mean throughput.
type Error struct {
	Of        string   // which passes, or what part of them
	Held      float64  // Mbit/s, of what was held out
	Rehearsed float64  // Mbit/s
	Share     float64  // the second less the first, as a share of the first
	HalfWide  *float64 // of its interval; absent where too few repetitions tell
}

// calibrated is the second run's field; nil if it was not calibrated by the first, or by
// all of it.
func (t *Table) calibrated() *environment.Field {
	if t.B.Place != archive.PlaceRehearsal {
		return nil
	}
	c, err := plan.ParseArchived("campaign.yaml", t.B.CampaignRaw, scaleOf(t.B))
	switch {
	case err != nil:
		t.Notes = append(t.Notes, fmt.Sprintf("the second's campaign cannot be read, so that nothing is known of a "+
			"calibration: %v", err))
		return nil
	case c.Field == nil || c.Field.CalibratedBy == nil || len(c.Field.CalibratedBy.HeldOut) == 0:
		return nil
	case c.Field.CalibratedBy.Run != t.A.Run:
		t.Notes = append(t.Notes, fmt.Sprintf("the second's field was calibrated by another run: %s",
			c.Field.CalibratedBy.Run))
		return nil
	}
	return c.Field
}

// replay compares throughput as a whole, by speed, and by distance.
func (t *Table) replay(f *environment.Field, road, rehearsal []pass) {
	r := replaying{heldOut: f.CalibratedBy.HeldOut, oneRoad: t.A.ChannelDraws != environment.DrawsPerRepetition}
	t.Replay = &Replay{HeldOut: r.heldOut}
	switch {
	case t.B.ChannelDraws != environment.DrawsPerRepetition:
		r.blind = "all repetitions of the rehearsal have one draw of the channel, so that the errors have no " +
			"intervals: leave channel_draws out of its field"
	case r.oneRoad && f.Shadowing == nil:
		r.blind = "the rehearsal's field has no shadowing, because the road did not tell it: nobody knows how far " +
			"one road may be from others, so that the errors have no intervals"
	}
	add := func(of string, a, b []chance) {
		if e := r.judge(a, b); e != nil {
			e.Of = of
			t.Replay.Errors = append(t.Replay.Errors, *e)
		}
	}
	all := func(pass) bool { return true }
	add("all", chances(road, all), chances(rehearsal, all))
	var speeds []float64
	for _, p := range road {
		if p.speedMps != nil {
			speeds = append(speeds, *p.speedMps)
		}
	}
	slices.Sort(speeds)
	for _, v := range slices.Compact(speeds) {
		at := func(p pass) bool { return p.speedMps != nil && *p.speedMps == v }
		add(fmt.Sprintf("%g m/s", v), chances(road, at), chances(rehearsal, at))
	}
	step := stepM(road)
	for from := 0.0; step > 0 && from < step*mostStretches; from += step {
		add(fmt.Sprintf("%g to %g m", from, from+step), stretch(road, from, from+step),
			stretch(rehearsal, from, from+step))
	}
	if r.blind != "" {
		t.Notes = append(t.Notes, r.blind)
	}
}

// spot is a tenth of a second of a pass.
type spot struct{ distanceM, mbps float64 }

func spots(points []metrics.Point) (out []spot) {
	for _, p := range points {
		if p.DistanceM != nil && p.ThroughputBps != nil {
			out = append(out, spot{*p.DistanceM, *p.ThroughputBps / 1e6})
		}
	}
	return out
}

// mostStretches is into how many a run's distances are cut at most.
const mostStretches = 8

// stepM is how long they are; 0 where no distance is known.
func stepM(passes []pass) float64 {
	far := 0.0
	for _, p := range passes {
		for _, s := range p.along {
			far = max(far, s.distanceM)
		}
	}
	if far == 0 {
		return 0
	}
	for size := 1.0; ; size *= 10 {
		for _, step := range []float64{size, 2 * size, 5 * size} {
			if step*mostStretches > far {
				return step
			}
		}
	}
}

// chance is what a pass, or a stretch of it, adds to a mean.
type chance struct {
	repetition    int
	stratum       string // each counts as much as any other
	value, weight float64
}

func chances(passes []pass, which func(pass) bool) (out []chance) {
	for _, p := range passes {
		if v, known := p.numbers[metrics.ThroughputBps]; known && p.repetition > 0 && which(p) {
			out = append(out, chance{p.repetition, p.cell, v, 1})
		}
	}
	return out
}

// stretch is of a stretch of distance, whatever the cell.
func stretch(passes []pass, fromM, toM float64) (out []chance) {
	for _, p := range passes {
		c := chance{repetition: p.repetition}
		for _, s := range p.along {
			if s.distanceM >= fromM && s.distanceM < toM {
				c.weight++
				c.value += (s.mbps - c.value) / c.weight
			}
		}
		if c.weight > 0 && c.repetition > 0 {
			out = append(out, c)
		}
	}
	return out
}

// replaying is what bears on every error of a replay.
type replaying struct {
	heldOut []int
	oneRoad bool   // the first run's repetitions share their channel
	blind   string // why the second's do not show how channels differ; empty: they do
}

// judge finds the error of the second's mean; nil where there is none.
func (r replaying) judge(a, b []chance) *Error {
	isOut := func(c chance) bool { return slices.Contains(r.heldOut, c.repetition) }
	held := slices.DeleteFunc(slices.Clone(a), func(c chance) bool { return !isOut(c) })
	meansHeld, meansB := strata(held), strata(b)
	missing := func(c chance) bool {
		_, inHeld := meansHeld[c.stratum]
		_, inB := meansB[c.stratum]
		return !inHeld || !inB
	}
	a, b, held = slices.DeleteFunc(a, missing), slices.DeleteFunc(b, missing), slices.DeleteFunc(held, missing)
	if len(held) == 0 {
		return nil
	}
	e := &Error{Held: mean(held), Rehearsed: mean(b)}
	if e.Held <= 0 {
		return nil
	}
	e.Share = e.Rehearsed/e.Held - 1
	outs, road, rehearsal := len(repetitions(held)), scatter(a), scatter(b)
	if r.blind != "" || len(road) < 3 || len(rehearsal) < 3 {
		return e
	}
	n, m := float64(len(road)), float64(len(rehearsal))
	first, second := 1/float64(outs), 1/m
	if r.oneRoad {
		second++
	} else if left := n - float64(outs); left > 0 {
		first += 1 / left
	}
	// The variances of a quotient's two parts, to the first order.
	first *= stat.Variance(road, nil) / (e.Held * e.Held) * (1 + e.Share) * (1 + e.Share)
	second *= stat.Variance(rehearsal, nil) / (e.Held * e.Held)
	if first+second > 0 { // by Welch and Satterthwaite, as in stats.Welch
		df := (first + second) * (first + second) / (first*first/(n-1) + second*second/(m-1))
		e.HalfWide = new(stats.TQuantile(Confidence, df) * math.Sqrt(first+second))
	}
	return e
}

// strata are the means of each.
func strata(all []chance) map[string]float64 {
	weight, out := map[string]float64{}, map[string]float64{}
	for _, c := range all {
		weight[c.stratum] += c.weight
		out[c.stratum] += (c.value - out[c.stratum]) * c.weight / weight[c.stratum]
	}
	return out
}

func mean(all []chance) float64 {
	return stat.Mean(slices.Sorted(maps.Values(strata(all))), nil)
}

func repetitions(all []chance) []int {
	var out []int
	for _, c := range all {
		out = append(out, c.repetition)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// scatter is by how much each repetition lies above the means.
func scatter(all []chance) []float64 {
	means := strata(all)
	sum, weight := map[int]float64{}, map[int]float64{}
	for _, c := range all {
		sum[c.repetition] += c.weight * (c.value - means[c.stratum])
		weight[c.repetition] += c.weight
	}
	var out []float64
	for _, r := range repetitions(all) {
		out = append(out, sum[r]/weight[r])
	}
	return out
}
