package figure

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Range rounds a strip's range outwards, to whole steps of a scale.
func Range(low, high float64) (from, to float64) {
	step := niceStep(high-low, 5)
	from, to = math.Floor(low/step)*step, math.Ceil(high/step)*step
	if to <= from {
		to = from + step
	}
	return from, to
}

// Strip is one small plot of a timeline: one number over the window.
type Strip struct {
	Seconds   float64
	Low, High float64 // range of the column's scale
	BandLow   *float64
	BandHigh  *float64
	Colour    string
	S         []float64
	V         []*float64
}

const stripWidth, stripHeight = 168.0, 40.0

// Draw renders the strip. Where a number is absent the line breaks.
func (s Strip) Draw() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="strip" viewBox="0 0 %g %g" aria-hidden="true">`, stripWidth, stripHeight)
	x := func(v float64) float64 { return 1 + (stripWidth-2)*v/max(s.Seconds, 1e-9) }
	y := func(v float64) float64 {
		return stripHeight - 2 - (stripHeight-4)*(v-s.Low)/max(s.High-s.Low, 1e-9)
	}
	if s.BandLow != nil && s.BandHigh != nil {
		fmt.Fprintf(&b, `<rect class="band" x="0" width="%g" y="%.1f" height="%.1f"/>`, stripWidth, y(*s.BandHigh),
			y(*s.BandLow)-y(*s.BandHigh))
	}
	fmt.Fprintf(&b, `<line class="base" x1="0" x2="%g" y1="%g" y2="%g"/>`, stripWidth, stripHeight-1, stripHeight-1)
	path, pen := strings.Builder{}, "M"
	for i, v := range s.V {
		if v == nil {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x(s.S[i]), y(*v))
		if pen == "M" && (i+1 == len(s.V) || s.V[i+1] == nil) {
			path.WriteString("h0") // a point by itself
		}
		pen = "L"
	}
	if path.Len() > 0 {
		fmt.Fprintf(&b, `<path class="trace" stroke="%s" d="%s"/>`, s.Colour, path.String())
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}
