package papers

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func numbers(paper string) []string {
	var out []string
	for _, f := range Figures(paper) {
		out = append(out, f.Number)
	}
	return out
}

// Every figure and table of the five papers is declared, in the papers' order.
func TestEveryFigureIsDeclared(t *testing.T) {
	counted := func(from, to int, before ...string) []string {
		out := before
		for i := from; i <= to; i++ {
			out = append(out, "Figure "+strconv.Itoa(i))
		}
		return out
	}
	for paper, want := range map[string][]string{
		"p1": {"Table 1", "Table of results", "Figure 1", "Figures 2 and 3"},
		"p2": counted(9, 11, "Figures 1 to 3 (section 2)", "Figures 1 to 3 (section 3)", "Figures 4 to 8", "Table 1",
			"Table 2", "Table 3", "Table 4", "Table 5", "Table 6"),
		"p3": counted(1, 17),
		"p4": append(counted(1, 4), "Figure 5, plot 1", "Figure 5, plot 2", "Figure 5, plot 3", "Figure 5, plot 4"),
		"p5": counted(1, 6),
	} {
		if got := numbers(paper); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", paper, got, want)
		}
	}
}

// What a figure is declared with exists: its measures, with a way from our units
// to the paper's; its facts; and, for kinds that are drawn, axes with units.
func TestFiguresAreDeclaredWhole(t *testing.T) {
	facts := Facts(wire.Trial{TCP: wire.TCP{WindowPackets: new(8)}, Car: "a", Sender: "a", SpeedMps: new(5.0),
		Factors: map[string]string{"mobility": "low"}, Acceptance: wire.Acceptance{HopsMin: new(6)},
		Conditions: &wire.Conditions{SpeedMaxMps: new(5.0), QueueFrames: new(5), WidthM: new(400.0),
			HeightM: new(800.0)}})
	exists := func(f Figure, c Condition) {
		for fact := range c {
			if _, known := facts[fact]; !known {
				t.Errorf("%s %s: no trial has a fact %q", f.Paper, f.Number, fact)
			}
		}
	}
	for _, paper := range IDs() {
		for _, f := range Figures(paper) {
			exists(f, f.Where)
			for _, l := range f.Series {
				exists(f, l.Where)
			}
			if drawn := f.Kind == Sweep || f.Kind == Traces; drawn != (len(f.Panels) > 0) ||
				drawn && (f.X.Label == "" || f.X.Unit == "" || f.Axes == "") {
				t.Errorf("%s %s is of kind %s and has %d panels over %q in %q (%q)", f.Paper, f.Number, f.Kind,
					len(f.Panels), f.X.Label, f.X.Unit, f.Axes)
			}
			for _, p := range f.Panels {
				exists(f, p.Where)
				if _, ok := MeasureOf(f.Paper, p.Measure); !ok {
					t.Errorf("%s %s: the paper measures no %q", f.Paper, f.Number, p.Measure)
				}
			}
			if f.Kind == Sweep {
				if (f.X.Fact == "") == (f.X.Value == "") || len(f.X.Along) == 0 {
					t.Errorf("%s %s: axis %+v", f.Paper, f.Number, f.X)
				}
				for _, fact := range append(f.X.Along, f.X.Fact) {
					if _, known := facts[fact]; !known && fact != "" {
						t.Errorf("%s %s: no trial has the fact %q of its axis", f.Paper, f.Number, fact)
					}
				}
			}
			if f.X.Value != "" && ValueUnits[f.X.Value] != f.X.Unit {
				t.Errorf("%s %s: its axis is in %s, and %s in %s", f.Paper, f.Number, f.X.Unit, f.X.Value,
					ValueUnits[f.X.Value])
			}
		}
		for _, m := range Measures(paper) {
			if _, ok := m.Factor(); !ok || m.ByPaper == "" || m.Together == "" {
				t.Errorf("%s: no way from %s in %q to %q, or no definition: %+v", paper, m.Value, ValueUnits[m.Value],
					m.Unit, m)
			}
		}
	}
}

