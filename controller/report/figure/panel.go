package figure

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark is one point of a panel, with its interval or its range.
type Mark struct {
	X, Y      float64
	Low, High *float64
	N         int    // of ours; 0: a published one
	AtLeast   bool   // Y is only known to be more
	AtMost    bool   // Y is only known to be less
	Hint      string // told where the pointer rests on it
}

// Place is a point of a path; where Y is nil the path breaks.
type Place struct {
	X float64
	Y *float64
}

// Curve is one series of a panel. Its style is by its place among the others.
type Curve struct {
	Name   string
	Dotted bool
	Ours   []Mark
	Theirs []Mark
	Path   []Place
}

// Band is a range that all of a panel's points should lie in, by another's word.
type Band struct {
	Low, High float64
	Hint      string
}

// Panel is a plot that stands by itself: title, legend, axes with units and data
// are in the drawing, and so is all of its style.
type Panel struct {
	Title          string
	Label          string // what it is, for who cannot see it
	XLabel, YLabel string
	XNames         []string // of the places 1, 2, 3 … on an axis of x without numbers
	Curves         []Curve
	Band           *Band
	Apart          bool   // values lie close together: the axis of y need not begin at 0
	Confidence     string // of the intervals: 95 %
}

// Size and margins of a panel, as wide as a phone's screen; text keeps its size there.
const (
	panelWidth           = 360.0
	panelPlotHeight      = 200.0
	panelRight           = 14.0
	titleLine, legendRow = 18.0, 16.0
	dodge                = 4.0 // between marks of the same x
)

// The drawing's own colours and words.
const (
	ink         = "#1d2329"
	soft        = "#5b6670"
	gridColour  = "#e6eaed"
	baseColour  = "#9aa4ac"
	fonts       = `system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif`
	theirs      = "paper, as published"
	theirsOfAll = "paper, of all of them"
)

// frame is where a panel's plot lies, and its scales.
type frame struct {
	x, y        scale
	left        float64
	top, bottom float64
	height      float64 // of the whole drawing
	names       []string
}

// scale maps values to the drawing; it need not begin at 0.
type scale struct {
	low, high, from, to float64
	ticks               []float64
}

func (s scale) at(v float64) float64 { return s.from + (s.to-s.from)*(v-s.low)/(s.high-s.low) }

// newScale reaches from 0, or from near the least where values lie apart, to a
// whole step above the most.
func newScale(least, most float64, apart bool, from, to float64, steps int) scale {
	low := 0.0
	step := niceStep(most, steps)
	if apart && least > 0.5*most {
		step = niceStep(most-least, steps)
		low = math.Floor(least/step-1e-9) * step
	}
	s := scale{low: low, high: low + math.Max(math.Ceil((most-low)/step-1e-9), 1)*step, from: from, to: to}
	for i := 0; low+float64(i)*step <= s.high+step/1e6; i++ {
		s.ticks = append(s.ticks, low+float64(i)*step)
	}
	return s
}

// Draw renders the panel as SVG for a page.
func (p Panel) Draw() template.HTML {
	svg, _ := p.draw("")
	return template.HTML(svg)
}

