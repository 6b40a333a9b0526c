// Package figure draws the report's plots as SVG: points over two axes, small
// strips over a window, and what TCP did. It is given numbers and words, and
// knows of no run. The report's style sheet has what its classes look like.
package figure

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// A style is a series' colour and marker. Both differ, so that a figure reads
// in grey and for every eye; the colours are Okabe and Ito's ("Color universal
// design", 2008).
type style struct {
	Colour string
	Marker string // circle | square | triangle | diamond
}

var styles = []style{
	{"#0072b2", "circle"}, {"#d55e00", "square"}, {"#009e73", "triangle"}, {"#cc79a7", "diamond"},
	{"#666666", "circle"}, {"#e69f00", "square"},
}

func styleOf(i int) style { return styles[i%len(styles)] }

// Point is one mark of a figure.
type Point struct {
	X, Y  float64
	XLow  *float64 // a whisker along x: from XLow to XHigh
	XHigh *float64
	YLow  *float64 // a whisker along y: from YLow to YHigh
	YHigh *float64
	Trial int // which one it is; a mean is of none
	N     int // trials that a mean is of
	Hint  string
}

// Series are points of one kind. Their style is by their place among the others.
type Series struct {
	Name   string
	Points []Point
	Means  []Point // joined by a line, in order
}

// Plot is a figure with two axes that both begin at zero. Its legend is a part
// of the drawing.
type Plot struct {
	Title  string
	XLabel string
	YLabel string
	// YName and YUnit name y in what the plot is drawn from: throughput and mbps make throughput_low_mbps.
	YName, YUnit string
	Dodge        bool // the series stand beside each other, a few pixels off their x
	Series       []Series
	// Ticks are the marks of the x axis and their texts; nil: round numbers.
	Ticks []XTick
	Notes []string // further lines of the legend
}

// XTick is a mark of the x axis.
type XTick struct {
	X    float64
	Text string
}

// Size and margins in the figure's own units; the page scales it.
const (
	plotWidth, plotHeight                    = 640.0, 340.0
	plotLeft, plotRight, plotTop, plotBottom = 62.0, 14.0, 14.0, 52.0
	legendLine                               = 21.0
	dodgeBy                                  = 11.0 // between two series
)

// axis maps values to the drawing.
type axis struct {
	max, from, to float64
	ticks         []float64
	names         []string // of the ticks; nil: their numbers
}

func newAxis(most, from, to float64) axis {
	step := niceStep(most, 6)
	top := math.Ceil(most/step-1e-9) * step
	if top <= 0 {
		top = step
	}
	a := axis{max: top, from: from, to: to}
	for i := 0; float64(i)*step <= top+step/1e6; i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// niceStep is a step of 1, 2 or 5 times a power of ten that gives about n ticks.
func niceStep(most float64, n int) float64 {
	if most <= 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		return 1
	}
	raw := most / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func (a axis) at(v float64) float64 { return a.from + (a.to-a.from)*v/a.max }

// Draw renders the plot as SVG. Every text in it is escaped.
func (p Plot) Draw() template.HTML {
	var b strings.Builder
	x, y := p.axes()
	below := legendLine * float64(len(p.Series)+len(p.Notes)) // the legend is above the axes
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth,
		plotHeight+below, esc(p.Title))
	p.drawLegend(&b)
	fmt.Fprintf(&b, `<g transform="translate(0 %g)">`, below)
	drawGrid(&b, x, y)
	text(&b, "axis", (plotLeft+plotWidth-plotRight)/2, plotHeight-8, "middle", p.XLabel)
	fmt.Fprintf(&b, `<text class="axis" transform="translate(16 %.1f) rotate(-90)" text-anchor="middle">%s</text>`,
		(plotTop+plotHeight-plotBottom)/2, esc(p.YLabel))
	for i, s := range p.Series {
		drawLine(&b, styleOf(i), s.Means, p.shifted(x, i), y)
	}
	for i, s := range p.Series {
		for _, pt := range s.Points {
			drawPoint(&b, "each", styleOf(i), pt, p.shifted(x, i), y)
		}
	}
	for i, s := range p.Series {
		for _, pt := range s.Means {
			drawPoint(&b, "of", styleOf(i), pt, p.shifted(x, i), y)
		}
	}
	b.WriteString(`</g></svg>`)
	return template.HTML(b.String())
}

// shifted is the x axis of the i-th series.
func (p Plot) shifted(x axis, i int) axis {
	if p.Dodge {
		by := dodgeBy * (float64(i) - float64(len(p.Series)-1)/2)
		x.from, x.to = x.from+by, x.to+by
	}
	return x
}

// drawLegend puts a line for each series, and the notes, above the axes.
func (p Plot) drawLegend(b *strings.Builder) {
	at := plotTop
	for i, s := range p.Series {
		fmt.Fprintf(b, `<g class="each" stroke="%s">%s</g>`, styleOf(i).Colour, marker(styleOf(i), plotLeft+5, at))
		text(b, "tick", plotLeft+18, at+4, "start", s.Name)
		at += legendLine
	}
	for _, note := range p.Notes {
		text(b, "tick", plotLeft, at+4, "start", note)
		at += legendLine
	}
}

