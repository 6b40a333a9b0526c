package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
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

func carried(d *data, c *comparison) carriedView {
	var v carriedView
	amounts, worstMs := clockAmounts(d, c.results)
	relative, from := speedScale(c.results)
	switch {
	case amounts == nil:
		v.Missing = append(v.Missing, "How well the nodes' clocks were aligned was not measured in every trial: its "+
			"part is not known.")
	default:
		v.Clock = fmt.Sprintf("The clocks' alignment (at worst %.2g ms) moves a window's edges: of each trial at "+
			"most what it received in that time.", worstMs)
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
		r := carriedRow{Term: e.Term, Label: e.Label, Value: signed(e.Value), Clock: "—", Speed: "—"}
		var sum float64
		if amounts != nil {
			by := math.Abs(c.Fit.Influence(e.Estimate, amounts))
			sum += by
			r.Clock = fmt.Sprintf("± %.2g", by)
		}
		if relative != nil && perSpeed(e.Term) {
			by := math.Abs(e.Value) * *relative
			sum += by
			r.Speed = fmt.Sprintf("± %.2g", by)
		}
		r.Interval = signed(*e.Low-sum) + " to " + signed(*e.High+sum)
		v.Rows = append(v.Rows, r)
	}
	return v
}

// perSpeed reports whether a term is told per m/s.
func perSpeed(term string) bool {
	return term == design.Speed || term == design.Interaction || len(term) > 5 && term[:5] == "slope"
}

// clockAmounts bounds for each trial what its clocks' misalignment could have
// added to the response; nil unless all are known.
func clockAmounts(d *data, results []attempt) (amounts []float64, worstMs float64) {
	for _, a := range results {
		ms := a.number(metrics.ClockErrorMs)
		if ms == nil {
			return nil, 0
		}
		worstMs = max(worstMs, *ms)
		amounts = append(amounts, d.response(a)**ms/1000/a.Trial.DurationS)
	}
	return amounts, worstMs
}

// speedScale is the mean error of the speed as the receiver tells it, by the
// mean speed.
func speedScale(results []attempt) (relative *float64, from string) {
	var errs, speeds []float64
	for _, a := range results {
		if v := a.number(metrics.SpeedMeanMps); v != nil && a.speedErr != nil {
			errs, speeds = append(errs, *a.speedErr), append(speeds, *v)
		}
	}
	if len(errs) == 0 || len(errs) < len(results) || stat.Mean(speeds, nil) == 0 {
		return nil, ""
	}
	e := stat.Mean(errs, nil)
	relative = new(e / stat.Mean(speeds, nil))
	return relative, fmt.Sprintf("%.2g m/s (%.2g %%)", e, 100**relative)
}

// measuredSpeed fits the model again with each trial's GPS speed in the place of
// its target.
func measuredSpeed(d *data, c *comparison) string {
	if c.row(design.Speed) == nil {
		return ""
	}
	mps := make([]float64, len(c.results))
	for i, a := range c.results {
		v := a.number(metrics.SpeedMeanMps)
		if v == nil {
			return ""
		}
		mps[i] = *v
	}
	f, err := d.model(c.results, c.Terms.AtSpeeds(mps).List).Fit()
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
		signed(e.Value), c.Unit, signed(*e.Low), signed(*e.High))
}

// mostInflation is up to where two covariates count as separable: the variance
// of one's slope is that many times what it would be without the other.
const mostInflation = 10

// atEqualDistance says what speed does with the distance held, or why that
// cannot be said.
func atEqualDistance(d *data, c *comparison) string {
	if c.row(design.Speed) == nil {
		return ""
	}
	sum := 0.0
	var distance []float64
	for _, a := range c.results {
		m := a.number(metrics.DistanceMeanM)
		if m == nil {
			return "Speed and distance could not be separated: not every trial has a distance by GPS."
		}
		distance, sum = append(distance, *m), sum+*m
	}
	for i := range distance {
		distance[i] -= sum / float64(len(c.results))
	}
	held := append(slices.Clone(c.Terms.List),
		stats.Term{Name: "distance", Columns: []stats.Column{{Label: "per m", Values: distance}}})
	inflation := stats.Inflation(held, design.Speed, "distance")
	if inflation > mostInflation {
		return fmt.Sprintf("Speed and distance cannot be separated in this run: on course %s they went together, and "+
			"holding the distance would inflate the variance of the slope %s-fold (up to %d is given). What is "+
			"printed for speed is the effect of both.",
			quoted(d.courses()), folds(inflation), mostInflation)
	}
	f, err := d.model(c.results, held).Fit()
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
		signed(speed.Value), c.Unit, percent(c.Level), signed(*speed.Low), signed(*speed.High), signed(far.Value),
		signed(*far.Low), signed(*far.High), folds(inflation))
	if slices.Equal(d.courses(), []string{"segment"}) {
		text += " The course itself separates them: every speed was driven over the same stretch."
	}
	return text
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
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%q", n)
	}
	return out
}