// draw renders the panel; where are further attributes of its element.
func (p Panel) draw(where string) (svg string, height float64) {
	rows := p.legend()
	title := wrap(p.Title, 44)
	f := p.frame(titleLine*float64(len(title)) + legendRow*float64(len(rows)) + 10)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="panel"%s viewBox="0 0 %g %g" role="img" aria-label="%s" data-x-label="%s" `+
		`data-y-label="%s" font-size="12" fill="%s">`, where, panelWidth, f.height, esc(p.Label), esc(p.XLabel),
		esc(p.YLabel), ink)
	for i, line := range title {
		fmt.Fprintf(&b, `<text x="2" y="%g" font-size="13" font-weight="600">%s</text>`, 13+titleLine*float64(i),
			esc(line))
	}
	for i, row := range rows {
		for _, e := range row {
			y := titleLine*float64(len(title)) + legendRow*(float64(i)+0.5) + 2
			fmt.Fprintf(&b, `<g class="legend" transform="translate(%.1f %.1f)">%s<text x="20" y="4" font-size="11.5">%s</text></g>`,
				e.x, y, e.sign, esc(e.text))
		}
	}
	p.grid(&b, f)
	if p.Band != nil {
		fmt.Fprintf(&b, `<g class="band" data-low="%s" data-high="%s"><title>%s</title><rect x="%g" width="%g" y="%.2f" height="%.2f" fill="%s" fill-opacity="0.13"/></g>`,
			exact(p.Band.Low), exact(p.Band.High), esc(p.Band.Hint), f.left, panelWidth-f.left-panelRight,
			f.y.at(p.Band.High), f.y.at(p.Band.Low)-f.y.at(p.Band.High), soft)
	}
	drawn := p.drawn()
	for n, i := range drawn {
		p.Curves[i].draw(&b, f, styleOf(i), dodge*(float64(n)-float64(len(drawn)-1)/2))
	}
	b.WriteString(`</svg>`)
	return b.String(), f.height
}

// drawn are the places of the curves that have anything to show.
func (p Panel) drawn() []int {
	var out []int
	for i, c := range p.Curves {
		if len(c.Ours)+len(c.Theirs)+len(c.Path) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// frame scales the axes to all that lies in the panel, below so much of title and
// legend.
func (p Panel) frame(above float64) frame {
	mostX, leastY, mostY := 0.0, math.Inf(1), 0.0
	takeY := func(values ...*float64) {
		for _, v := range values {
			if v != nil {
				leastY, mostY = min(leastY, *v), max(mostY, *v)
			}
		}
	}
	for _, c := range p.Curves {
		for _, m := range slices.Concat(c.Ours, c.Theirs) {
			mostX = max(mostX, m.X)
			takeY(&m.Y, m.Low, m.High)
		}
		for _, at := range c.Path {
			mostX = max(mostX, at.X)
			takeY(at.Y)
		}
	}
	if p.Band != nil {
		takeY(&p.Band.Low, &p.Band.High)
	}
	f := frame{top: above, bottom: above + panelPlotHeight}
	f.height = f.bottom + 40
	f.y = newScale(max(leastY, 0), mostY*1.02, p.Apart, f.bottom, f.top, 5)
	widest := 0
	for _, v := range f.y.ticks {
		widest = max(widest, len(Tick(v)))
	}
	f.left = 32 + 7.2*float64(max(widest, 2))
	f.x = newScale(0, mostX, false, f.left, panelWidth-panelRight-6, 6)
	if p.XNames != nil {
		f.names = p.XNames
		f.x = scale{low: 0.5, high: float64(len(p.XNames)) + 0.5, from: f.left, to: panelWidth - panelRight}
		for i := range p.XNames {
			f.x.ticks = append(f.x.ticks, float64(i+1))
		}
	}
	return f
}

func (p Panel) grid(b *strings.Builder, f frame) {
	line := func(x1, x2, y1, y2 float64, colour string) {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s"/>`, x1, x2, y1, y2, colour)
	}
	for _, v := range f.y.ticks {
		line(f.left, panelWidth-panelRight, f.y.at(v), f.y.at(v), gridColour)
		fmt.Fprintf(b, `<text class="ytick" data-v="%s" x="%g" y="%.2f" text-anchor="end" fill="%s">%s</text>`, exact(v),
			f.left-6, f.y.at(v)+4, soft, Tick(v))
	}
	for i, v := range f.x.ticks {
		name := Tick(v)
		if f.names != nil {
			name = f.names[i]
		}
		line(f.x.at(v), f.x.at(v), f.top, f.bottom, gridColour)
		fmt.Fprintf(b, `<text class="xtick" data-v="%s" x="%.2f" y="%g" text-anchor="middle" fill="%s">%s</text>`,
			exact(v), f.x.at(v), f.bottom+16, soft, esc(name))
	}
	line(f.left, panelWidth-panelRight, f.bottom, f.bottom, baseColour)
	fmt.Fprintf(b, `<text class="xlabel" x="%g" y="%g" text-anchor="middle">%s</text>`,
		(f.left+panelWidth-panelRight)/2, f.bottom+34, esc(p.XLabel))
	fmt.Fprintf(b, `<text class="ylabel" transform="translate(12 %.1f) rotate(-90)" text-anchor="middle">%s</text>`,
		(f.top+f.bottom)/2, esc(p.YLabel))
}

