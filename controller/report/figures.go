package report

import (
	"fmt"
	"html/template"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
)

// figureView is one figure with its caption and legend.
type figureView struct {
	Number  int
	SVG     template.HTML
	Caption string
	Legend  []legendEntry
	Missing string // what is said where there is no SVG
}

type legendEntry struct {
	Key  template.HTML
	Text string
}

func viewFigures(d *data) (any, error) {
	if len(d.results()) == 0 {
		return nil, nil
	}
	return []figureView{speedFigure(d), distanceFigure(d)}, nil
}

// seriesBySection makes one series a section from the attempts that have x, a
// metric. detail adds to a point what else its figure shows.
func seriesBySection(d *data, x string, detail func(attempt, *figure.Point)) []figure.Series {
	results := d.results()
	names := levels(results, section)
	if len(names) == 0 {
		names = []string{""}
	}
	var out []figure.Series
	for _, s := range names {
		sr := figure.Series{Name: "all trials"}
		if s != "" {
			sr.Name = fmt.Sprintf("section %s: %s", s, sectionMeaning(results, s))
		}
		for _, a := range results {
			if v := a.number(x); v != nil && a.Section == s {
				p := figure.Point{X: *v, Y: *a.Mbps, Hint: hint(a)}
				detail(a, &p)
				sr.Points = append(sr.Points, p)
			}
		}
		out = append(out, sr)
	}
	return out
}

func hint(a attempt) string {
	text := fmt.Sprintf("trial %d, attempt %d: %.2f MB, %.2f Mbit/s", a.Trial.Number, a.Attempt, *a.MB, *a.Mbps)
	if a.Section != "" {
		text += ", section " + a.Section
	}
	if v := a.number(metrics.SpeedMeanMps); v != nil {
		text += fmt.Sprintf(", %.1f m/s", *v)
	}
	return text
}

func speedFigure(d *data) figureView {
	all := seriesBySection(d, metrics.SpeedMeanMps, func(attempt, *figure.Point) {})
	for i := range all {
		all[i].Line = meansBySpeed(d, levels(d.results(), section), i)
	}
	f := figureView{Number: 1, Caption: "Throughput of every accepted trial against the car's GPS speed in its " +
		"window. Lines join the means at each target speed.",
		Missing: "No accepted trial has a GPS speed."}
	return f.drawn("Throughput against speed", "mean GPS speed in the window, m/s", all)
}

// meansBySpeed joins the cell means of a section. They stand at the mean GPS
// speed of their trials.
func meansBySpeed(d *data, names []string, i int) []figure.Point {
	var out []figure.Point
	for _, speed := range speeds(d.results()) {
		var x, y []float64
		for _, a := range d.results() {
			target, ok := a.speedMps()
			gps := a.number(metrics.SpeedMeanMps)
			if ok && target == speed && gps != nil && (len(names) == 0 || a.Section == names[i]) {
				x, y = append(x, *gps), append(y, *a.Mbps)
			}
		}
		if len(x) > 0 {
			out = append(out, figure.Point{X: summarise(x).Mean, Y: summarise(y).Mean})
		}
	}
	return out
}

func distanceFigure(d *data) figureView {
	all := seriesBySection(d, metrics.DistanceMeanM, func(a attempt, p *figure.Point) {
		open, closing := a.number(metrics.DistanceOpenM), a.number(metrics.DistanceCloseM)
		if open != nil && closing != nil {
			p.XLow, p.XHigh = new(min(*open, *closing)), new(max(*open, *closing))
			p.Hint += fmt.Sprintf(", %.0f m to %.0f m", *open, *closing)
		}
	})
	f := figureView{Number: 2, Caption: "The same trials against the distance of the two nodes by GPS: the mark is " +
		"the mean over the window, the bar reaches from where it opened to where it closed.",
		Missing: "No accepted trial has a GPS distance: one of the nodes had no fix."}
	return f.drawn("Throughput against distance", "distance of the nodes in the window, m", all)
}

// drawn is the figure with throughput over x; where no series has a point it says
// only what is missing.
func (f figureView) drawn(title, x string, all []figure.Series) figureView {
	for i, s := range all {
		f.Legend = append(f.Legend, legendEntry{figure.Key(i), s.Name})
	}
	if slices.ContainsFunc(all, func(s figure.Series) bool { return len(s.Points) > 0 }) {
		f.SVG, f.Missing = figure.Plot{Title: title, XLabel: x, YLabel: "throughput, Mbit/s", Series: all}.Draw(), ""
	}
	return f
}