// Every published point is of a figure's series and panel.
func TestEveryPublishedPointIsOfAFigure(t *testing.T) {
	for _, k := range read(t).Points {
		found := false
		for _, f := range Figures(k.paper) {
			for _, p := range f.Panels {
				found = found || f.Number == k.figure && p.Name == k.panel && (k.x == nil && k.series == "" ||
					k.x != nil && slices.ContainsFunc(f.Series, func(l Line) bool { return l.Name == k.series }))
			}
		}
		if !found || k.printed == "" || k.source == "" {
			t.Errorf("%s %s, panel %q, series %q: there is none, or nothing says what was printed where", k.paper,
				k.figure, k.panel, k.series)
		}
	}
}

// figureOf finds a declaration.
func figureOf(t *testing.T, paper, number string) Figure {
	t.Helper()
	for _, f := range Figures(paper) {
		if f.Number == number {
			return f
		}
	}
	t.Fatalf("%s has no %s", paper, number)
	return Figure{}
}

// p4 is a trial of P4's scenario.
func p4(variant, speed string, repetition int, kbits float64, facts ...string) Trial {
	out := Trial{Repetition: repetition, Factors: map[string]string{"case": "speed_" + speed, "variant": variant},
		Facts: map[string]string{"variant": variant, "tcp": variant, "routing": "dsr", "window_packets": "8",
			"speed_max_mps": speed, "motion": "mobile", "channel_error": "0", "cbr_flows": "0", "nodes": "30",
			"ends": "s to r"},
		Values: map[string]float64{ThroughputKbitS: kbits}}
	for _, f := range facts {
		k, v, _ := strings.Cut(f, "=")
		out.Facts[k] = v
	}
	return out
}

// NewReno's throughput is set beside the reference's of the trial that is alike in
// all else.
func TestTheReferenceRatio(t *testing.T) {
	all := []Trial{p4("newreno", "10", 1, 10), p4("newreno", "20", 1, 10), p4("reference", "10", 1, 40),
		p4("newreno", "10", 2, 30)}
	WithReferenceRatio(all)
	for i, want := range []float64{0.25, 0, 0, 0} { // 0: it has none
		if got, gap := all[i].Values["reference_ratio"], all[i].Values["reference_gap_kbit_s"]; got != want ||
			gap != 120*want {
			t.Errorf("trial %d: ratio %g and gap %g, want %g and %g", i+1, got, gap, want, 120*want)
		}
	}
}

// A sweep's points are the means of its cells in the paper's unit, with interval
// and n, and the published ones lie over them.
func TestASweepHasItsPoints(t *testing.T) {
	var all []Trial
	for i := range 3 {
		all = append(all, p4("newreno", "0", i+1, 90+float64(i), "motion=static"), p4("newreno", "10", i+1, 10),
			p4("reference", "10", i+1, 40), p4("newreno", "10", i+1, 7, "channel_error=0.1"))
	}
	got := read(t).Plotted(figureOf(t, "p4", "Figure 3"), all, interval)
	if len(got.Plots) != 1 || len(got.Missing) != 2 || !strings.Contains(got.Missing[0], "mobility + congestion: no "+
		"accepted trial has 2 background flows") {
		t.Fatalf("%d plots, missing %q", len(got.Plots), got.Missing)
	}
	p := got.Plots[0]
	reno := p.Curves[0]
	if p.Measure.Unit != "bit/s" || reno.Name != "TCP NewReno" || len(reno.Ours) != 2 || len(reno.Theirs) != 2 {
		t.Fatalf("%+v", p)
	}
	if m := reno.Ours[0]; m.X != 0 || m.Y != 91_000 || m.N != 3 || *m.Low != 90_999 || *m.High != 91_001 {
		t.Errorf("standing: %+v", m)
	}
	if m := reno.Theirs[0]; m.X != 0 || m.Y != 95_000 || *m.Low != 95_000 || m.Source == "" {
		t.Errorf("published: %+v", m)
	}
	if m := p.Curves[1].Ours; len(m) != 1 || m[0].X != 10 || m[0].Y != 40_000 {
		t.Errorf("reference: %+v", m)
	}
	high := read(t).Plotted(figureOf(t, "p4", "Figure 4"), all, interval)
	if len(high.Plots) != 1 || high.Plots[0].Name != "mobility + channel error 10 %" ||
		high.Plots[0].Curves[0].Ours[0].Y != 7000 {
		t.Errorf("%+v", high.Plots)
	}
}

