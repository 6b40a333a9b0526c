package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
	HeldOut []int // repetitions that were held out, and have an accepted trial
	Errors  []Error
}

// Error is of a mean throughput.
type Error struct {
	Of        string   // which passes, or what part of them
	Held      float64  // Mbit/s, of what was held out
	Rehearsed float64  // Mbit/s
	Share     *float64 // the second less the first, as a share of the first; absent where that is 0
	// Low and High are the ends of its interval, absent where too few repetitions tell, or
	// where it has no bounds because the first may be 0.
	Low, High *float64
	without   string // why something is absent, where that is not so of all errors
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
	case c.Field == nil || c.Field.CalibratedBy == nil:
		return nil
	case c.Field.CalibratedBy.Run != t.A.Run:
		t.Notes = append(t.Notes, fmt.Sprintf("the second's field was calibrated by another run: %s",
			c.Field.CalibratedBy.Run))
		return nil
	case len(c.Field.CalibratedBy.HeldOut) == 0:
		t.Notes = append(t.Notes, "the second's field was calibrated by all of the first, also by the trials that it "+
			"is compared with here: to judge a rehearsal, calibrate with --hold-out")
		return nil
	}
	return c.Field
}

// replay compares throughput as a whole, by speed, and by distance.
func (t *Table) replay(f *environment.Field, road, rehearsal []pass) error {
	held, left := map[int]bool{}, map[int]bool{}
	for _, p := range road {
		switch {
		case slices.Contains(f.CalibratedBy.HeldOut, p.repetition):
			held[p.repetition] = true
		case p.repetition > 0:
			left[p.repetition] = true
		}
	}
	if len(held) == 0 {
		return fmt.Errorf("compare %q and %q: of the repetitions that were held out from the calibration, %v, the "+
			"first has no accepted trial that counts: calibrate it again, and rehearse that", t.A.Run, t.B.Run,
			f.CalibratedBy.HeldOut)
	}
	t.Replay = &Replay{HeldOut: slices.Sorted(maps.Keys(held))}
	r := replaying{heldOut: t.Replay.HeldOut, left: len(left),
		oneRoad: t.A.ChannelDraws != environment.DrawsPerRepetition, confidence: t.Confidence()}
	switch {
	case t.A.Place == archive.PlaceRehearsal && t.A.Seed == t.B.Seed:
		r.blind = fmt.Sprintf("both are rehearsals with seed %d, so that their shadows may be alike and the errors "+
			"have no intervals: give design.seed of the second's campaign another value", t.A.Seed)
	case t.B.ChannelDraws != environment.DrawsPerRepetition:
		r.blind = "all repetitions of the rehearsal have one draw of the channel, so that the errors have no " +
			"intervals: leave channel_draws out of its field"
	case r.oneRoad && f.Shadowing == nil:
		r.blind = "the rehearsal's field has no shadowing, because the road did not tell it: nobody knows how far " +
			"one road may be from others, so that the errors have no intervals"
	}
	without := map[string][]string{}
	add := func(of string, a, b []chance) {
		if e := r.judge(a, b); e != nil {
			e.Of = of
			t.Replay.Errors = append(t.Replay.Errors, *e)
			without[e.without] = append(without[e.without], of)
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
	delete(without, "")
	for _, why := range slices.Sorted(maps.Keys(without)) {
		t.Notes = append(t.Notes, strings.Join(without[why], ", ")+": "+why)
	}
	if r.blind != "" {
		t.Notes = append(t.Notes, r.blind)
	}
	return nil
}

// oneDraw leaves out the intervals of the cells' differences where all repetitions of a
// rehearsal have one draw of the channel: their scatter does not show how far others are from
// it. A road is one draw, too; it keeps them where nothing was calibrated by it, see note.
func (t *Table) oneDraw(calibrated bool) {
	for _, of := range []archive.RunInfo{t.A, t.B} {
		if of.ChannelDraws == environment.DrawsPerRepetition || of.Place != archive.PlaceRehearsal && !calibrated {
			continue
		}
		for i := range t.Differences {
			t.Differences[i].HalfWide = nil
		}
		t.Notes = append(t.Notes, fmt.Sprintf("all repetitions of %s have the same shadows, and the scatter of its "+
			"trials does not show how far others are from these: the differences of the cells have no intervals",
			of.Run))
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
	stratum       string
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

// stretch is of a stretch of distance.
func stretch(passes []pass, fromM, toM float64) (out []chance) {
	for _, p := range passes {
		c := chance{repetition: p.repetition, stratum: p.cell}
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
	heldOut    []int
	left       int    // repetitions that calibrated the field
	oneRoad    bool   // the first run's repetitions share their channel
	blind      string // why no error has an interval; empty: it may have one
	confidence float64
}

// judge finds the error of the second's mean; nil where the two have no stratum in common.
func (r replaying) judge(a, b []chance) *Error {
	isOut := func(c chance) bool { return slices.Contains(r.heldOut, c.repetition) }
	held := slices.DeleteFunc(slices.Clone(a), func(c chance) bool { return !isOut(c) })
	meansHeld, meansB := strata(held), strata(b)
	missing := func(c chance) bool {
		_, inHeld := meansHeld[c.stratum]
		_, inB := meansB[c.stratum]
		return !inHeld || !inB
	}
	a, b = shared(slices.DeleteFunc(a, missing)), shared(slices.DeleteFunc(b, missing))
	held = shared(slices.DeleteFunc(held, missing))
	if len(held) == 0 {
		return nil
	}
	e := &Error{Held: mean(held), Rehearsed: mean(b)}
	if e.Held <= 0 {
		e.without = "nothing arrived on the road, and an error is a share of what did"
		return e
	}
	e.Share = new(e.Rehearsed/e.Held - 1)
	if e.Rehearsed <= 0 {
		e.without = "nothing arrived in any repetition of the rehearsal, and what does not vary has no interval"
		return e
	}
	road, rehearsal := scatter(a), scatter(b)
	if r.blind != "" || len(road) < 3 || len(rehearsal) < 3 || r.left == 0 {
		return e
	}
	n, m := float64(len(road)), float64(len(rehearsal))
	first, second := squares(held), squares(b)
	if r.oneRoad {
		second++
	} else {
		first += 1 / float64(r.left)
	}
	first *= stat.Variance(road, nil)
	second *= stat.Variance(rehearsal, nil)
	if first+second == 0 {
		return e
	}
	// By Welch and Satterthwaite, as in stats.Welch, of a rehearsal that is right.
	df := (first + second) * (first + second) / (first*first/(n-1) + second*second/(m-1))
	e.Low, e.High = quotient(e.Rehearsed, second, e.Held, first, stats.TQuantile(r.confidence, df))
	if e.Low == nil {
		e.without = "on the road this scatters so much that its mean may as well be 0, and the error has no bounds"
	}
	return e
}

// quotient gives the ends of the interval, less 1, of a quotient of two means with
// variances (E. Fieller, Journal of the Royal Statistical Society B 16, 1954); none where
// the divisor may be 0. Throughput is never below 0.
func quotient(over, overVar, under, underVar, t float64) (low, high *float64) {
	square := under*under - t*t*underVar
	if square <= 0 {
		return nil, nil
	}
	half := t * math.Sqrt(underVar*over*over+overVar*square)
	return new(max(0, (over*under-half)/square) - 1), new((over*under+half)/square - 1)
}

// shared makes each chance's weight its share in the mean, in which each stratum counts as
// much as any other.
func shared(all []chance) []chance {
	weight := map[string]float64{}
	for _, c := range all {
		weight[c.stratum] += c.weight
	}
	for i, c := range all {
		all[i].weight = c.weight / weight[c.stratum] / float64(len(weight))
	}
	return all
}

// squares is the sum of the squares of the repetitions' shares in a mean: so much of a
// repetition's variance is the mean's.
func squares(all []chance) (sum float64) {
	share := map[int]float64{}
	for _, c := range all {
		share[c.repetition] += c.weight
	}
	for _, r := range repetitions(all) {
		sum += share[r] * share[r]
	}
	return sum
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

func mean(all []chance) (sum float64) {
	for _, c := range all {
		sum += c.weight * c.value
	}
	return sum
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
