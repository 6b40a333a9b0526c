package effects

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// carriedView is what the uncertainty of clocks and of speed does to the
// model's answers. What errs from trial to trial is in the residual already, and
// so in every interval; what errs alike in all trials is in none, and is bounded
// here.
type carriedView struct {
	Rows    []carriedRow
	Clock   string // what the bounds come from, in words
	Speed   string
	Missing []string
}

type carriedRow struct{ Term, Label, Value, Clock, Speed, Interval string }

func (c *Comparison) carried() carriedView {
	var v carriedView
	amounts, worstMs := clockAmounts(c.Results)
	relative, from := speedScale(c.Results)
	switch {
	case amounts == nil:
		v.Missing = append(v.Missing, "How well the nodes' clocks were aligned was not measured in every trial: its "+
			"part is not known.")
	default:
		v.Clock = fmt.Sprintf("The clocks' alignment (at worst %.2g ms) moves a window's edges: reckoned is what each "+
			"trial receives in that time on average; a burst at an edge is more.", worstMs)
	}
	switch {
	case relative == nil:
		v.Missing = append(v.Missing, "The car's receiver did not say how sure its speed was: its part is not known.")
	default:
		v.Speed = fmt.Sprintf("By its own account the car's receiver was sure of its speed to %s on average. If all "+
			"of that were one wrong scale, every slope would be off by as much.", from)
	}
	for _, e := range append(slices.Clone(c.Rows), c.Slopes...) {
		if e.Term == design.Mean || e.Low == nil {
			continue
		}
		r := carriedRow{Term: e.Term, Label: e.Label, Value: words.Signed(e.Value), Clock: "—", Speed: "—"}
		var sum float64
		if amounts != nil {
			by := math.Abs(c.Fit.Influence(e.Estimate, amounts))
			sum += by
			r.Clock = within(by)
		}
		if relative != nil && perSpeed(e.Estimate) {
			by := math.Abs(e.Value) * *relative
			sum += by
			r.Speed = within(by)
		}
		r.Interval = words.Signed(*e.Low-sum) + " to " + words.Signed(*e.High+sum)
		v.Rows = append(v.Rows, r)
	}
	return v
}

// within prints a bound; what would round to nothing as less than what is printed.
func within(by float64) string {
	const least = 0.001
	if by < least {
		return fmt.Sprintf("< %g", least)
	}
	return fmt.Sprintf("± %.2g", by)
}

// perSpeed reports whether an estimate is a slope, or a difference of slopes.
func perSpeed(e stats.Estimate) bool { return e.Term == design.Interaction || e.Label == design.PerMps }

// clockAmounts is for each trial what its clocks' misalignment adds to the response at
// its mean rate; nil unless all are known.
func clockAmounts(results []Result) (amounts []float64, worstMs float64) {
	for _, one := range results {
		ms := one.ClockErrorMs
		if ms == nil {
			return nil, 0
		}
		worstMs = max(worstMs, *ms)
		amounts = append(amounts, one.Response**ms/1000/one.Trial.DurationS)
	}
	return amounts, worstMs
}

// speedScale is the mean error of the speed as the receiver tells it, by the
// mean speed.
func speedScale(results []Result) (relative *float64, from string) {
	var errs, speeds []float64
	for _, one := range results {
		if one.SpeedMeanMps != nil && one.SpeedErrMps != nil {
			errs, speeds = append(errs, *one.SpeedErrMps), append(speeds, *one.SpeedMeanMps)
		}
	}
	if len(errs) == 0 || len(errs) < len(results) || stat.Mean(speeds, nil) == 0 {
		return nil, ""
	}
	e := stat.Mean(errs, nil)
	relative = new(e / stat.Mean(speeds, nil))
	return relative, fmt.Sprintf("%.2g m/s (%.2g %%)", e, 100**relative)
}

// SpeedError is how sure the car's receiver was of its speed on average, in words;
// empty where it did not say.
func (c *Comparison) SpeedError() string {
	_, from := speedScale(c.Results)
	return from
}