// Trials that differ in what a figure does not vary are no points of one curve.
func TestACurveIsOfTrialsThatAreAlike(t *testing.T) {
	figure := figureOf(t, "p4", "Figure 3")
	for name, k := range map[string]struct {
		change func(*Trial)
		reason string
	}{
		"a fact along the curve": {func(t *Trial) { t.Facts["nodes"] = "50" }, "TCP NewReno: its trials differ in " +
			"nodes (30, 50)"},
		"a fact that some lack": {func(t *Trial) { delete(t.Facts, "nodes") }, "its trials differ in nodes (, 30)"},
		"a factor in a point": {func(t *Trial) { t.Factors["feedback"] = "off" },
			"the trials of a point differ in the factor"},
	} {
		all := []Trial{p4("newreno", "5", 1, 10), p4("newreno", "5", 2, 12), p4("newreno", "10", 1, 9)}
		for _, one := range all {
			one.Factors["feedback"] = "on"
		}
		if got := read(t).Plotted(figure, all, interval); len(got.Plots) != 1 {
			t.Fatalf("%q", got.Missing)
		}
		k.change(&all[1])
		got := read(t).Plotted(figure, all, interval)
		if len(got.Plots) != 0 || !strings.Contains(got.Missing[0], k.reason) {
			t.Errorf("%s: %d plots, %q", name, len(got.Plots), got.Missing)
		}
	}
	two := []Trial{p4("newreno", "5", 1, 10), p4("reference", "5", 1, 12, "nodes=50")}
	if got := read(t).Plotted(figure, two, interval); len(got.Plots) != 0 ||
		!strings.Contains(got.Missing[0], "mobility only: its trials differ in nodes (30, 50)") {
		t.Errorf("two curves of other nodes: %q", got.Missing)
	}
	// Another queue or field is another cell, whether its own is said or not.
	for _, other := range []string{"queue_frames=5", "field_m=400x1700"} {
		all := []Trial{p4("newreno", "5", 1, 10), p4("newreno", "5", 2, 50, other)}
		got := read(t).Plotted(figure, all, interval)
		if len(got.Plots) != 1 || got.Plots[0].Curves[0].Ours[0].Y != 10_000 {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// The length of the way is what was measured, and a point's is that of its cell.
func TestTheLengthOfTheWayIsMeasured(t *testing.T) {
	var all []Trial
	for i := range 3 {
		for _, nodes := range []int{30, 60} {
			k := p4("newreno", "5", i+1, float64(nodes), "channel_error=0.01", "cbr_flows=2",
				"nodes="+strconv.Itoa(nodes))
			k.Values[HopsMean] = float64(nodes)/10 + float64(i)
			k.Factors["case"] = strconv.Itoa(nodes)
			all = append(all, k)
		}
	}
	got := read(t).Plotted(figureOf(t, "p4", "Figure 5, plot 4"), all, interval)
	if len(got.Plots) != 1 {
		t.Fatalf("%q", got.Missing)
	}
	m := got.Plots[0].Curves[0].Ours
	if got.Plots[0].Off != 0 || len(m) != 2 || m[0].X != 4 || m[0].Y != 30_000 ||
		m[1].X != 7 || m[1].Y != 60_000 || m[1].N != 3 {
		t.Errorf("%+v", m)
	}
	delete(all[0].Values, HopsMean) // it is in no point, and is counted
	got = read(t).Plotted(figureOf(t, "p4", "Figure 5, plot 4"), all, interval)
	if p := got.Plots[0]; p.Off != 1 || p.Without != 0 || p.Curves[0].Ours[0].N != 2 {
		t.Errorf("%+v", p)
	}
}

// A time that some had not come to is a bound and has no interval.
func TestATimeThatHadNotEndedIsABound(t *testing.T) {
	trial := func(repetition int, ms float64, censored bool) Trial {
		out := Trial{Repetition: repetition, Facts: map[string]string{"tcp": "reno", "routing": "dsr", "tcp_flows": "1",
			"cbr_flows": "10", "cbr_kbit_s": "50"}, Values: map[string]float64{}, Times: map[string][]stats.Duration{
			"connect_time_ms": {{Value: ms, Censored: censored}}}, Connections: 1}
		if !censored {
			out.Values["connect_time_ms"] = ms
		}
		return out
	}
	figure := figureOf(t, "p3", "Figure 1")
	for last, bound := range map[bool]bool{false: false, true: true} {
		all := []Trial{trial(1, 1000, false), trial(2, 2000, false), trial(3, 30_000, last)}
		got := read(t).Plotted(figure, all, interval)
		if len(got.Plots) != 1 || len(got.Missing) != 4 {
			t.Fatalf("%d plots, %q", len(got.Plots), got.Missing)
		}
		dsr := got.Plots[0].Curves[2]
		if m := dsr.Ours[0]; m.AtLeast != bound || m.Y != 11 || (m.Low == nil) != bound || m.X != 50 {
			t.Errorf("%+v", m)
		}
		if m := dsr.Theirs[0]; m.Y != 30 || m.High != nil || m.Printed != "over 30 s" {
			t.Errorf("published: %+v", m)
		}
	}
}

// A trial is in the point of a mean time only where something is known of each of its
// connections: the mean of the others, and a bound by them, is of other connections.
func TestATimeThatIsUnknownOfAConnectionIsNoPoint(t *testing.T) {
	figure := figureOf(t, "p3", "Figure 12")
	known, open := stats.Duration{Value: 100}, stats.Duration{Value: 9000, Censored: true}
	for name, k := range map[string]struct {
		times []stats.Duration
		want  *Mark
	}{
		"both known":               {[]stats.Duration{known, {Value: 300}}, &Mark{Y: 0.2}},
		"one open":                 {[]stats.Duration{known, open}, &Mark{Y: 4.55, AtLeast: true}},
		"one unknown":              {[]stats.Duration{known}, nil},
		"one open and one unknown": {[]stats.Duration{open}, nil},
	} {
		trial := Trial{Repetition: 1, Facts: map[string]string{"tcp": "reno", "routing": "dsr", "tcp_flows": "2",
			"cbr_flows": "10", "cbr_kbit_s": "100"}, Values: map[string]float64{ThroughputKbitS: 300},
			Times: map[string][]stats.Duration{"connect_time_ms": k.times}, Connections: 2}
		got := read(t).Plotted(figure, []Trial{trial}, interval)
		var mark *Mark
		for _, p := range got.Plots {
			if p.Name == "connect time" {
				mark = &p.Curves[2].Ours[0]
			}
		}
		if (mark == nil) != (k.want == nil) || mark != nil && (math.Abs(mark.Y-k.want.Y) > 1e-9 ||
			mark.AtLeast != k.want.AtLeast) {
			t.Errorf("%s: %+v, want %+v; %q", name, mark, k.want, got.Missing)
		}
	}
}

// Of P1 the published points are its table's, at the table's speeds.
func TestP1sPointsAreItsTables(t *testing.T) {
	all := []Trial{{Repetition: 1, Facts: map[string]string{"speed_mps": "2.8", "moving": "server"},
		Values: map[string]float64{TransferredIn10S: 20}}}
	p := read(t)
	got := p.Plotted(figureOf(t, "p1", "Figures 2 and 3"), all, interval)
	if len(got.Plots) != 1 || len(got.Plots[0].Curves) != 2 {
		t.Fatalf("%q", got.Missing)
	}
	for i, section := range []string{"A", "B"} {
		theirs := got.Plots[0].Curves[i].Theirs
		if len(theirs) != len(p.Velocity[section]) || len(theirs) != 6 {
			t.Errorf("section %s has %d points", section, len(theirs))
		}
		for _, m := range theirs {
			if v, err := strconv.ParseFloat(p.Velocity[section][m.X], 64); err != nil || v != m.Y {
				t.Errorf("section %s at %g m/s: %g, printed %q", section, m.X, m.Y, p.Velocity[section][m.X])
			}
		}
	}
	if m := got.Plots[0].Curves[1].Ours; len(m) != 1 || m[0].Y != 20 || m[0].Low != nil {
		t.Errorf("%+v", m)
	}
}

// Traces that are laid over each other are of one repetition and alike; P3's are
// of the one in which Reno carried the least.
func TestTracesThatAreLaidOverEachOther(t *testing.T) {
	trial := func(repetition int, tcp, kbits string, carried float64) Trial {
		return Trial{Repetition: repetition, Facts: map[string]string{"tcp": tcp, "variant": "reno", "routing": "dsr",
			"tcp_flows": "1", "cbr_kbit_s": kbits}, Values: map[string]float64{ThroughputKbitS: carried}}
	}
	all := []Trial{trial(1, plainReno, "50", 100), trial(2, fixedRTO, "50", 80), trial(1, fixedRTO, "50", 120),
		trial(2, plainReno, "50", 60), trial(3, plainReno, "50", 5), trial(3, fixedRTO, "100", 5)}
	f := figureOf(t, "p3", "Figure 7")
	if got, reason := f.Overlay(f.Panels[0], all); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("%v: %s", got, reason)
	}
	f.Least = false
	if got, _ := f.Overlay(f.Panels[0], all); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("%v", got)
	}
	apart := slices.Clone(all[:4])
	for i := range apart {
		apart[i].Factors = map[string]string{"payload": []string{"512", "1460", "1460", "1460"}[i]}
	}
	if got, reason := f.Overlay(f.Panels[0], apart); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("of two payloads: %v: %s", got, reason)
	}
	if got, reason := f.Overlay(f.Panels[0], all[4:]); got != nil || !strings.Contains(reason, "no repetition has") {
		t.Errorf("%v: %s", got, reason)
	}
	adv := figureOf(t, "p3", "Figure 5")
	if got, reason := adv.Overlay(adv.Panels[0], all); got != nil || !strings.Contains(reason,
		"no accepted trial has adv, 1 TCP connection") {
		t.Errorf("%v: %s", got, reason)
	}
}

