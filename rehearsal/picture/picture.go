// Package picture draws a rehearsal's field as SVG: nodes, how far they reach,
// links by their signal, and the paths that nodes take. What the field is like
// is the field's to say.
package picture

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

// Size of the drawing in its own units; its height follows the field's shape.
const (
	width        = 960.0
	margin       = 28.0
	titleHeight  = 44.0
	legendHeight = 92.0
	plotLeast    = 260.0
	plotMost     = 560.0
)

// view maps metres to the drawing: one scale for both axes, north up.
type view struct {
	scale          float64 // units a metre
	left, top      float64 // of the plot
	originX, maxYM float64 // metres at the plot's corner
	wide, high     float64 // of the plot
}

func (v view) height() float64 { return v.top + v.high + legendHeight }

func (v view) x(m float64) float64 { return v.left + (m-v.originX)*v.scale }
func (v view) y(m float64) float64 { return v.top + (v.maxYM-m)*v.scale }

// box is a rectangle in metres.
type box struct{ x0, y0, x1, y1 float64 }

func (b *box) take(x, y float64) {
	b.x0, b.x1 = min(b.x0, x), max(b.x1, x)
	b.y0, b.y1 = min(b.y0, y), max(b.y1, y)
}

// leastM is the least side of what is shown.
const leastM = 40

// fit frames the nodes, their paths, the area, and reaches that are not much
// larger than all that; reaches beyond are cut off at the edge.
func fit(s field.Sketch) view {
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, n := range s.Nodes {
		b.take(n.XM, n.YM)
		for _, p := range n.Way {
			b.take(p.XM, p.YM)
		}
	}
	if s.Area != nil {
		b.take(0, 0)
		b.take(s.Area.WidthM, s.Area.HeightM)
	}
	extent := max(b.x1-b.x0, b.y1-b.y0, leastM)
	whole := b
	for _, n := range s.Nodes {
		for _, r := range []float64{n.HighReachM, n.LowReachM} {
			if shown(s, n) && r <= 2*extent {
				whole.take(n.XM-r, n.YM-r)
				whole.take(n.XM+r, n.YM+r)
			}
		}
	}
	room := 0.06 * max(whole.x1-whole.x0, whole.y1-whole.y0, leastM)
	b = box{whole.x0 - room, whole.y0 - room, whole.x1 + room, whole.y1 + room}
	v := view{wide: width - 2*margin, left: margin, top: titleHeight}
	v.high = min(max(v.wide*(b.y1-b.y0)/(b.x1-b.x0), plotLeast), plotMost)
	v.scale = min(v.wide/(b.x1-b.x0), v.high/(b.y1-b.y0))
	// The shorter side is centred.
	v.originX = (b.x0+b.x1)/2 - v.wide/v.scale/2
	v.maxYM = (b.y0+b.y1)/2 + v.high/v.scale/2
	return v
}

// shown reports whether a node's reach is drawn: the trial's own nodes', and
// everybody's while they are few.
func shown(s field.Sketch, n field.SketchNode) bool { return n.Role != "" || len(s.Nodes) <= 4 }

// SVG draws a sketch. It is a whole file, without anything from outside.
func SVG(s field.Sketch) string {
	var b strings.Builder
	v := fit(s)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="13">`+"\n",
		width, v.height(), html.EscapeString("the field: "+s.Title))
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="#fff"/><clipPath id="plot"><rect x="%g" y="%g" width="%g" height="%g"/></clipPath>`+"\n",
		width, v.height(), v.left, v.top, v.wide, v.high)
	fmt.Fprintf(&b, `<text x="%g" y="%g" font-size="15" font-weight="600" fill="#1d2329">%s, %s after setting off</text>`+"\n",
		margin, margin+4, html.EscapeString(s.Title), html.EscapeString(fmt.Sprintf("%g s", s.AtS)))
	fmt.Fprintf(&b, `<g clip-path="url(#plot)"><rect x="%g" y="%g" width="%g" height="%g" fill="#f7f8f9"/>`+"\n",
		v.left, v.top, v.wide, v.high)
	grid(&b, v)
	if s.Area != nil {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#8b959d" stroke-dasharray="2 3"/>`+"\n",
			v.x(0), v.y(s.Area.HeightM), s.Area.WidthM*v.scale, s.Area.HeightM*v.scale)
	}
	reaches(&b, s, v)
	ways(&b, s, v)
	links(&b, s, v)
	nodes(&b, s, v)
	b.WriteString("</g>\n")
	legend(&b, s, v)
	b.WriteString("</svg>\n")
	return b.String()
}

// step is 1, 2 or 5 times a power of ten, at least so many metres.
func step(atLeastM float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(atLeastM)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= atLeastM {
			return m * power
		}
	}
	return 10 * power
}

