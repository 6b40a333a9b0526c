package figure

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// traceFigure draws an attempt's connections.
type traceFigure struct {
	traces  []metrics.Trace
	seconds float64
	bins    int
}

// panel is one of the figure's plots.
type panel struct {
	label string
	top   float64
	y     axis
}

const (
	panelHeight = 118.0
	panelGap    = 22.0
	panels      = 3
	traceHeight = 10 + panels*(panelHeight+panelGap) + 26 + 2*legendLine
)

// Traces draws what TCP did on an attempt's connections in a window of so many
// seconds, which its lines have in so many bins of time.
func Traces(traces []metrics.Trace, seconds float64, bins int) template.HTML {
	f := traceFigure{traces, seconds, bins}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot trace" viewBox="0 0 %g %g" role="img" aria-label="congestion window, round trip and sequence number over the window">`, plotWidth, traceHeight)
	x := newAxis(f.seconds, plotLeft, plotWidth-plotRight)
	x.max = max(f.seconds, 1e-9)
	f.windows(&b, x, f.panel(0, "cwnd, segments", func(p metrics.TracePoint) *float64 { return &p.CwndSegments }))
	f.lines(&b, x, f.panel(1, "round trip, ms", func(p metrics.TracePoint) *float64 { return p.RTTMs }),
		func(p metrics.TracePoint) *float64 { return p.RTTMs }, "line")
	sequence := f.panel(2, "acknowledged, MB", func(p metrics.TracePoint) *float64 { return &p.AckedMB })
	f.lines(&b, x, sequence, func(p metrics.TracePoint) *float64 { return &p.AckedMB }, "line")
	f.marks(&b, x, sequence)
	for _, v := range x.ticks {
		if v <= f.seconds+1e-9 {
			text(&b, "tick", x.at(v), traceHeight-2*legendLine-22, "middle", Tick(v))
		}
	}
	text(&b, "axis", (plotLeft+plotWidth-plotRight)/2, traceHeight-2*legendLine-6, "middle",
		"since the window opened, s")
	text(&b, "tick", plotLeft, traceHeight-legendLine-4, "start",
		"thin: cwnd of a connection; dashed: ssthresh; thick: mean cwnd, 5 s")
	text(&b, "tick", plotLeft, traceHeight-4, "start", "| retransmitted   ○ recovery began   ▼ time-out fired")
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// panel scales one plot to its highest value.
func (f traceFigure) panel(i int, label string, of func(metrics.TracePoint) *float64) panel {
	top := 10 + float64(i)*(panelHeight+panelGap)
	most := 0.0
	for _, t := range f.traces {
		for _, p := range t.Points {
			if v := of(p); v != nil {
				most = max(most, *v)
			}
		}
	}
	step := niceStep(most, 3)
	y := axis{max: max(math.Ceil(most/step-1e-9)*step, step), from: top + panelHeight, to: top}
	for v := 0.0; v <= y.max+step/1e6; v += step {
		y.ticks = append(y.ticks, v)
	}
	return panel{label, top, y}
}

// windows draws the congestion windows, their slow-start thresholds, and the
// moving mean.
func (f traceFigure) windows(b *strings.Builder, x axis, p panel) {
	f.lines(b, x, p, func(t metrics.TracePoint) *float64 { return &t.CwndSegments }, "line")
	below := func(t metrics.TracePoint) *float64 {
		if t.SsthreshSegments == nil || *t.SsthreshSegments > p.y.max {
			return nil // above what the windows reached
		}
		return t.SsthreshSegments
	}
	for i, t := range f.traces {
		f.line(b, x, p, t, below, "ssthresh", styleOf(i).Colour)
	}
	moments := make([]float64, f.bins+1)
	for i := range moments {
		moments[i] = f.seconds * float64(i) / float64(f.bins)
	}
	path := polyline{b: b}
	for i, v := range metrics.MovingCwnd(f.traces, moments) {
		if v == nil {
			path.lift()
			continue
		}
		path.to(x.at(moments[i]), p.y.at(*v))
	}
	path.end("moving", "#1d2329")
}

// lines draws a number of every connection, with the panel's grid behind it.
func (f traceFigure) lines(b *strings.Builder, x axis, p panel, of func(metrics.TracePoint) *float64, class string) {
	for _, v := range p.y.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, plotLeft, plotWidth-plotRight,
			p.y.at(v), p.y.at(v))
		text(b, "tick", plotLeft-7, p.y.at(v)+4, "end", Tick(v))
	}
	fmt.Fprintf(b, `<text class="axis" transform="translate(12 %.1f) rotate(-90)" text-anchor="middle">%s</text>`,
		p.top+panelHeight/2, esc(p.label))
	for i, t := range f.traces {
		f.line(b, x, p, t, of, class, styleOf(i).Colour)
	}
}