// A published point's numbers are those of the words that were printed, in the
// figure's unit.
func TestPublishedPointsAreWhatWasPrinted(t *testing.T) {
	numbers := regexp.MustCompile(`\d+(\.\d+)?`)
	for _, k := range read(t).Points {
		unit := ""
		for _, f := range Figures(k.paper) {
			for _, p := range f.Panels {
				if f.Number == k.figure && p.Name == k.panel {
					m, _ := MeasureOf(k.paper, p.Measure)
					unit = m.Unit
				}
			}
		}
		scale := 1.0
		switch {
		case unit == "bit/s" && strings.Contains(k.printed, "kbit/s"):
			scale = 1000
		case unit == "1" && strings.Contains(k.printed, "%"):
			scale = 0.01
		case !strings.Contains(k.printed, " "+unit):
			t.Errorf("%s %s: %q has no unit that %q can be had from", k.paper, k.figure, k.printed, unit)
		}
		var want, got []float64
		for _, n := range numbers.FindAllString(k.printed, -1) {
			v, err := strconv.ParseFloat(n, 64)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, v*scale)
		}
		if k.low != nil {
			got = append(got, *k.low)
		}
		if k.high != nil && (k.low == nil || *k.low != *k.high) {
			got = append(got, *k.high)
		}
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s %s, %s: %v, printed %q", k.paper, k.figure, k.series, got, k.printed)
		}
	}
}