// measuredSpeed fits the model again with each trial's GPS speed in the place of
// its target.
func (c *Comparison) measuredSpeed() string {
	if c.row(design.Speed) == nil {
		return ""
	}
	mps := make([]float64, len(c.Results))
	for i, one := range c.Results {
		if one.SpeedMeanMps == nil {
			return ""
		}
		mps[i] = *one.SpeedMeanMps
	}
	f, err := c.model(c.Terms.AtSpeeds(mps).List).Fit()
	if err != nil {
		return ""
	}
	e := f.EstimateOf(design.Speed)
	if e == nil || e.Low == nil {
		return ""
	}
	return fmt.Sprintf("With the measured mean speed of each window in the place of the target, the slope is %s %s "+
		"per m/s (%s to %s). The target was set before the trial, so that a car beside it adds noise and does not "+
		"flatten the slope (Berkson's error, not the classical one).",
		words.Signed(e.Value), c.Unit, words.Signed(*e.Low), words.Signed(*e.High))
}

// mostInflation is up to where two covariates count as separable: the variance
// of one's slope is that many times what it would be without the other.
const mostInflation = 10

// atEqualDistance says what speed does with the distance held, or why that
// cannot be said.
func (c *Comparison) atEqualDistance() string {
	if c.row(design.Speed) == nil {
		return ""
	}
	sum := 0.0
	var distance []float64
	for _, one := range c.Results {
		m := one.DistanceMeanM
		if m == nil {
			return "Speed and distance could not be separated: not every trial has a distance by GPS."
		}
		distance, sum = append(distance, *m), sum+*m
	}
	for i := range distance {
		distance[i] -= sum / float64(len(c.Results))
	}
	held := append(slices.Clone(c.Terms.List),
		stats.Term{Name: "distance", Columns: []stats.Column{{Label: "per m", Values: distance}}})
	inflation := stats.Inflation(held, design.Speed, "distance")
	if inflation > mostInflation {
		return fmt.Sprintf("Speed and distance cannot be separated in this run: on course %s they went together, and "+
			"holding the distance would inflate the variance of the slope %s-fold (up to %d is given). What is "+
			"printed for speed is the effect of both.",
			quoted(c.Courses), folds(inflation), mostInflation)
	}
	f, err := c.model(held).Fit()
	if err != nil {
		return fmt.Sprintf("Speed and distance could not be separated: %v with distance in it.", err)
	}
	speed, far := f.EstimateOf(design.Speed), f.EstimateOf("distance")
	if speed == nil || far == nil || speed.Low == nil || far.Low == nil {
		return "Speed and distance could not be separated: too few trials."
	}
	text := fmt.Sprintf("With the mean distance held, each m/s faster makes %s %s (%s interval %s to %s); each metre "+
		"farther makes %s (%s to %s). The variance of the slope is %s-fold what it would be if speed and distance "+
		"had nothing to do with each other.",
		words.Signed(speed.Value), c.Unit, words.Percent(c.Level), words.Signed(*speed.Low), words.Signed(*speed.High),
		words.Signed(far.Value), words.Signed(*far.Low), words.Signed(*far.High), folds(inflation))
	return text + c.stretch()
}

// sameStretchM is how far apart windows of one stretch may begin or end: a gate opens up to 25 m behind its place
// (docs/decisions/031-a-window-waits-for-the-car-at-its-start.md), and the receivers' errors are of that size.
const sameStretchM = 50

// stretch is whether the windows of a segment were of the same stretch of road; nothing where that is not known.
func (r Run) stretch() string {
	if !slices.Equal(r.Courses, []string{"segment"}) {
		return ""
	}
	var near, far []float64 // inbound a window opens at the far end
	for _, one := range r.Results {
		if one.DistanceOpenM == nil || one.DistanceCloseM == nil {
			return ""
		}
		near = append(near, min(*one.DistanceOpenM, *one.DistanceCloseM))
		far = append(far, max(*one.DistanceOpenM, *one.DistanceCloseM))
	}
	if len(near) == 0 {
		return ""
	}
	apart := max(slices.Max(near)-slices.Min(near), slices.Max(far)-slices.Min(far))
	if apart > sameStretchM {
		return fmt.Sprintf(" The windows were of other stretches all the same: they began or ended up to %.0f m apart.",
			apart)
	}
	return " The course itself separates them: every speed was driven over the same stretch."
}

func folds(v float64) string {
	if math.IsInf(v, 1) {
		return "infinitely many"
	}
	if v > 1000 {
		return "more than a thousand"
	}
	return fmt.Sprintf("%.3g", v)
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, strconv.Quote(n))
	}
	return strings.Join(out, ", ")
}
