package report

import (
	"fmt"
	"html/template"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// figureView is one figure with its caption and legend.
type figureView struct {
	Number  int
	SVG     template.HTML
	Caption string
	Legend  []legendEntry
	Missing string
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

// seriesBySection makes one series a section from the attempts that have an x.
func seriesBySection(d *data, make func(attempt) (point, bool)) []series {
	results := d.results()
	names := levels(results, section)
	if len(names) == 0 {
		names = []string{""}
	}
	var out []series
	for i, s := range names {
		sr := series{Name: "all trials", Style: styleOf(i)}
		if s != "" {
			sr.Name = fmt.Sprintf("section %s: %s", s, sectionMeaning(results, s))
		}
		for _, a := range results {
			if p, ok := make(a); ok && a.Section == s {
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
	all := seriesBySection(d, func(a attempt) (point, bool) {
		v := a.number(metrics.SpeedMeanMps)
		if v == nil {
			return point{}, false
		}
		return point{X: *v, Y: *a.Mbps, Hint: hint(a)}, true
	})
	for i := range all {
		all[i].Line = meansBySpeed(d, levels(d.results(), section), i)
	}
	f := figureView{Number: 1, Legend: legend(all), Caption: "Throughput of every accepted trial against the car's " +
		"GPS speed in its window. " +
		"Lines join the means at each target speed."}
	return f.with(plot{Title: "Throughput against speed", XLabel: "mean GPS speed in the window, m/s",
		YLabel: "throughput, Mbit/s", Series: all},
		"No accepted trial has a GPS speed.")
}

// meansBySpeed joins the cell means of a section. They stand at the mean GPS
// speed of their trials.
func meansBySpeed(d *data, names []string, i int) []point {
	var out []point
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
			out = append(out, point{X: summarise(x).Mean, Y: summarise(y).Mean})
		}
	}
	return out
}

func distanceFigure(d *data) figureView {
	all := seriesBySection(d, func(a attempt) (point, bool) {
		v := a.number(metrics.DistanceMeanM)
		if v == nil {
			return point{}, false
		}
		p := point{X: *v, Y: *a.Mbps, Hint: hint(a)}
		open, closing := a.number(metrics.DistanceOpenM), a.number(metrics.DistanceCloseM)
		if open != nil && closing != nil {
			p.XLow, p.XHigh = new(min(*open, *closing)), new(max(*open, *closing))
			p.Hint += fmt.Sprintf(", %.0f m to %.0f m", *open, *closing)
		}
		return p, true
	})
	f := figureView{Number: 2, Legend: legend(all), Caption: "The same trials against the distance of the two nodes " +
		"by GPS: " +
		"the mark is the mean over the window, the bar reaches from where it opened to where it closed."}
	return f.with(plot{Title: "Throughput against distance", XLabel: "distance of the nodes in the window, m",
		YLabel: "throughput, Mbit/s", Series: all},
		"No accepted trial has a GPS distance: one of the nodes had no fix.")
}

func legend(all []series) []legendEntry {
	var out []legendEntry
	for _, s := range all {
		out = append(out, legendEntry{s.key(), s.Name})
	}
	return out
}

// with draws the plot, or says why there is none.
func (f figureView) with(p plot, missing string) figureView {
	for _, s := range p.Series {
		if len(s.Points) > 0 {
			f.SVG = p.draw()
			return f
		}
	}
	f.Missing = missing
	return f
}
