package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/answers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// publishedPoints reads the data file as it is.
func publishedPoints(t *testing.T) map[string]int {
	t.Helper()
	raw, err := os.ReadFile("../papers/data/figures.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, l := range lines[1:] {
		out[strings.Join(l[:7], "|")]++
	}
	raw, err = os.ReadFile("../papers/data/p1_velocity.csv")
	if err != nil {
		t.Fatal(err)
	}
	if lines, err = csv.NewReader(bytes.NewReader(raw)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		v, err := strconv.ParseFloat(l[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		name := map[string]string{"A": "section A: the client moves", "B": "section B: the server moves"}[l[1]]
		out[fmt.Sprintf("p1|Figures 2 and 3||%s|%s|%g|%g", name, l[0], v, v)]++
	}
	return out
}

// axes are what stands on the papers' axes, and what metric of ours lies over it:
// by hand from the papers, so that a wrong unit in the declaration is found.
var axes = map[string]struct{ x, y string }{
	"p1 Figures 2 and 3":                 {"velocity, m/s", "transferred in 10 s, MB"},
	"p2 Figure 9":                        {"TCP connections", "packet loss rate, %"},
	"p2 Figure 10":                       {"TCP connections", "average end-to-end delay, ms"},
	"p2 Figure 11":                       {"TCP connections", "throughput to a destination, kbit/s"},
	"p3 connect time":                    {"", "connect time, s"},
	"p3 throughput":                      {"", "throughput, kbit/s"},
	"p3 goodput":                         {"", "goodput"},
	"p3 routing packets at IP":           {"", "routing packets, packets/s"},
	"p3 routing data at IP":              {"", "routing data, kbit/s"},
	"p3 routing at MAC":                  {"", "routing frames at MAC, frames/s"},
	"p3 Figure 16":                       {"TCP connections", "CBR packet latency, s"},
	"p3 Figure 17":                       {"TCP connections", "CBR packets delivered"},
	"p3 Reno":                            {"TCP connections", "throughput, kbit/s"},
	"p3 SACK":                            {"TCP connections", "throughput, kbit/s"},
	"p3 SACK + delayed ACKs":             {"TCP connections", "throughput, kbit/s"},
	"p3 SACK + delayed ACKs + fixed RTO": {"TCP connections", "throughput, kbit/s"},
	"p4 Figure 3":                        {"mobility speed, m/s", "throughput, bit/s"},
	"p4 Figure 4":                        {"mobility speed, m/s", "throughput, bit/s"},
	"p4 Figure 5, plot 1":                {"advertised window, packets", "throughput, bit/s"},
	"p4 Figure 5, plot 2":                {"mobility speed, m/s", "throughput, bit/s"},
	"p4 Figure 5, plot 3":                {"buffer of each node, packets", "throughput, bit/s"},
	"p4 Figure 5, plot 4":                {"average length of the way, hops", "throughput, bit/s"},
	"p5 Figure 1":                        {"nodes", "throughput, kbit/s"},
	"p5 Figure 2":                        {"nodes", "throughput, kbit/s"},
	"p5 Figure 3":                        {"connections", "throughput, kbit/s"},
	"p5 Figure 4":                        {"connections", "throughput, kbit/s"},
	"p5 Figure 5":                        {"connections", "throughput, kbit/s"},
	"p5 Figure 6":                        {"connections", "throughput, kbit/s"},
}

// Every figure that a campaign feeds is drawn with the paper's axes; its signs
// stand where the axes' ticks say that their values are; its published marks are
// those of the data file, in another sign; and its CSV has the same numbers.
func TestThePapersFiguresAreDrawnTrue(t *testing.T) {
	published, seen := publishedPoints(t), map[string]bool{}
	for campaign, want := range map[string]int{"velocity": 1, "variants-random": 3, "fixed-rto": 17, "reference-tcp": 4,
		"reference-tcp-settings": 5, "six-variants": 6} {
		d := drivenOf(t, campaign, 3, nil)
		figures, err := drawPaper(d)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		for _, f := range figures {
			if len(f.panels) == 0 {
				if len(f.missing) == 0 || f.missing[0] == "" {
					t.Errorf("%s %s is not drawn, and nothing says why", f.Paper, f.Number)
				}
				continue
			}
			drawn++
			if f.Kind != papers.Sweep {
				continue
			}
			table := map[string]int{}
			raw, err := f.csv()
			if err != nil {
				t.Fatal(err)
			}
			lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines[1:] {
				table[strings.Join([]string{l[2], l[3], strings.TrimSuffix(l[4], ", all"), l[5], l[8], l[9]}, "|")]++
			}
			for _, p := range f.panels {
				svg := panelOf(t, string(p.Draw()))
				by, known := axes[f.Paper+" "+f.Number]
				if !known {
					by, known = axes[f.Paper+" "+p.Title]
				}
				if !known || svg.y != by.y || by.x != "" && svg.x != by.x {
					t.Errorf("%s %s, %s: axes %q and %q, want %+v", f.Paper, f.Number, p.Title, svg.x, svg.y, by)
				}
				if f.Paper == "p3" && f.Number < "Figure 5" && len(f.Number) == 8 && svg.x != "background traffic, "+
					"kbit/s" {
					t.Errorf("%s: x is %q", f.Number, svg.x)
				}
				panel := p.Title
				if len(f.Panels) == 1 {
					panel = f.Panels[0].Name
				}
				for _, m := range svg.marks {
					x := text(&m.x)
					if m.of == "band" {
						x = ""
					}
					of := map[string]string{"ours": "ours", "paper": "paper", "band": "paper"}[m.of]
					if key := strings.Join([]string{panel, m.series, of, x, text(m.low), text(m.high)},
						"|"); table[key] != 1 {
						t.Errorf("%s %s: %d lines of the CSV are %s", f.Paper, f.Number, table[key], key)
					}
					if m.of != "ours" {
						key := strings.Join([]string{f.Paper, f.Number, panel, m.series, x, text(m.low),
							text(m.high)}, "|")
						if published[key] != 1 {
							t.Errorf("the data file has %d lines %s", published[key], key)
						}
						seen[key] = true
					}
					if m.of == "band" {
						continue
					}
					if y := between(svg.yticks, m.y); math.Abs(y-m.atY) > 0.2 {
						t.Errorf("%s %s, %s: %s's %g stands at %.2f, by the ticks it is at %.2f", f.Paper,
							f.Number, p.Title,
							m.series, m.y, m.atY, y)
					}
					if at := between(svg.xticks, m.x); math.Abs(at-m.atX) > 12 {
						t.Errorf("%s %s, %s: x = %g stands at %.2f, by the ticks it is at %.2f", f.Paper,
							f.Number, p.Title,
							m.x, m.atX, at)
					}
					if m.cross != (m.of == "paper") || m.of == "ours" && m.n == 0 ||
						m.arrow != (m.of == "paper" && (m.low == nil || m.high == nil)) {
						t.Errorf("%s %s: %+v", f.Paper, f.Number, m)
					}
				}
				for _, c := range p.Curves {
					if n := strings.Count(strings.Join(svg.legend, "\n")+"\n", c.Name+"\n"); len(c.Ours) > 0 && n == 0 {
						t.Errorf("%s %s: the legend %q lacks %s", f.Paper, f.Number, svg.legend, c.Name)
					}
				}
			}
		}
		if drawn != want {
			t.Errorf("%s draws %d figures, want %d", campaign, drawn, want)
		}
	}
	for key := range published {
		if !seen[key] {
			t.Errorf("a published point is in no drawing: %s", key)
		}
	}
}

// The points are the means of the attempts' metrics in the paper's unit, and the
// bars their 95 % t intervals: counted again here from the attempts.
func TestThePapersPointsAreTheMetrics(t *testing.T) {
	type of struct {
		campaign, number, panel string
		// which gives series and x of a trial; "": it is none of the panel's.
		which func(wire.Trial) (string, float64)
		value func(evidence.Attempt) float64
		want  int // points
	}
	packet := func(a evidence.Attempt, name string) float64 {
		sum, flows := 0.0, a.Trial.Measured()
		for _, f := range flows {
			sum += *metrics.Value(a.Packets, f.Name, name) / float64(len(flows)) // all have sent alike
		}
		return sum
	}
	names := map[string]string{"newreno": "TCP NewReno", "reference": "R-TCP", "vegas1995": "Vegas", "adv": "ADV",
		"aodv-p3": "AODV", "dsr-ns2": "DSR", "tahoe": "Tahoe", "reno": "Reno", "westwood2001": "Westwood",
		"sack": "SACK", "fack": "FACK"}
	names2 := func(variant string) string {
		return map[string]string{"newreno": "NewReno"}[variant] +
			map[bool]string{true: names[variant]}[variant != "newreno"]
	}
	for _, k := range []of{
		{"variants-random", "Figure 9", "(b) DSR", func(w wire.Trial) (string, float64) {
			if w.Routing.Protocol != "dsr-ns2" {
				return "", 0
			}
			return names2(w.TCP.Variant), float64(len(w.Traffic))
		}, func(a evidence.Attempt) float64 { return packet(a, metrics.PacketLossPercent) }, 25},
		{"variants-random", "Figure 11", "(c) AODV", func(w wire.Trial) (string, float64) {
			if w.Routing.Protocol != "aodv-ns2" {
				return "", 0
			}
			return names2(w.TCP.Variant), float64(len(w.Traffic))
		}, func(a evidence.Attempt) float64 { return *a.Mbps * 1000 / float64(len(a.Trial.Traffic)) }, 25},
		{"fixed-rto", "Figure 12", "routing data at IP", func(w wire.Trial) (string, float64) {
			if w.Factors["tcp"] != "reno" || !strings.HasSuffix(w.Factors["load"], "_cbr10_100") {
				return "", 0
			}
			return names[w.Routing.Protocol], float64(len(w.Measured()))
		}, func(a evidence.Attempt) float64 {
			return *metrics.Value(a.Packets, "", metrics.RoutingBytesPS) * 8 / 1000
		}, 12},
		{"fixed-rto", "Figure 4", "connect time", func(w wire.Trial) (string, float64) {
			load, _ := strings.CutPrefix(w.Factors["load"], "tcp1_cbr40_")
			x, err := strconv.ParseFloat(load, 64)
			if w.Factors["tcp"] != "fixed_rto" || err != nil {
				return "", 0
			}
			return names[w.Routing.Protocol], x
		}, func(a evidence.Attempt) float64 { return packet(a, metrics.ConnectTimeMs) / 1000 }, 12},
		{"reference-tcp", "Figure 3", "mobility only", func(w wire.Trial) (string, float64) {
			x, err := strconv.ParseFloat(w.Factors["node_speed"], 64)
			if w.Factors["congestion"] != "none" || w.Factors["error"] != "0" || err != nil {
				return "", 0
			}
			return names[w.TCP.Variant], x
		}, func(a evidence.Attempt) float64 { return *a.Mbps * 1e6 }, 14},
		{"reference-tcp-settings", "Figure 5, plot 1", "", func(w wire.Trial) (string, float64) {
			window, of := strings.CutPrefix(w.Factors["setting"], "window_")
			if w.Factors["setting"] == "default" {
				window, of = "8", true
			}
			x, err := strconv.ParseFloat(window, 64)
			if !of || err != nil {
				return "", 0
			}
			return names[w.TCP.Variant], x
		}, func(a evidence.Attempt) float64 { return *a.Mbps * 1e6 }, 12},
		{"six-variants", "Figure 6", "", func(w wire.Trial) (string, float64) {
			if w.Factors["nodes"] != "n200" || w.Factors["mobility"] != "high" {
				return "", 0
			}
			return names2(w.TCP.Variant), float64(len(w.Traffic))
		}, func(a evidence.Attempt) float64 { return *a.Mbps * 1000 }, 30},
		{"velocity", "Figures 2 and 3", "", func(w wire.Trial) (string, float64) {
			return map[string]string{"A": "section A: the client moves",
				"B": "section B: the server moves"}[w.Factors["section"]], *w.SpeedMps
		}, megabytes, 12},
	} {
		d := drivenOf(t, k.campaign, 3, nil)
		figures, err := drawPaper(d)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]float64{}
		for _, a := range d.Attempts {
			if series, x := k.which(a.Trial); series != "" {
				key := fmt.Sprintf("%s %g", series, x)
				want[key] = append(want[key], k.value(a))
			}
		}
		got := points(t, figures, k.number, k.panel)
		if len(got) != len(want) || len(got) != k.want {
			t.Errorf("%s %s: %d points, want %d of %d", k.campaign, k.number, len(got), len(want), k.want)
		}
		for key, values := range want {
			m, mean := got[key], 0.0
			for _, v := range values {
				mean += v / float64(len(values))
			}
			near := func(v *float64, to float64) bool { return v != nil && math.Abs(*v-to) < 1e-9*max(1, math.Abs(to)) }
			half := stats.HalfWidth(0.95, values)
			if m.n != len(values) || !near(&m.y, mean) || (half == nil) != (m.low == nil) ||
				half != nil && (!near(m.low, mean-*half) || !near(m.high, mean+*half)) {
				t.Errorf("%s %s, %s: %+v, want %g of %d", k.campaign, k.number, key, m, mean, len(values))
			}
		}
	}
}

// The traces of two transports lie over each other in one panel, over the time
// since the first flow began.
func TestTracesLieOverEachOther(t *testing.T) {
	for campaign, want := range map[string]map[string]string{
		"fixed-rto": {"Figure 5": "time, s (TCP begins at 100 s) congestion window, segments",
			"Figure 7": "time, s (TCP begins at 100 s) congestion window, segments"},
		"reference-tcp": {"Figure 2": "time, s acknowledged, packets"},
	} {
		d := drivenOf(t, campaign, 1, nil)
		figures, err := drawPaper(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range figures {
			if want[f.Number] == "" {
				continue
			}
			if len(f.panels) != len(f.Panels) {
				t.Fatalf("%s has %d panels: %q", f.Number, len(f.panels), f.missing)
			}
			svg := string(f.panels[0].Draw())
			p := panelOf(t, svg)
			if p.x+" "+p.y != want[f.Number] || strings.Count(svg, `class="path"`) != 2 || len(p.legend) != 2 {
				t.Errorf("%s: %q over %q, %d paths, legend %q", f.Number, p.y, p.x, strings.Count(svg, `class="path"`),
					p.legend)
			}
			last := 0.0
			for _, r := range f.rows {
				last = max(last, r.x)
			}
			if length := d.Attempts[0].Trial.WarmupS() + d.Attempts[0].Trial.DurationS; math.Abs(last-length) > 2 {
				t.Errorf("%s ends at %g s, want %g", f.Number, last, length)
			}
			if f.Number == "Figure 2" { // packets of 1460 bytes
				packets, compared := map[string]float64{}, false
				for _, r := range f.rows {
					if r.what == papers.AckedPackets && r.panel == f.Panels[1].Name {
						packets[r.series] = r.y
					}
				}
				for _, a := range d.Attempts {
					w := a.Trial.Factors
					if w["node_speed"] == "5" && w["congestion"] == "none" && w["error"] == "0" &&
						a.Trial.TCP.Variant == "newreno" {
						compared = true
						if acked := megabytes(a) * 1e6 / 1460; math.Abs(packets["TCP NewReno"]-acked) > acked/100 {
							t.Errorf("%g packets at the end, want %g", packets["TCP NewReno"], acked)
						}
					}
				}
				if !compared {
					t.Error("no attempt is the one that the panel draws")
				}
			}
		}
	}
}

// The section says which figures there are and why others are not; of ADV that its
// constants are ours; and each figure is a file that stands by itself.
func TestTheSectionOfThePapersFigures(t *testing.T) {
	d := drivenOf(t, "fixed-rto", 1, func(w wire.Trial) bool { return w.Factors["load"] != "tcp1_cbr10_50" })
	html := page1(t, d)
	says(t, html, "<b>Figure 1.</b>", "<b>Figure 7.</b>", "ADV's constants are ours", "One accepted trial a point, "+
		"too few",
		"<b>Figure 3</b>, 1 TCP Reno connection, 40 CBR flows: connect time; throughput; "+
			"routing packets at IP; routing data at IP; routing at MAC: no accepted trial has 40 background flows",
		"time that it takes to deliver the first TCP packet", "It simulated its networks, in ns-2.",
		"its radio and movement are emulated")
	for _, word := range []string{"No accepted trial has a GPS", "Throughput against speed and distance",
		"driven in a car", "<b>Figure 3.</b>"} {
		if strings.Contains(html, word) {
			t.Errorf("the page says %q", word)
		}
	}
	files, err := figureFiles(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 || files[0].Name != "p3-figure-1" {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		dec := xml.NewDecoder(bytes.NewReader(f.SVG))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		if !bytes.HasPrefix(f.SVG, []byte(`<svg xmlns="http://www.w3.org/2000/svg"`)) || bytes.Contains(f.SVG,
			[]byte("var(--")) || !bytes.HasPrefix(f.CSV, []byte("paper,figure,panel,series,of,x,x_unit,y")) {
			t.Errorf("%s: %.200s %.100s", f.Name, f.SVG, f.CSV)
		}
	}
	d.Attempts[0].Packets = slices.DeleteFunc(d.Attempts[0].Packets, func(r metrics.Row) bool {
		return r.Name == metrics.RoutingPacketsPS
	})
	d.Attempts[0].Traces = nil
	if html := page1(t, d); strings.Count(html, "1 accepted trial without routing packets is in no point.") != 1 {
		t.Error("it does not say what is in no point")
	}
	d = drivenOf(t, "six-variants", 1, nil)
	if html := page1(t, d); strings.Contains(html, "ADV's constants") {
		t.Error("ADV is warned of in a run without it")
	}
}

// The units of the values that figures are drawn from are those of the metrics.
func TestFiguresUnitsAreTheMetrics(t *testing.T) {
	units := map[string]string{papers.TransferredIn10S: "MB", papers.HopsMean: "hops", papers.Cwnd: "segments",
		papers.AckedPackets: "packets", metrics.RTTMeanMs: "ms"} // of no metric of the papers' own
	for _, m := range metrics.PaperMetrics() {
		m = answers.InPapersUnit(m)
		units[m.Name] = m.Unit
	}
	for name, unit := range papers.ValueUnits {
		if units[name] != unit {
			t.Errorf("%s is in %q, by its metric in %q", name, unit, units[name])
		}
	}
	// Each paper's measure is of a metric that is listed as the paper's.
	for _, id := range papers.IDs() {
		for _, m := range papers.Measures(id) {
			for _, of := range metrics.PaperMetrics() {
				if answers.InPapersUnit(of).Name == m.Value && !slices.Contains(of.Papers, strings.ToUpper(id)) {
					t.Errorf("%s measures %s by %s, which is not listed as its", id, m.Name, m.Value)
				}
			}
		}
	}
}
