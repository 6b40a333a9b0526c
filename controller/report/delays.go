package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// delayView is what flows of kind delay measured: a row for each combination of
// what varied, and the figure by speed.
type delayView struct {
	Interval string // the confidence of each
	Factors  []string
	Rows     []delayRow
	Figure   *figureView
	Unsent   string // on datagrams that were not sent
	Stamped  string // on arrivals without a stamp of the kernel's
}

type delayRow struct {
	Levels                []string
	N                     int
	Values                []string // of each trial's median
	P50, P95, P99         delayCell
	Lost, Out, Back       delayCell
	OneWayOff, Throughput string
}

// delayCell is a mean over trials, with its interval where there is one.
type delayCell struct{ Mean, Interval string }

// delayed are the accepted attempts that answer the campaign's question and have a
// flow of kind delay, a pair for each such flow.
func delayed(d *evidence.Run) []delayedFlow {
	var out []delayedFlow
	for _, a := range d.Attempts {
		for _, f := range a.Trial.Traffic {
			if f.Kind == wire.KindDelay && d.Counts(a) && metrics.Value(a.Rows, f.Name, metrics.DatagramsSent) != nil {
				out = append(out, delayedFlow{a, f.Name})
			}
		}
	}
	return out
}

// delayedFlow is a flow of kind delay in an attempt.
type delayedFlow struct {
	evidence.Attempt
	flow string
}

func (f delayedFlow) value(name string) *float64 { return metrics.Value(f.Rows, f.flow, name) }

// flowFactor stands for the flow's name, where trials have several.
const flowFactor = "flow"

// delayFactors are what sets the rows apart.
func delayFactors(all []delayedFlow) []string {
	var attempts []evidence.Attempt
	flows := map[string]bool{}
	for _, f := range all {
		attempts, flows[f.flow] = append(attempts, f.Attempt), true
	}
	out := factorNames(attempts)
	if len(flows) > 1 {
		out = append(out, flowFactor)
	}
	return out
}

func (f delayedFlow) level(factor string) string {
	if factor == flowFactor && f.Trial.Factors[flowFactor] == "" {
		return f.flow
	}
	return f.Trial.Factors[factor]
}

func viewDelays(d *evidence.Run) (any, error) {
	all := delayed(d)
	if len(all) == 0 {
		return nil, nil
	}
	v := delayView{Interval: words.Percent(d.Level()), Factors: delayFactors(all), Figure: delayFigure(d, all)}
	cells := map[string][]delayedFlow{}
	var order [][]string
	for _, f := range all {
		var at []string
		for _, factor := range v.Factors {
			at = append(at, f.level(factor))
		}
		key := strings.Join(at, "\x00")
		if cells[key] == nil {
			order = append(order, at)
		}
		cells[key] = append(cells[key], f)
	}
	slices.SortFunc(order, func(x, y []string) int { return slices.CompareFunc(x, y, wire.CompareLevels) })
	for _, at := range order {
		v.Rows = append(v.Rows, delayRowOf(d, at, cells[strings.Join(at, "\x00")]))
	}
	if n := total(all, metrics.DatagramsUnsent); n > 0 {
		v.Unsent = fmt.Sprintf("%s not sent, because the agent was late at their times; nothing is known of them.",
			were(n))
	}
	if n := total(all, metrics.DatagramsStampedLate); n > 0 {
		v.Stamped = fmt.Sprintf("%s stamped by the agent and not by the kernel as they or their answers came.", were(n))
	}
	return v, nil
}

func were(n float64) string {
	if n == 1 {
		return "1 datagram was"
	}
	return fmt.Sprintf("%g datagrams were", n)
}

func total(all []delayedFlow, name string) float64 {
	sum := 0.0
	for _, f := range all {
		if v := f.value(name); v != nil {
			sum += *v
		}
	}
	return sum
}

