package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shown is a panel as it is drawn: what a reader of the SVG finds in it.
type shown struct {
	title, x, y    string
	marks          []mark
	xticks, yticks []tick
	legend         []string
}

type mark struct {
	of, series   string
	x, y         float64
	low, high    *float64
	n            int
	atX, atY     float64 // where its sign stands, in the drawing's units
	cross, arrow bool
}

type tick struct{ v, at float64 }

// panelOf reads a panel's SVG.
func panelOf(t *testing.T, svg string) shown {
	t.Helper()
	var out shown
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%v in %.300s", err, svg)
		}
		return v
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	var open []map[string]string
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in %.300s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			at := map[string]string{"": e.Name.Local}
			for _, a := range e.Attr {
				at[a.Name.Local] = a.Value
			}
			open = append(open, at)
			switch {
			case at["class"] == "panel":
				out.title, out.x, out.y = at["aria-label"], at["data-x-label"], at["data-y-label"]
			case at["class"] == "xtick":
				out.xticks = append(out.xticks, tick{number(at["data-v"]), number(at["x"])})
			case at["class"] == "ytick":
				out.yticks = append(out.yticks, tick{number(at["data-v"]), number(at["y"]) - 4})
			case at["class"] == "ours" || at["class"] == "paper" || at["class"] == "band":
				m := mark{of: at["class"], series: at["data-series"]}
				if m.of != "band" {
					m.x, m.y = number(at["data-x"]), number(at["data-y"])
				}
				if at["data-low"] != "" {
					m.low = new(number(at["data-low"]))
				}
				if at["data-high"] != "" {
					m.high = new(number(at["data-high"]))
				}
				if at["data-n"] != "" {
					m.n = int(number(at["data-n"]))
				}
				out.marks = append(out.marks, m)
			case len(open) > 1 && len(out.marks) > 0 && slices.Contains([]string{"ours", "paper"},
				open[len(open)-2]["class"]):
				m := &out.marks[len(out.marks)-1]
				sign(t, m, at)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if n := len(open); n > 1 && open[n-1][""] == "text" && open[n-2]["class"] == "legend" {
				out.legend = append(out.legend, string(e))
			}
		}
	}
}

// sign finds where a mark's sign stands.
func sign(t *testing.T, m *mark, at map[string]string) {
	t.Helper()
	scan := func(format string, s string, into ...any) bool {
		_, err := fmt.Sscanf(s, format, into...)
		return err == nil
	}
	var x, y float64
	switch d := at["d"]; {
	case at[""] == "circle" && scan("%f %f", at["cx"]+" "+at["cy"], &x, &y):
		m.atX, m.atY = x, y
	case at[""] == "rect" && scan("%f %f", at["x"]+" "+at["y"], &x, &y):
		m.atX, m.atY = x+4, y+4
	case strings.HasSuffix(d, "l9 9m0 -9l-9 9") && scan("M%f %f", d, &x, &y):
		m.atX, m.atY, m.cross = x+4.5, y+4.5, true
	case strings.HasSuffix(d, "h-10z") || strings.HasSuffix(d, "l-5-5z"):
		if scan("M%f %f", d, &x, &y) {
			m.atX, m.atY = x, y+5
		}
	case strings.Contains(d, "v-14m") || strings.Contains(d, "v14m"):
		m.arrow = true
	}
}

// between finds where a value stands by the axis's own ticks.
func between(ticks []tick, v float64) float64 {
	first, last := ticks[0], ticks[len(ticks)-1]
	return first.at + (last.at-first.at)*(v-first.v)/(last.v-first.v)
}

// points are our marks of a figure's panel by series and x.
func points(t *testing.T, figures []drawnFigure, number, title string) map[string]mark {
	t.Helper()
	out := map[string]mark{}
	for _, f := range figures {
		for _, p := range f.panels {
			if f.Number == number && (p.Title == title || title == "") {
				for _, m := range panelOf(t, string(p.Draw())).marks {
					if m.of == "ours" {
						out[fmt.Sprintf("%s %g", m.series, m.x)] = m
					}
				}
			}
		}
	}
	return out
}

func text(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
