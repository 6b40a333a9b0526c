package topology

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Size of the drawing in its own units.
const (
	pictureWidth  = 960.0
	pictureMargin = 60.0
	titleHeight   = 54.0
	legendHeight  = 46.0
	plotLeast     = 60.0 // between the northernmost and the southernmost node
	plotMost      = 320.0
)

// halo keeps what is written over lines legible.
const halo = `<style>.o{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}</style>` + "\n"

type spot struct{ x, y float64 }

// SVG draws the mesh at a moment: nodes, links by their quality, and the
// flow's path. It is a whole file, without anything from outside.
func (m *Mesh) SVG(title string, s float64) string {
	spots, tall, known := m.spots(s)
	height := titleHeight + 2*pictureMargin + tall + legendHeight
	path := m.PathAt(s)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="13">`+"\n"+halo,
		pictureWidth, height, html.EscapeString("the mesh: "+title))
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="#fff"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<text x="28" y="26" font-size="15" font-weight="600" fill="#1d2329">%s, %.1f s into the window</text>`+"\n", html.EscapeString(title), s)
	fmt.Fprintf(&b, `<text x="28" y="46" fill="#5b646c">%s</text>`+"\n",
		html.EscapeString(describe(m.Protocol, path, known)))
	drawPath(&b, spots, path)
	m.drawLinks(&b, spots, s)
	drawOut(&b, spots, path)
	m.drawNodes(&b, spots, path)
	fmt.Fprintf(&b, `<g fill="#5b646c" font-size="12"><text x="28" y="%g">thin lines: neighbours, green good to red poor by signal (−60 to −90 dBm) or cost (1 to 4 ETX), dashed heard one way only</text>`, height-32)
	fmt.Fprintf(&b, `<text x="28" y="%g">thick blue: the way of the flow by the routes that nodes had; dotted red: its next node was out of reach</text></g>`+"\n", height-14)
	b.WriteString("</svg>\n")
	return b.String()
}

func describe(protocol string, p Path, known bool) string {
	text := "routing " + protocol + "; the flow's path: " + p.String()
	if !known {
		text += "; where nodes were is not known"
	}
	return text
}

// spots are the nodes' places in the drawing, and how tall it has to be for
// them; known is false when they are on a circle.
func (m *Mesh) spots(s float64) (out map[string]spot, tall float64, known bool) {
	out = map[string]spot{}
	low, high := spot{math.Inf(1), math.Inf(1)}, spot{math.Inf(-1), math.Inf(-1)}
	for _, n := range m.Nodes {
		p := latest(m.places[n], s, func(p place) float64 { return p.s })
		if p == nil && len(m.places[n]) > 0 {
			p = &m.places[n][0]
		}
		if p == nil {
			return m.circle(), plotMost, false
		}
		out[n] = spot{p.x, p.y}
		low, high = spot{min(low.x, p.x), min(low.y, p.y)}, spot{max(high.x, p.x), max(high.y, p.y)}
	}
	scale := min((pictureWidth-2*pictureMargin)/max(high.x-low.x, 1), plotMost/max(high.y-low.y, 1))
	tall = max((high.y-low.y)*scale, plotLeast)
	middle := spot{(low.x + high.x) / 2, (low.y + high.y) / 2}
	for n, p := range out { // north is up
		out[n] = spot{pictureWidth/2 + (p.x-middle.x)*scale, titleHeight + pictureMargin + tall/2 - (p.y-middle.y)*
			scale}
	}
	return out, tall, true
}

func (m *Mesh) circle() map[string]spot {
	out := map[string]spot{}
	for i, n := range m.Nodes {
		angle := 2 * math.Pi * float64(i) / float64(len(m.Nodes))
		out[n] = spot{pictureWidth/2 + plotMost*math.Cos(angle), titleHeight + pictureMargin + plotMost/2*
			(1+math.Sin(angle))}
	}
	return out
}

// quality is 1 for a link that could not be better, 0 for one that barely
// works, and how it was told; ok is false when nothing tells.
func (l Link) quality() (share float64, text string, ok bool) {
	switch {
	case l.SignalDbm != nil:
		return min(max((*l.SignalDbm+90)/30, 0), 1), strings.Replace(fmt.Sprintf("%.0f dBm", *l.SignalDbm), "-", "−",
			1), true
	case l.Cost != nil && *l.Cost >= 16: // babeld's unit is 1/256 of a transmission, 96 at least on a cable
		return min(max(1-(*l.Cost/256-1)/3, 0), 1), fmt.Sprintf("cost %.0f", *l.Cost), true
	case l.Cost != nil:
		return min(max(1-(*l.Cost-1)/3, 0), 1), fmt.Sprintf("ETX %.2f", *l.Cost), true
	}
	return 0, "", false
}

func (m *Mesh) drawLinks(b *strings.Builder, spots map[string]spot, s float64) {
	links := m.Links(s)
	back := func(l Link) bool {
		return slices.ContainsFunc(links, func(o Link) bool { return o.From == l.To && o.To == l.From })
	}
	for _, l := range links {
		if back(l) && l.From > l.To {
			continue // drawn with the other
		}
		from, to := spots[l.From], spots[l.To]
		colour, dash := "#8b959d", ""
		share, text, ok := l.quality()
		if ok {
			colour = fmt.Sprintf("hsl(%.0f 65%% 42%%)", 120*share)
		}
		if !back(l) {
			dash = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"%s/>`, from.x,
			from.y, to.x, to.y, colour, dash)
		if text != "" && len(links) <= 60 {
			fmt.Fprintf(b, `<text class="o" x="%.1f" y="%.1f" font-size="11" fill="%s" text-anchor="middle">%s</text>`,
				(from.x+to.x)/2, (from.y+to.y)/2+4, colour, text)
		}
		b.WriteString("\n")
	}
}

func drawPath(b *strings.Builder, spots map[string]spot, p Path) {
	for i := range p.Nodes[1:] {
		from, to := spots[p.Nodes[i]], spots[p.Nodes[i+1]]
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#0072b2" stroke-width="5" stroke-linecap="round" opacity="0.55"/>`+"\n", from.x, from.y, to.x, to.y)
	}
}

// drawOut shows where the way ends because its next node is out of reach.
func drawOut(b *strings.Builder, spots map[string]spot, p Path) {
	if p.Out == "" {
		return
	}
	from, to := spots[p.Nodes[len(p.Nodes)-1]], spots[p.Out]
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#d55e00" stroke-width="6" stroke-dasharray="1 10" stroke-linecap="round"/>`+"\n", from.x, from.y, to.x, to.y)
}

func (m *Mesh) drawNodes(b *strings.Builder, spots map[string]spot, p Path) {
	for _, n := range m.Nodes {
		fill := "#fff"
		if slices.Contains(p.Nodes, n) {
			fill = "#cfe4f2"
		}
		role := ""
		switch n {
		case m.From:
			role = " (sends)"
		case m.To:
			role = " (receives)"
		}
		at := spots[n]
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="9" fill="%s" stroke="#1d2329" stroke-width="1.5"/>`, at.x, at.y,
			fill)
		fmt.Fprintf(b, `<text class="o" x="%.1f" y="%.1f" text-anchor="middle" fill="#1d2329">%s</text>`+"\n", at.x,
			at.y+26, html.EscapeString(n+role))
	}
}
