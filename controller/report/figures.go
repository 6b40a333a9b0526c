package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// figureView is one figure with its caption, and what it is drawn from.
type figureView struct {
	Number       int
	Name         string // of the files that it can be saved as
	SVG          template.HTML
	Caption      string
	Missing      string // what is said where there is no SVG
	Data, Script string // CSV, and a program that draws it
}

// viewFigures are the figures beyond that of the head.
func viewFigures(d *evidence.Run) (any, error) {
	drives := func(a evidence.Attempt) bool { return a.Trial.Car != "" }
	if results := d.Results(); len(results) == 0 || !slices.ContainsFunc(results, drives) {
		return nil, nil // of nobody's driving there is nothing to draw
	}
	return []figureView{distanceFigure(d)}, nil
}

// headFigure is the one that the answer stands on: throughput by speed where
// speed varied, else by the factor that the campaign asks about. Nil: there is
// nothing to draw.
func headFigure(d *evidence.Run) *figureView {
	results := d.Results()
	if len(results) == 0 {
		return nil
	}
	if len(evidence.Speeds(results)) > 1 {
		return new(speedFigure(d))
	}
	return factorFigure(d)
}

// seriesBySection makes one series a section from the attempts that have x, also of a section
// without any: the signs are those of the table of results. detail adds to a point what else its
// figure shows.
func seriesBySection(d *evidence.Run, x func(evidence.Attempt) *float64,
	detail func(evidence.Attempt, *figure.Point)) []figure.Series {
	results := d.Results()
	all := slices.Concat(d.Planned(), results)
	names := evidence.Levels(all, evidence.Section)
	none := "all trials"
	if len(names) > 0 {
		none = "no section"
	}
	if slices.ContainsFunc(results, func(a evidence.Attempt) bool { return a.Section == "" }) {
		names = append(names, "")
	}
	var out []figure.Series
	for _, s := range names {
		sr := figure.Series{}
		for _, a := range results {
			if v := x(a); v != nil && a.Section == s {
				p := point(a, *v)
				detail(a, &p)
				sr.Points = append(sr.Points, p)
			}
		}
		sr.Name = fmt.Sprintf("%s (n = %d)", none, len(sr.Points))
		if s != "" {
			sr.Name = fmt.Sprintf("section %s: %s (n = %d)", s, sectionMeaning(all, s), len(sr.Points))
		}
		out = append(out, sr)
	}
	return out
}

// point is an attempt in a figure.
func point(a evidence.Attempt, x float64) figure.Point {
	text := fmt.Sprintf("trial %d, attempt %d: %.2f Mbit/s", a.Trial.Number, a.Attempt, *a.Mbps)
	if a.Section != "" {
		text += ", section " + a.Section
	}
	if v := a.Number(metrics.SpeedMeanMps); v != nil {
		text += fmt.Sprintf(", %.1f m/s", *v)
	}
	return figure.Point{X: x, Y: *a.Mbps, Trial: a.Trial.Number, Hint: text}
}

// meansOf are the means of a series' points at each x, with their intervals at the
// run's confidence, the same as in the table of results; pooled over unlike cells they
// have none.
func meansOf(d *evidence.Run, points []figure.Point, unit string, pooled bool) []figure.Point {
	at := map[float64][]float64{}
	for _, p := range points {
		at[p.X] = append(at[p.X], p.Y)
	}
	var out []figure.Point
	for _, x := range slices.Sorted(maps.Keys(at)) {
		m := figure.Point{X: x, Y: stats.Summarise(at[x]).Mean, N: len(at[x])}
		m.Hint = fmt.Sprintf("mean of %s: %.2f %s", words.Count(m.N, "trial"), m.Y, unit)
		if half := stats.HalfWidth(d.Level(), at[x]); half != nil && !pooled {
			m.YLow, m.YHigh = new(m.Y-*half), new(m.Y+*half)
			m.Hint += fmt.Sprintf(", %s interval %.2f to %.2f", words.Percent(d.Level()), *m.YLow, *m.YHigh)
		}
		out = append(out, m)
	}
	return out
}

// counted says, for the legend, how many trials the means of a figure are of, and
// whether they have an interval.
func counted(d *evidence.Run, all []figure.Series) string {
	least, most := 0, 0
	for _, s := range all {
		for _, m := range s.Means {
			if least == 0 || m.N < least {
				least = m.N
			}
			most = max(most, m.N)
		}
	}
	n := fmt.Sprintf("n = %d each", least)
	if least != most {
		n = fmt.Sprintf("n = %d to %d", least, most)
	}
	if most < 3 {
		return "horizontal bars: means, " + n
	}
	return fmt.Sprintf("horizontal bars: means with their %s CI, %s", words.Percent(d.Level()), n)
}

// pooledNote is the legend's line where counted's would not be true.
const pooledNote = "horizontal bars: means over all else"

// intervals says what the intervals of means are.
const intervals = "Intervals are Student's t, from three trials on."