// A flow of several streams has one time: it counts as its connections do in Times.
func TestACensoredTimeOfSeveralStreamsIsABound(t *testing.T) {
	one := Trial{Facts: map[string]string{"tcp_flows": "2"}, Connections: 1,
		Times: map[string][]stats.Duration{"connect_time_ms": {{Value: 1e5, Censored: true}}}}
	if v, atLeast, known := one.figureValue("connect_time_ms"); !known || !atLeast || v != 1e5 {
		t.Errorf("%g, bound %v, known %v", v, atLeast, known)
	}
}

// The reference of a trial is that of its own level of every other factor, also of one
// that no paper varies.
func TestTheReferenceIsOfTheSameFactors(t *testing.T) {
	one := func(variant, payload string, kbitS float64) Trial {
		return Trial{Repetition: 1, Facts: map[string]string{"variant": variant},
			Factors: map[string]string{"variant": variant, "payload": payload},
			Values:  map[string]float64{ThroughputKbitS: kbitS}}
	}
	all := []Trial{one("reference", "512", 100), one("newreno", "512", 50), one("reference", "1460", 200),
		one("newreno", "1460", 100), one("newreno", "64", 100)}
	WithReferenceRatio(all)
	for _, i := range []int{1, 3} {
		if v := all[i].Values; v[referenceRatio] != 0.5 || v[referenceGap] != v[ThroughputKbitS] {
			t.Errorf("trial %d: %v, want the ratio 0.5", i+1, v)
		}
	}
	if v, known := all[4].Values[referenceRatio]; known {
		t.Errorf("without a reference of its own: %g", v)
	}
}