// line draws one connection's number: of each bin of time the last sample.
func (f traceFigure) line(b *strings.Builder, x axis, p panel, t metrics.Trace, of func(metrics.TracePoint) *float64,
	class, colour string) {
	path := polyline{b: b}
	for i, at := range t.Points {
		if i+1 < len(t.Points) && f.bin(t.Points[i+1].S) == f.bin(at.S) {
			continue
		}
		v := of(at)
		if v == nil {
			path.lift()
			continue
		}
		path.to(x.at(at.S), p.y.at(*v))
	}
	path.end(class, colour)
}

func (f traceFigure) bin(s float64) int { return int(s / max(f.seconds, 1e-9) * float64(f.bins)) }

// markBins is how many bins of time have one mark, so that marks stay apart.
const markBins = 3

// marks draws the events on the lines of sequence numbers: of each kind one a
// connection in markBins.
func (f traceFigure) marks(b *strings.Builder, x axis, p panel) {
	for _, t := range f.traces {
		last := map[string]int{}
		for _, m := range t.Marks {
			bin := f.bin(m.S)/markBins + 1
			if m.Event == "recovery_end" || last[m.Event] == bin {
				continue
			}
			last[m.Event] = bin
			i, _ := slices.BinarySearchFunc(t.Points, m.S, func(p metrics.TracePoint, s float64) int {
				if p.S < s {
					return -1
				}
				return 1
			})
			if len(t.Points) == 0 {
				continue
			}
			at := t.Points[min(i, len(t.Points)-1)]
			b.WriteString(eventMark(m.Event, x.at(m.S), p.y.at(at.AckedMB), fmt.Sprintf("%s, stream %d, %.2f s",
				strings.ReplaceAll(m.Event, "_", " "), t.Stream, m.S)))
		}
	}
}

// eventMark is an event's sign: they differ in shape, not in colour alone.
func eventMark(event string, x, y float64, hint string) string {
	shape := fmt.Sprintf(`<path class="again" d="M%.1f %.1fv7"/>`, x, y-3.5)
	switch event {
	case "rto":
		shape = fmt.Sprintf(`<path class="rto" d="M%.1f %.1fl4 -7h-8z"/>`, x, y-1)
	case "recovery":
		shape = fmt.Sprintf(`<circle class="recovery" cx="%.1f" cy="%.1f" r="1.7"/>`, x, y)
	}
	return fmt.Sprintf(`<g><title>%s</title>%s</g>`, esc(hint), shape)
}

// polyline collects a path that may break.
type polyline struct {
	b    *strings.Builder
	path strings.Builder
	down bool
}

func (l *polyline) to(x, y float64) {
	pen := "M"
	if l.down {
		pen = "L"
	}
	fmt.Fprintf(&l.path, "%s%.1f %.1f", pen, x, y)
	l.down = true
}

func (l *polyline) lift() { l.down = false }

func (l *polyline) end(class, colour string) {
	if l.path.Len() > 0 {
		fmt.Fprintf(l.b, `<path class="%s" stroke="%s" d="%s"/>`, class, colour, l.path.String())
	}
}