// pooledBySpeed are the factors in which planned trials of one speed and section differ.
func pooledBySpeed(d *evidence.Run) []string {
	type cell struct {
		speed   float64
		section string
	}
	first := map[cell]wire.Trial{}
	differ := map[string]bool{}
	for _, a := range d.Planned() {
		speed, _ := a.SpeedMps()
		at := cell{speed, a.Section}
		if _, known := first[at]; !known {
			first[at] = a.Trial
		}
		for name, level := range a.Trial.Factors {
			if level != first[at].Factors[name] {
				differ[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

func speedFigure(d *evidence.Run) figureView {
	over := pooledBySpeed(d)
	all := seriesBySection(d, func(a evidence.Attempt) *float64 { return a.Trial.SpeedMps },
		func(evidence.Attempt, *figure.Point) {})
	for i := range all {
		all[i].Means = meansOf(d, all[i].Points, evidence.RateUnit, len(over) > 0)
	}
	note := counted(d, all)
	said := intervals
	if len(over) > 0 {
		said, note = words.Pooled(over), pooledNote
	}
	f := figureView{Number: 1, Caption: "Throughput of every accepted trial by the target speed. " + said}
	driven := 0
	for _, s := range all {
		if len(s.Points) > 0 {
			driven++
		}
	}
	if driven > 1 {
		f.Caption += " The sections stand side by side for legibility: they were driven at the same speeds."
	}
	return f.drawn(d, figure.Plot{Title: "Throughput by speed", XLabel: "target speed, m/s", Dodge: true, Series: all,
		Notes: []string{note}}, "target_speed_mps")
}

func distanceFigure(d *evidence.Run) figureView {
	all := seriesBySection(d, func(a evidence.Attempt) *float64 { return a.Number(metrics.DistanceMeanM) },
		func(a evidence.Attempt, p *figure.Point) {
			open, closing := a.Number(metrics.DistanceOpenM), a.Number(metrics.DistanceCloseM)
			if open != nil && closing != nil {
				p.XLow, p.XHigh = new(min(*open, *closing)), new(max(*open, *closing))
				p.Hint += fmt.Sprintf(", %.0f m to %.0f m", *open, *closing)
			}
		})
	f := figureView{Number: 2, Caption: "Every accepted trial by the distance of the two nodes by GPS: the mark is " +
		"the mean over the window, the bar reaches from where it opened to where it closed.",
		Missing: "No accepted trial has a GPS distance: one of the nodes had no fix."}
	left := len(d.Results())
	for _, s := range all {
		left -= len(s.Points)
	}
	switch {
	case left == 1:
		f.Caption += " 1 accepted trial has no such distance and is not in it."
	case left > 1:
		f.Caption += fmt.Sprintf(" %d accepted trials have no such distance and are not in it.", left)
	}
	return f.drawn(d, figure.Plot{Title: "Throughput by distance", XLabel: "distance of the nodes in the window, m",
		Series: all}, "distance_mean_m")
}

// mostSeries is how many series can be told apart, mostLevels how many levels fit
// beside each other.
const mostSeries, mostLevels = 5, 12

// factorFigure draws throughput by the first factor that the campaign asks about,
// with a series for each combination of the others.
func factorFigure(d *evidence.Run) *figureView {
	results := d.Results()
	factors := factorNames(results)
	if len(factors) == 0 {
		return nil
	}
	first := factors[0]
	for _, asked := range d.Asks() {
		if slices.Contains(factors, asked) {
			first = asked
			break
		}
	}
	others := slices.DeleteFunc(slices.Clone(factors), func(f string) bool { return f == first })
	of := func(a evidence.Attempt) string { return a.Trial.Factors[first] }
	rest := func(a evidence.Attempt) string {
		var said []string
		for _, f := range others {
			said = append(said, f+" "+a.Trial.Factors[f])
		}
		return strings.Join(said, ", ")
	}
	at := evidence.Levels(results, of)
	if len(at) > mostLevels {
		return nil
	}
	names := evidence.Levels(results, rest)
	pooled := len(names) > mostSeries
	if len(names) == 0 || pooled {
		names = []string{""}
	}
	p := figure.Plot{Title: "Throughput by " + first, XLabel: first, Dodge: true}
	for i, level := range at {
		p.Ticks = append(p.Ticks, figure.XTick{X: float64(i + 1), Text: level})
	}
	for _, name := range names {
		s := figure.Series{}
		for _, a := range results {
			if pooled || rest(a) == name {
				s.Points = append(s.Points, point(a, float64(slices.Index(at, of(a))+1)))
			}
		}
		s.Name = fmt.Sprintf("%s (n = %d)", cmp.Or(name, "all trials"), len(s.Points))
		s.Means = meansOf(d, s.Points, evidence.RateUnit, pooled)
		p.Series = append(p.Series, s)
	}
	f := figureView{Number: 1, Caption: "Throughput of every accepted trial by " + first + ". " + intervals}
	p.Notes = []string{counted(d, p.Series)}
	if pooled {
		f.Caption = fmt.Sprintf("Throughput of every accepted trial by %s. %s", first, words.Pooled(others))
		p.Notes = []string{pooledNote}
	}
	return new(f.drawn(d, p, first))
}

// noName is what the name of a file had better not have.
var noName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// drawn is the figure with throughput over x; where no series has a point it says
// only what is missing.
func (f figureView) drawn(d *evidence.Run, p figure.Plot, column string) figureView {
	p.YLabel, p.YName, p.YUnit = "throughput, Mbit/s", "throughput", "mbps"
	return f.of(d, p, column)
}

// of is the figure as its plot draws it.
func (f figureView) of(d *evidence.Run, p figure.Plot, column string) figureView {
	if slices.ContainsFunc(p.Series, func(s figure.Series) bool { return len(s.Points) > 0 }) {
		f.Name = fmt.Sprintf("%s-figure-%d", noName.ReplaceAllString(d.Info.Run, "-"), f.Number)
		f.SVG, f.Data, f.Script, f.Missing = p.Draw(), p.CSV(column), p.Script(f.Name, column), ""
	}
	return f
}