func grid(b *strings.Builder, v view) {
	every := step(90 / v.scale)
	for k := math.Ceil(v.originX / every); v.x(k*every) < v.left+v.wide; k++ {
		x := k*every + 0 // never -0
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%g" y2="%g" stroke="#e3e7ea"/>`, v.x(x), v.x(x), v.top,
			v.top+v.high)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#8b959d" font-size="11">%g m</text>`, v.x(x)+3, v.top+v.high-5, x)
	}
	for k := math.Ceil((v.maxYM - v.high/v.scale) / every); v.y(k*every) > v.top; k++ {
		y := k*every + 0
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#e3e7ea"/>`, v.left, v.left+v.wide, v.y(y),
			v.y(y))
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#8b959d" font-size="11">%g m</text>`, v.left+4, v.y(y)-3, y)
	}
	b.WriteString("\n")
}

func reaches(b *strings.Builder, s field.Sketch, v view) {
	for _, n := range s.Nodes {
		if !shown(s, n) {
			continue
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="#0072b2" fill-opacity="0.035" stroke="#0072b2" stroke-opacity="0.45" stroke-dasharray="6 4"/>`,
			v.x(n.XM), v.y(n.YM), n.LowReachM*v.scale)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="#0072b2" fill-opacity="0.07" stroke="#0072b2" stroke-opacity="0.6"/>`+"\n",
			v.x(n.XM), v.y(n.YM), n.HighReachM*v.scale)
	}
}

func ways(b *strings.Builder, s field.Sketch, v view) {
	for _, n := range s.Nodes {
		if len(n.Way) == 0 || n.Role == "" && len(s.Nodes) > mostNames {
			continue
		}
		points := make([]string, len(n.Way))
		for i, p := range n.Way {
			points[i] = fmt.Sprintf("%.1f,%.1f", v.x(p.XM), v.y(p.YM))
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-opacity="0.5" stroke-width="2" stroke-dasharray="1 5" stroke-linecap="round"/>`+"\n",
			strings.Join(points, " "), colour(n.Role))
	}
}

// colours of roles are Okabe and Ito's, readable for every eye.
func colour(role string) string {
	switch role {
	case "car":
		return "#d55e00"
	case "roadside":
		return "#009e73"
	case "sender", "receiver":
		return "#8a5a83"
	}
	return "#4a545c"
}

// ink is a link's: the faster it can be, the darker and wider.
func ink(rate, highest float64) (stroke string, width, opacity float64) {
	if rate == 0 {
		return "#b0b8be", 0.8, 0.6
	}
	share := math.Sqrt(rate / highest) // the rates crowd at the low end
	shade := func(light, dark int) int { return light + int(share*float64(dark-light)) }
	return fmt.Sprintf("#%02x%02x%02x", shade(150, 0), shade(196, 70), shade(222, 120)), 1 + 1.6*share, 0.45 + 0.5*share
}

// mostNames is how many nodes are named and have their paths drawn, besides
// those of the trial.
const mostNames = 30

// mostLabels is how many links are labelled: more would hide the field.
const mostLabels = 8

func links(b *strings.Builder, s field.Sketch, v view) {
	sorted := slices.Clone(s.Links)
	slices.SortStableFunc(sorted, func(a, b field.SketchLink) int {
		return int(math.Copysign(1, a.RateMbps-b.RateMbps))
	})
	for _, l := range sorted {
		from, to := s.Nodes[l.From], s.Nodes[l.To]
		stroke, wide, opacity := ink(l.RateMbps, s.HighestMbps)
		if len(sorted) > 60 {
			wide, opacity = wide*0.5, opacity*0.6
		}
		dash := ""
		if l.RateMbps == 0 {
			dash = ` stroke-dasharray="2 4"`
		}
		hint := fmt.Sprintf("%s and %s: %s", from.Name, to.Name, words(l))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f" stroke-opacity="%.2f"%s><title>%s</title></line>`+"\n",
			v.x(from.XM), v.y(from.YM), v.x(to.XM), v.y(to.YM), stroke, wide, opacity, dash, html.EscapeString(hint))
	}
	if len(sorted) > mostLabels {
		return
	}
	for _, l := range sorted {
		from, to := s.Nodes[l.From], s.Nodes[l.To]
		x, y := (v.x(from.XM)+v.x(to.XM))/2, (v.y(from.YM)+v.y(to.YM))/2
		if math.Hypot(v.x(from.XM)-v.x(to.XM), v.y(from.YM)-v.y(to.YM)) < 90 {
			y += 46 // below nodes that stand close
		} else {
			y += 20 // names are above
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="12" fill="#1d2329" stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
			x, y, html.EscapeString(words(l)))
	}
}