// draw draws a curve; off sets its marks apart from those of others at the same x.
func (c Curve) draw(b *strings.Builder, f frame, st style, off float64) {
	join := func(marks []Mark, dash string) {
		if f.names != nil { // between names there is nothing
			return
		}
		var path []string
		for _, m := range marks {
			path = append(path, fmt.Sprintf("%.1f,%.1f", f.x.at(m.X)+off, f.y.at(m.Y)))
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-opacity="0.6"%s/>`,
			strings.Join(path, " "), st.Colour, dash)
	}
	ranges := func(m Mark) bool { return m.Low == nil || m.High == nil || *m.Low < *m.High }
	if len(c.Theirs) > 2 && !slices.ContainsFunc(c.Theirs, ranges) { // fewer are no curve
		join(c.Theirs, ` stroke-dasharray="1 4"`)
	}
	join(c.Ours, c.dash())
	if len(c.Path) > 0 {
		line := polyline{b: b}
		for _, at := range c.Path {
			if at.Y == nil {
				line.lift()
				continue
			}
			line.to(f.x.at(at.X), f.y.at(*at.Y))
		}
		fmt.Fprintf(b, `<g class="path" data-series="%s" fill="none"%s>`, esc(c.Name), c.dash())
		line.end("line", st.Colour)
		b.WriteString(`</g>`)
	}
	for _, m := range c.Ours {
		m.draw(b, f, st, off, "ours", c.Name)
	}
	for _, m := range c.Theirs {
		m.draw(b, f, st, off, "paper", c.Name)
	}
}

func (c Curve) dash() string {
	if c.Dotted {
		return ` stroke-dasharray="4 3"`
	}
	return ""
}

func (m Mark) draw(b *strings.Builder, f frame, st style, off float64, of, series string) {
	x, y := f.x.at(m.X)+off, f.y.at(m.Y)
	fmt.Fprintf(b, `<g class="%s" data-series="%s" data-x="%s" data-y="%s"`, of, esc(series), exact(m.X), exact(m.Y))
	if m.Low != nil {
		fmt.Fprintf(b, ` data-low="%s"`, exact(*m.Low))
	}
	if m.High != nil {
		fmt.Fprintf(b, ` data-high="%s"`, exact(*m.High))
	}
	if m.N > 0 {
		fmt.Fprintf(b, ` data-n="%d"`, m.N)
	}
	fmt.Fprintf(b, ` stroke="%s" stroke-width="1.6" fill="none"><title>%s</title>`, st.Colour, esc(m.Hint))
	if m.Low != nil && m.High != nil && *m.High > *m.Low {
		low, high, foot := f.y.at(max(*m.Low, f.y.low)), f.y.at(*m.High), ""
		if *m.Low >= f.y.low {
			foot = fmt.Sprintf("M%.1f %.2fh6", x-3, low)
		}
		fmt.Fprintf(b, `<path stroke-width="1.1" d="M%.1f %.2fV%.2fm-3 0h6%s"/>`, x, low, high, foot)
	}
	switch {
	case m.AtLeast:
		fmt.Fprintf(b, `<path d="M%.1f %.2fv-14m-3 4l3 -4l3 4"/>`, x, y)
	case m.AtMost:
		fmt.Fprintf(b, `<path d="M%.1f %.2fv14m-3 -4l3 4l3 -4"/>`, x, y)
	}
	if of == "paper" {
		b.WriteString(cross(x, y))
	} else {
		b.WriteString(sign(st, x, y))
	}
	b.WriteString(`</g>`)
}

// cross is the sign of a published point.
func cross(x, y float64) string {
	return fmt.Sprintf(`<path stroke-width="2" d="M%.1f %.1fl9 9m0 -9l-9 9"/>`, x-4.5, y-4.5)
}

// sign is a series' sign, with its own fill.
func sign(st style, x, y float64) string {
	return strings.ReplaceAll(marker(st, x, y), `class="hollow"`, `fill="#fff" fill-opacity="0.55"`)
}

// entry is one entry of the legend.
type entry struct {
	x    float64
	sign string
	text string
}

// legend sets the entries in rows that are as wide as the panel.
func (p Panel) legend() [][]entry {
	var all []entry
	marks, published, intervals := false, false, false
	for _, i := range p.drawn() {
		c, st := p.Curves[i], styleOf(i)
		shape := fmt.Sprintf(`<path d="M0 0h16" stroke="%s" stroke-width="1.4"%s/>`, st.Colour, c.dash())
		if len(c.Path) == 0 {
			marks = true
			shape += fmt.Sprintf(`<g stroke="%s" stroke-width="1.6" fill="none">%s</g>`, st.Colour, sign(st, 8, 0))
		}
		all = append(all, entry{sign: shape, text: c.Name})
		published = published || len(c.Theirs) > 0
		intervals = intervals || slices.ContainsFunc(c.Ours, func(m Mark) bool { return m.Low != nil })
	}
	if marks && intervals {
		all = append(all, entry{sign: fmt.Sprintf(`<path d="M8 -6v12m-3 0h6m-6 -12h6" stroke="%s" fill="none"/>`, soft),
			text: fmt.Sprintf("ours: mean, %s interval", p.Confidence)})
	}
	if published {
		all = append(all, entry{sign: fmt.Sprintf(`<g stroke="%s" fill="none">%s</g>`, ink, cross(8, 0)), text: theirs})
	}
	if p.Band != nil {
		all = append(all, entry{sign: fmt.Sprintf(`<rect x="1" y="-5" width="14" height="10" fill="%s" fill-opacity="0.2"/>`,
			soft), text: theirsOfAll})
	}
	var rows [][]entry
	x := math.Inf(1)
	for _, e := range all {
		width := 20 + widthOf(e.text) + 12
		if x+width > panelWidth {
			rows, x = append(rows, nil), 2
		}
		e.x = x
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		x += width
	}
	return rows
}

// widthOf is about how wide a text of the legend is, rather more than less.
func widthOf(text string) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			width += 8.6
		case unicode.IsLower(r), unicode.IsDigit(r):
			width += 6.6
		default:
			width += 4.6
		}
	}
	return width
}

// Sheet is a figure of several panels as an SVG file of its own, with what is
// said below it.
func Sheet(title string, panels []Panel, below string) string {
	columns := min(len(panels), 3)
	const gap = 14.0
	width := gap + float64(columns)*(panelWidth+gap)
	var b strings.Builder
	head := wrap(title, int(width/7.6))
	y := 14 + 20*float64(len(head))
	for i := 0; i < len(panels); i += columns {
		most := 0.0
		for j, p := range panels[i:min(i+columns, len(panels))] {
			svg, height := p.draw(fmt.Sprintf(` x="%g" y="%g" width="%g" height="%%HEIGHT%%"`, gap+float64(j)*(panelWidth+gap),
				y, panelWidth))
			b.WriteString(strings.Replace(svg, "%HEIGHT%", fmt.Sprintf("%g", height), 1) + "\n")
			most = max(most, height)
		}
		y += most + gap
	}
	var words strings.Builder
	for i, line := range head {
		fmt.Fprintf(&words, `<text x="%g" y="%g" font-size="15" font-weight="600">%s</text>`+"\n", gap, 24+20*float64(i),
			esc(line))
	}
	for _, line := range wrap(below, int(width/6.1)) {
		y += 16
		fmt.Fprintf(&words, `<text x="%g" y="%g" font-size="11.5" fill="%s">%s</text>`+"\n", gap, y, soft, esc(line))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family='%s' fill="%s">`+
		"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n%s%s</svg>\n", width, y+gap, width, y+gap, fonts, ink,
		words.String(), b.String())
}

// wrap breaks a text into lines of so many letters at most, where it can.
func wrap(text string, letters int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > letters {
			out, line = append(out, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
