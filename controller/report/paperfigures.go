package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// paperFigures is a paper's figures as this run draws them.
type paperFigures struct {
	Paper    papers.Paper
	Figures  []paperFigure
	Undrawn  []undrawn
	Measures []papers.Measure
	ADV      bool // ADV is among what is drawn
}

// paperFigure is one of them that is drawn.
type paperFigure struct {
	Number, Caption string
	SVGs            []template.HTML
	Said            []string // below it
	File            string   // its name among the files, without ending
}

// undrawn is one that is not, and why.
type undrawn struct{ Number, Caption, Why string }

// FigureFile is a paper's figure as files of their own.
type FigureFile struct {
	Name     string // without ending
	SVG, CSV []byte
}

// drawnFigure is a figure with its panels and its numbers.
type drawnFigure struct {
	papers.Figure
	panels  []figure.Panel
	rows    []figureRow
	said    []string
	missing []string
}

// figureRow is a line of a figure's CSV.
type figureRow struct {
	panel, series, of  string
	x, y               float64
	low, high          *float64
	n                  int
	bound              string
	xUnit, yUnit, what string
	printed, source    string
}

func viewPaperFigures(d *evidence.Run) (any, error) {
	if d.Info.Paper == nil {
		return nil, nil
	}
	paper, known := papers.Of(d.Info.Paper.Name)
	if !known {
		return nil, nil
	}
	figures, err := drawPaper(d)
	if err != nil {
		return nil, err
	}
	v := paperFigures{Paper: paper, Measures: papers.Measures(paper.ID)}
	for _, f := range figures {
		if len(f.panels) == 0 {
			v.Undrawn = append(v.Undrawn, undrawn{f.Number, f.Caption, strings.Join(f.missing, "; ")})
			continue
		}
		shown := paperFigure{Number: f.Number, Caption: f.Caption, Said: f.said, File: f.fileName()}
		for _, p := range f.panels {
			shown.SVGs = append(shown.SVGs, p.Draw())
			v.ADV = v.ADV || slices.ContainsFunc(p.Curves, func(c figure.Curve) bool {
				return c.Name == "ADV" && len(c.Ours)+len(c.Path) > 0
			}) || p.Title == "ADV"
		}
		for _, m := range f.missing {
			shown.Said = append(shown.Said, "Not drawn: "+m+".")
		}
		v.Figures = append(v.Figures, shown)
	}
	return v, nil
}

// figureFiles are the figures of the run's paper as files.
func figureFiles(d *evidence.Run) ([]FigureFile, error) {
	if d.Info.Paper == nil {
		return nil, nil
	}
	figures, err := drawPaper(d)
	if err != nil {
		return nil, err
	}
	var out []FigureFile
	for _, f := range figures {
		if len(f.panels) == 0 {
			continue
		}
		table, err := f.csv()
		if err != nil {
			return nil, err
		}
		paper, _ := papers.Of(f.Paper)
		below := fmt.Sprintf("After %s, “%s”, %s. Run %s, %s.", paper.Authors, paper.Title, f.Number, d.Info.Run,
			d.Info.Place)
		if d.Info.Scale != nil {
			below += fmt.Sprintf(" Driven at the scale %s.", d.Info.Scale.Name)
		}
		out = append(out, FigureFile{f.fileName(), []byte(figure.Sheet(f.Number+": "+f.Caption, f.panels,
			strings.Join(append([]string{below}, f.said...), " "))), table})
	}
	return out, nil
}

// fileName is p3-figure-12.
func (f drawnFigure) fileName() string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(f.Number))
	return f.Paper + "-" + plain
}

// drawPaper makes all figures of the run's paper.
func drawPaper(d *evidence.Run) ([]drawnFigure, error) {
	published, err := papers.Read()
	if err != nil {
		return nil, err
	}
	trials := paperTrials(d)
	var out []drawnFigure
	for _, f := range papers.Figures(d.Info.Paper.Name) {
		one := drawnFigure{Figure: f}
		switch {
		case f.Scenario != "" && f.Scenario != d.Info.Paper.Scenario:
			one.missing = []string{"it is of the scenario " + f.Scenario + ", which this run is not of"}
		case f.Kind == papers.Sweep:
			one.sweep(published.Plotted(f, trials, intervalAt(d)))
		case f.Kind == papers.Traces:
			one.overlay(d)
		case f.Kind == papers.Printed:
			one.missing = []string{"it is a table, and stands beside ours as one"}
		case f.Kind == papers.Illustration:
			one.missing = []string{"it shows how something works, and no measurement"}
		default:
			one.missing = []string{f.Why}
		}
		for i := range one.panels {
			one.panels[i].Confidence = words.Percent(d.Level())
		}
		out = append(out, one)
	}
	return out, nil
}

// axisLabel is a label with its unit, where the unit says more.
func axisLabel(label, unit string) string {
	if unit == "1" || strings.HasSuffix(label, unit) && len(unit) > 2 {
		return label
	}
	return label + ", " + unit
}