func delayRowOf(d *evidence.Run, at []string, cell []delayedFlow) delayRow {
	r := delayRow{Levels: at, N: len(cell)}
	of := func(name string) delayCell { return delayCellOf(d, valuesOf(cell, name)) }
	for _, v := range valuesOf(cell, metrics.DelayRoundTripP50Ms) {
		r.Values = append(r.Values, fmt.Sprintf("%.2f", v))
	}
	r.P50, r.P95, r.P99 = of(metrics.DelayRoundTripP50Ms), of(metrics.DelayRoundTripP95Ms),
		of(metrics.DelayRoundTripP99Ms)
	r.Lost, r.Out, r.Back = of(metrics.DatagramsLostPercent), of(metrics.DelayOutP50Ms), of(metrics.DelayBackP50Ms)
	if off := valuesOf(cell, metrics.OneWayUncertaintyMs); len(off) > 0 {
		r.OneWayOff = fmt.Sprintf("± %.2f", slices.Max(off))
	}
	if rates := evidence.Measured(cell, func(f delayedFlow) *float64 { return f.Mbps }); len(rates) > 0 {
		r.Throughput = fmt.Sprintf("%.2f", stats.Summarise(rates).Mean)
	}
	return r
}

func valuesOf(cell []delayedFlow, name string) []float64 {
	return evidence.Measured(cell, func(f delayedFlow) *float64 { return f.value(name) })
}

func delayCellOf(d *evidence.Run, values []float64) delayCell {
	if len(values) == 0 {
		return delayCell{Mean: "not known"}
	}
	mean := stats.Summarise(values).Mean
	c := delayCell{Mean: fmt.Sprintf("%.2f", mean)}
	if half := stats.HalfWidth(d.Level(), values); half != nil {
		c.Interval = fmt.Sprintf("%.2f to %.2f", mean-*half, mean+*half)
	}
	return c
}

// delayFigure draws each trial's median round trip by the target speed, with a
// series for each combination of what else varied. Nil: speed did not vary, or too
// much else did.
func delayFigure(d *evidence.Run, all []delayedFlow) *figureView {
	speed := map[float64]bool{}
	var factors []string
	for _, factor := range delayFactors(all) {
		if !follows(all, factor) {
			factors = append(factors, factor)
		}
	}
	series := map[string]*figure.Series{}
	for _, f := range all {
		x, driven := f.SpeedMps()
		y := f.value(metrics.DelayRoundTripP50Ms)
		if !driven || y == nil {
			continue
		}
		speed[x] = true
		var said []string
		for _, factor := range factors {
			said = append(said, factor+" "+f.level(factor))
		}
		name := cmp.Or(strings.Join(said, ", "), "all trials")
		if series[name] == nil {
			series[name] = &figure.Series{}
		}
		hint := fmt.Sprintf("trial %d, attempt %d: %.2f ms", f.Trial.Number, f.TrialKey.Attempt, *y)
		if lost := f.value(metrics.DatagramsLostPercent); lost != nil {
			hint += fmt.Sprintf(", %.1f %% lost", *lost)
		}
		series[name].Points = append(series[name].Points, figure.Point{X: x, Y: *y, Trial: f.Trial.Number, Hint: hint})
	}
	if len(speed) < 2 || len(series) > mostSeries { // what cannot be told apart stands in the table
		return nil
	}
	p := figure.Plot{Title: "Round trip by speed", XLabel: "target speed, m/s", YLabel: "round trip, median, ms",
		YName: "delay_round_trip_p50", YUnit: "ms", Dodge: true}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		s := series[name]
		s.Name, s.Means = fmt.Sprintf("%s (n = %d)", name, len(s.Points)), meansOf(d, s.Points, "ms", false)
		p.Series = append(p.Series, *s)
	}
	p.Notes = []string{counted(d, p.Series)}
	f := figureView{Number: 3, Caption: "Median round trip of the datagrams in every accepted trial by the target " +
		"speed. " + intervals + " A trial in which no datagram was answered is not in it."}
	return new(f.of(d, p, "target_speed_mps"))
}

// follows reports whether a factor is the speed by another name.
func follows(all []delayedFlow, factor string) bool {
	byLevel := map[string]float64{}
	speeds := map[float64]bool{}
	for _, f := range all {
		x, driven := f.SpeedMps()
		if before, seen := byLevel[f.level(factor)]; !driven || seen && before != x {
			return false
		}
		byLevel[f.level(factor)], speeds[x] = x, true
	}
	return len(speeds) == len(byLevel)
}