func words(l field.SketchLink) string {
	if l.RateMbps > 0 {
		return fmt.Sprintf("%.0f dBm, SNR %.0f dB, %g Mbit/s", l.SignalDbm, l.SNRDb, l.RateMbps)
	}
	return fmt.Sprintf("%.0f dBm, no data", l.SignalDbm)
}

func nodes(b *strings.Builder, s field.Sketch, v view) {
	small := len(s.Nodes) > mostNames
	var names taken
	for _, n := range s.Nodes {
		x, y, c := v.x(n.XM), v.y(n.YM), colour(n.Role)
		r := 6.0
		if small && n.Role == "" {
			r = 4
		}
		if n.SpeedMps > 0 {
			// An arrow of a length that grows with the speed, up to that of a label.
			sin, cos := math.Sincos(n.TrackDeg * math.Pi / 180)
			far := r + 6 + min(n.SpeedMps, 20)
			if small {
				far = r + 4
			}
			fmt.Fprintf(b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-width="2.4" stroke-linecap="round"/><circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"/>`,
				x, y, x+far*sin, y-far*cos, c, x+far*sin, y-far*cos, c)
		}
		hint := fmt.Sprintf("%s at (%.1f m, %.1f m), %.1f m/s", n.Name, n.XM, n.YM, n.SpeedMps)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="#fff" stroke-width="1.5"><title>%s</title></circle>`, x, y, r, c, html.EscapeString(hint))
		if len(s.Nodes) > mostNames && n.Role == "" {
			continue
		}
		label := n.Name
		if n.Role != "" {
			label += " (" + n.Role + ")"
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s" font-weight="600" stroke="#f7f8f9" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
			x, names.place(x, label, y-r-8, y+r+17, y-r-24, y+r+33), c, html.EscapeString(label))
	}
}

// taken are the places of names so far.
type taken []box

// place is the first of some heights at which a name hits no other, or the
// last of them.
func (t *taken) place(x float64, name string, heights ...float64) float64 {
	half := 4 * float64(len(name)) // a letter is about eight units wide
	for i, y := range heights {
		b := box{x - half, y - 12, x + half, y + 4}
		hit := slices.ContainsFunc(*t, func(o box) bool {
			return b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1
		})
		if !hit || i == len(heights)-1 {
			*t = append(*t, b)
			return y
		}
	}
	return 0
}

func legend(b *strings.Builder, s field.Sketch, v view) {
	y := v.top + v.high + 16
	bar := step(90 / v.scale)
	fmt.Fprintf(b, `<path d="M%g %gv6h%.1fv-6" fill="none" stroke="#1d2329" stroke-width="1.5"/><text x="%g" y="%g" fill="#1d2329">%g m</text>`,
		margin, y, bar*v.scale, margin, y+22, bar)
	x := margin + bar*v.scale + 40
	fmt.Fprintf(b, `<text x="%g" y="%g" fill="#5b6670">link, by the best rate that carries data both ways:</text>`, x,
		y+8)
	for i, rate := range []float64{s.HighestMbps, s.LowestMbps, 0} {
		stroke, wide, opacity := ink(rate, s.HighestMbps)
		label, dash := fmt.Sprintf("%g Mbit/s", rate), ""
		if rate == 0 {
			label, dash = "noticed, no data", ` stroke-dasharray="2 4"`
		}
		at := x + 140*float64(i)
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%g" y2="%g" stroke="%s" stroke-width="%.1f" stroke-opacity="%.2f"%s/><text x="%g" y="%g" fill="#1d2329">%s</text>`,
			at, at+26, y+24, y+24, stroke, wide, opacity, dash, at+33, y+28, label)
	}
	fmt.Fprintf(b, `<text x="%g" y="%g" fill="#5b6670">%s</text>`+"\n", margin, y+52, html.EscapeString(reachWords(s)))
}

// reachWords names the circles.
func reachWords(s field.Sketch) string {
	low, high := math.Inf(-1), math.Inf(-1)
	least := math.Inf(1)
	for _, n := range s.Nodes {
		if shown(s, n) {
			low, high, least = max(low, n.LowReachM), max(high, n.HighReachM), min(least, n.HighReachM)
		}
	}
	if math.IsInf(low, 0) {
		return "reaches are drawn for the trial's own nodes"
	}
	if high == low {
		return fmt.Sprintf("circles: frames of every rate reach %.0f m", high)
	}
	text := fmt.Sprintf("circles: full frames at %g Mbit/s reach %.0f m (solid), at %g Mbit/s %.0f m (dashed), "+
		"without shadowing and fading", s.HighestMbps, high, s.LowestMbps, low)
	if high-least > 0.5 {
		text += "; the units differ"
	}
	return text
}