// sweep takes a figure of points.
func (f *drawnFigure) sweep(d papers.Drawing) {
	f.missing = d.Missing
	apart := false
	for _, plot := range d.Plots {
		m := plot.Measure
		p := figure.Panel{Title: plot.Name, Label: f.Number + ", " + cmp.Or(plot.Name, f.Caption),
			XLabel: axisLabel(f.X.Label, f.X.Unit), YLabel: axisLabel(m.Label, m.Unit),
			Apart: m.Apart}
		row := figureRow{panel: plot.Name, xUnit: f.X.Unit, yUnit: m.Unit, what: m.Value}
		if b := plot.Band; b != nil {
			p.Band = &figure.Band{Low: *b.Low, High: *b.High, Hint: "paper: " + b.Printed}
			r := row
			r.what = ""
			r.of, r.y, r.low, r.high, r.printed, r.source = "paper, all", b.Y, b.Low, b.High, b.Printed, b.Source
			f.rows = append(f.rows, r)
		}
		drawn := 0
		for _, c := range plot.Curves {
			curve := curveOf(c, m.Unit)
			for _, k := range c.Ours {
				r := row
				r.series, r.of, r.x, r.y, r.low, r.high, r.n = c.Name, "ours", k.X, k.Y, k.Low, k.High, k.N
				if k.AtLeast {
					r.bound = "at least"
				}
				f.rows = append(f.rows, r)
			}
			for _, k := range c.Theirs {
				r := row
				r.what = "" // no metric of ours
				r.series, r.of, r.x, r.y, r.low, r.high, r.printed, r.source = c.Name, "paper", k.X, k.Y, k.Low, k.High,
					k.Printed, k.Source
				f.rows = append(f.rows, r)
			}
			if len(curve.Ours)+len(curve.Theirs) > 0 {
				drawn++
			}
			p.Curves = append(p.Curves, curve)
		}
		apart = apart || drawn > 1
		f.panels = append(f.panels, p)
	}
	if len(f.panels) == 0 {
		return
	}
	f.said = append(f.said, f.Axes)
	if f.Note != "" {
		f.said = append(f.said, f.Note)
	}
	f.said = append(f.said, f.counted()...)
	for _, plot := range d.Plots {
		if plot.Without > 0 {
			verb := "are"
			if plot.Without == 1 {
				verb = "is"
			}
			f.said = append(f.said, fmt.Sprintf("%s without %s %s in no point.",
				words.Count(plot.Without, "accepted trial"), plot.Measure.Label, verb))
		}
		if plot.Off > 0 {
			has, verb := "have", "are"
			if plot.Off == 1 {
				has, verb = "has", "is"
			}
			f.said = append(f.said, fmt.Sprintf("%s %s no known %s and %s in no point.",
				words.Count(plot.Off, "accepted trial"), has, f.X.Label, verb))
		}
	}
	if apart {
		f.said = append(f.said, "Marks of the same place on the axis are set a little apart.")
	}
}

// curveOf is a curve as it is drawn, in a unit.
func curveOf(c papers.Curve, unit string) figure.Curve {
	out := figure.Curve{Name: c.Name, Dotted: c.Dotted}
	for _, k := range c.Ours {
		out.Ours = append(out.Ours, figure.Mark{X: k.X, Y: k.Y, Low: k.Low, High: k.High, N: k.N,
			AtLeast: k.AtLeast, Hint: hintOf(c.Name, k, unit)})
	}
	for _, k := range c.Theirs {
		out.Theirs = append(out.Theirs, figure.Mark{X: k.X, Y: k.Y, Low: k.Low, High: k.High,
			AtLeast: k.High == nil, AtMost: k.Low == nil,
			Hint: fmt.Sprintf("%s, paper (%s): %s", c.Name, k.Source, k.Printed)})
	}
	return out
}

// counted says of how many trials the points are.
func (f drawnFigure) counted() []string {
	least, most, bounds := 0, 0, false
	for _, r := range f.rows {
		if r.of != "ours" {
			continue
		}
		if least == 0 || r.n < least {
			least = r.n
		}
		most, bounds = max(most, r.n), bounds || r.bound != ""
	}
	text := fmt.Sprintf("n = %d", least)
	if most > least {
		text += fmt.Sprintf(" to %d", most)
	}
	text += " accepted trials a point"
	if most == 1 {
		text = "One accepted trial a point"
	}
	if most < 3 {
		text += ", too few for an interval"
	}
	out := []string{text + "."}
	if bounds {
		out = append(out, "A point with an arrow is a bound: some connections had not come about when the window "+
			"closed, and count with the time until then.")
	}
	return out
}

func hintOf(series string, k papers.Mark, unit string) string {
	text := valueOf(k, unit)
	if k.AtLeast {
		text = "at least " + text
	}
	return fmt.Sprintf("%s: %s, n = %d", series, text, k.N)
}

// tracePoints is how many points of time a line of a paper's figure has.
const tracePoints = 240