func (p Plot) axes() (x, y axis) {
	var mx, my float64
	for _, s := range p.Series {
		for _, pt := range slices.Concat(s.Points, s.Means) {
			mx, my = max(mx, pt.X), max(my, pt.Y)
			if pt.XHigh != nil {
				mx = max(mx, *pt.XHigh)
			}
			if pt.YHigh != nil {
				my = max(my, *pt.YHigh)
			}
		}
	}
	x = newAxis(mx, plotLeft, plotWidth-plotRight)
	if p.Ticks != nil {
		x = axis{max: float64(len(p.Ticks)) + 1, from: plotLeft, to: plotWidth - plotRight}
	}
	for _, t := range p.Ticks {
		x.ticks, x.names = append(x.ticks, t.X), append(x.names, t.Text)
	}
	return x, newAxis(my*headroom, plotHeight-plotBottom, plotTop)
}

// headroom keeps the highest mark off the frame.
const headroom = 1.05

func drawGrid(b *strings.Builder, x, y axis) {
	for _, v := range y.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, plotLeft, plotWidth-plotRight,
			y.at(v), y.at(v))
		text(b, "tick", plotLeft-7, y.at(v)+4, "end", Tick(v))
	}
	for i, v := range x.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x.at(v), x.at(v), plotTop,
			plotHeight-plotBottom)
		name := Tick(v)
		if x.names != nil {
			name = x.names[i]
		}
		text(b, "tick", x.at(v), plotHeight-plotBottom+18, "middle", name)
	}
	fmt.Fprintf(b, `<line class="base" x1="%g" x2="%g" y1="%g" y2="%g"/>`, plotLeft, plotWidth-plotRight,
		plotHeight-plotBottom, plotHeight-plotBottom)
}

func drawLine(b *strings.Builder, st style, line []Point, x, y axis) {
	if len(line) < 2 {
		return
	}
	var path []string
	for _, pt := range line {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(pt.X), y.at(pt.Y)))
	}
	fmt.Fprintf(b, `<polyline class="mean" points="%s" stroke="%s"/>`, strings.Join(path, " "), st.Colour)
}

// drawPoint draws a trial ("each") or a mean ("of"), with its whiskers.
func drawPoint(b *strings.Builder, class string, st style, pt Point, x, y axis) {
	px, py := x.at(pt.X), y.at(pt.Y)
	fmt.Fprintf(b, `<g class="%s" stroke="%s"><title>%s</title>`, class, st.Colour, esc(pt.Hint))
	if pt.XLow != nil && pt.XHigh != nil {
		fmt.Fprintf(b, `<line class="whisker" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x.at(*pt.XLow),
			x.at(*pt.XHigh), py, py)
	}
	if pt.YLow != nil && pt.YHigh != nil {
		low, high := y.at(max(0, *pt.YLow)), y.at(*pt.YHigh)
		foot := fmt.Sprintf("m-8 %.1fh8", low-high)
		if *pt.YLow < 0 { // it reaches below the axis
			foot = ""
		}
		fmt.Fprintf(b, `<path class="interval" d="M%.1f %.1fV%.1fm-4 0h8%s"/>`, px, low, high, foot)
	}
	if class == "of" {
		fmt.Fprintf(b, `<line class="bar" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, px-5, px+5, py, py)
	} else {
		b.WriteString(marker(st, px, py))
	}
	b.WriteString(`</g>`)
}

// marker draws a series' sign. Circles are filled and the others hollow, so
// that signs on top of each other still show.
func marker(st style, x, y float64) string {
	switch st.Marker {
	case "square":
		return fmt.Sprintf(`<rect class="hollow" x="%.1f" y="%.1f" width="8" height="8"/>`, x-4, y-4)
	case "triangle":
		return fmt.Sprintf(`<path class="hollow" d="M%.1f %.1fl5 9h-10z"/>`, x, y-5)
	case "diamond":
		return fmt.Sprintf(`<path class="hollow" d="M%.1f %.1fl5 5l-5 5l-5-5z"/>`, x, y-5)
	}
	return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="4.2" fill="%s" fill-opacity="0.75"/>`, x, y, st.Colour)
}

// Key is the sign of a plot's i-th series for a legend.
func Key(i int) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="key" viewBox="0 0 14 14" aria-hidden="true"><g stroke="%s">%s</g></svg>`,
		styleOf(i).Colour, marker(styleOf(i), 7, 7)))
}

func text(b *strings.Builder, class string, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, esc(s))
}

func esc(s string) string { return template.HTMLEscapeString(s) }

// Tick prints a tick's value.
func Tick(v float64) string {
	return strings.Replace(fmt.Sprintf("%g", math.Round(v*1e6)/1e6), "-", "−", 1)
}