// overlay takes a figure of traces.
func (f *drawnFigure) overlay(d *evidence.Run) {
	var attempts []evidence.Attempt
	var trials, counted []papers.Trial
	for _, a := range d.Attempts {
		if !d.Counts(a) {
			continue
		}
		counted = append(counted, paperTrial(a))
		if len(a.Traces) > 0 && len(a.Points) > 0 {
			attempts = append(attempts, a)
			trials = append(trials, paperTrial(a))
		}
	}
	var without papers.Undrawn
	defer func() { f.missing = without.Told() }()
	for _, p := range f.Panels {
		picked, reason := f.Overlay(p, trials)
		if reason != "" {
			if _, reason = f.Overlay(p, counted); reason == "" {
				reason = "its trials have no traces here; the records of a run have them"
			}
			without.Add(p.Name, reason)
			continue
		}
		m, _ := papers.MeasureOf(f.Paper, p.Measure)
		plot := figure.Panel{Title: p.Name, Label: f.Number + ", " + p.Name, XLabel: axisLabel(f.X.Label,
			f.X.Unit), YLabel: axisLabel(m.Label, m.Unit)}
		if w := attempts[picked[0]].Trial.WarmupS(); w > 0 {
			plot.XLabel += fmt.Sprintf(" (TCP begins at %g s)", w)
		}
		var which []string
		for i, line := range f.Series {
			a := attempts[picked[i]]
			path, why := tracePath(a, m)
			if why != "" {
				reason = why
				break
			}
			plot.Curves = append(plot.Curves, figure.Curve{Name: line.Name, Dotted: line.Dotted, Path: path})
			which = append(which, fmt.Sprintf("trial %d.%d (%s)", a.Trial.Number, a.Attempt, line.Name))
			for _, at := range path {
				if at.Y != nil {
					f.rows = append(f.rows, figureRow{panel: p.Name, series: line.Name, of: "ours", x: at.X,
						y: *at.Y, n: 1,
						xUnit: f.X.Unit, yUnit: m.Unit, what: m.Value})
				}
			}
		}
		if reason != "" {
			without.Add(p.Name, reason)
			continue
		}
		f.panels = append(f.panels, plot)
		said := fmt.Sprintf("%s: %s, repetition %d.", p.Name, strings.Join(which, " and "),
			attempts[picked[0]].Trial.Repetition)
		if !slices.Contains(f.said, said) {
			f.said = append(f.said, said)
		}
	}
	if len(f.panels) > 0 {
		f.said = append(slices.DeleteFunc([]string{f.Axes, f.Note}, func(s string) bool { return s == "" }), f.said...)
	}
}

// tracePath is what a measure of an attempt's connection was over the time since
// the first of its flows began.
func tracePath(a evidence.Attempt, m papers.Measure) (path []figure.Place, why string) {
	warmup, seconds := a.Trial.WarmupS(), a.Points[len(a.Points)-1].S
	if m.Value == papers.CwndMovingMean {
		moments := make([]float64, tracePoints+1)
		for i := range moments {
			moments[i] = seconds * float64(i) / tracePoints
		}
		for i, v := range metrics.MovingCwnd(a.Traces, moments) {
			path = append(path, figure.Place{X: warmup + moments[i], Y: v})
		}
		return path, ""
	}
	measured := a.Trial.Measured()
	payload := 0
	if len(measured) == 1 && measured[0].PayloadBytes != nil {
		payload = *measured[0].PayloadBytes
	}
	if m.Value == papers.AckedPackets && payload == 0 {
		return nil, "the campaign does not say how long its packets are"
	}
	for i, t := range a.Traces {
		if i > 0 {
			path = append(path, figure.Place{X: warmup}) // another connection: the line breaks
		}
		last := -1
		for _, p := range t.Points {
			bin := int(p.S / max(seconds, 1e-9) * tracePoints)
			if bin == last {
				continue
			}
			last = bin
			v := p.CwndSegments
			if m.Value == papers.AckedPackets {
				v = p.AckedMB * 1e6 / float64(payload)
			}
			path = append(path, figure.Place{X: warmup + p.S, Y: &v})
		}
	}
	return path, ""
}

// csv is the figure's numbers.
func (f drawnFigure) csv() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	optional := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	lines := [][]string{{"paper", "figure", "panel", "series", "of", "x", "x_unit", "y", "y_low", "y_high",
		"y_unit", "n",
		"bound", "metric", "printed", "source"}}
	for _, r := range f.rows {
		x, n := optional(&r.x), ""
		if r.of == "paper, all" {
			x = ""
		}
		if r.n > 0 {
			n = strconv.Itoa(r.n)
		}
		lines = append(lines, []string{f.Paper, f.Number, r.panel, r.series, r.of, x, r.xUnit, optional(&r.y),
			optional(r.low), optional(r.high), r.yUnit, n, r.bound, r.what, r.printed, r.source})
	}
	if err := w.WriteAll(lines); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
