package papers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Mark is one point of a figure, in the units of its axes.
type Mark struct {
	X         float64
	Y         float64  // of ours the mean
	Low, High *float64 // the interval; of a published mark its range, open where nil
	N         int      // trials
	AtLeast   bool     // Y is only known to be more: a time among them had not ended
	Printed   string   // of a published mark: the paper's words
	Source    string   // and where they stand
}

// Curve is one series of a panel.
type Curve struct {
	Line
	Ours, Theirs []Mark
}

// Plot is a panel with its points.
type Plot struct {
	Panel
	Measure Measure
	Curves  []Curve
	Band    *Mark // what the paper says of all its points: from Low to High
	Without int   // trials of its series that have no such value, and are in no point
	Off     int   // those that have one, and no known place on the axis
}

// Drawing is a figure with the plots that a run feeds, and why it feeds the
// others not.
type Drawing struct {
	Figure
	Plots   []Plot
	Missing []string
}

// Undrawn are a figure's panels that are not drawn, by the reason.
type Undrawn struct {
	reasons []string
	panels  map[string][]string
}

// Add adds a panel. Panels of several measures may have one name.
func (u *Undrawn) Add(panel, reason string) {
	if u.panels == nil {
		u.panels = map[string][]string{}
	}
	if u.panels[reason] == nil {
		u.reasons = append(u.reasons, reason)
	}
	if !slices.Contains(u.panels[reason], panel) {
		u.panels[reason] = append(u.panels[reason], panel)
	}
}

// Told are the reasons, each once with its panels.
func (u *Undrawn) Told() (out []string) {
	for _, reason := range u.reasons {
		out = append(out, strings.TrimPrefix(strings.Join(u.panels[reason], "; ")+": "+reason, ": "))
	}
	return out
}

// published is one line of figures.csv: what a paper's text says of a point of one
// of its figures.
type published struct {
	paper, figure, panel, series string
	x, low, high                 *float64
	printed, source              string
}

func (p *Published) point(l []string) error {
	out := published{paper: l[0], figure: l[1], panel: l[2], series: l[3], printed: l[7], source: l[8]}
	for _, n := range []struct {
		text string
		into **float64
	}{{l[4], &out.x}, {l[5], &out.low}, {l[6], &out.high}} {
		v, err := bound(n.text)
		if err != nil {
			return err
		}
		*n.into = v
	}
	if out.low == nil && out.high == nil || out.low != nil && out.high != nil && *out.low > *out.high {
		return fmt.Errorf("%s, %s: low %q and high %q are no range", l[1], l[2], l[5], l[6])
	}
	if out.x == nil && (out.low == nil || out.high == nil) {
		return fmt.Errorf("%s, %s: a range of all points has low and high; got %q and %q", l[1], l[2], l[5], l[6])
	}
	p.Points = append(p.Points, out)
	return nil
}

// Plotted gives a figure its points. Trials with the same x of a series are one
// point; where they differ in more than their ends and their repetition, or a
// panel's trials in more than what it varies, the panel is not drawn.
func (p Published) Plotted(f Figure, trials []Trial, s Summariser) Drawing {
	out := Drawing{Figure: f}
	var without Undrawn
	for _, panel := range f.Panels {
		m, _ := MeasureOf(f.Paper, panel.Measure)
		plot := Plot{Panel: panel, Measure: m}
		reason := plot.feed(f, trials, s)
		if reason != "" {
			without.Add(panel.Name, reason)
			continue
		}
		p.overlay(f, &plot)
		out.Plots = append(out.Plots, plot)
	}
	out.Missing = without.Told()
	return out
}

// feed finds a plot's points among trials; it returns why it has none.
func (p *Plot) feed(f Figure, trials []Trial, s Summariser) string {
	factor, known := p.Measure.Factor()
	if !known {
		return fmt.Sprintf("there is no way from our unit of %s to %s", p.Measure.Value, p.Measure.Unit)
	}
	where := f.Where.and(p.Where)
	var there []Trial
	for _, t := range trials {
		if where.holds(t) {
			there = append(there, t)
		}
	}
	if len(there) == 0 {
		return "no accepted trial has " + where.String()
	}
	var all []Trial // of all series
	anySeries := f.varied(where)
	valued := false
	for _, line := range f.Series {
		points := map[string][]Trial{}
		var one []Trial
		for _, t := range there {
			if !line.Where.holds(t) {
				continue
			}
			one = append(one, t)
			if _, _, known := t.figureValue(p.Measure.Value); !known {
				p.Without++
				continue
			}
			valued = true
			points[f.X.place(t)] = append(points[f.X.place(t)], t)
		}
		if reason := mixed(f.varied(where), one); reason != "" {
			return line.Name + ": " + reason
		}
		maps.Copy(anySeries, line.Where)
		all = append(all, one...)
		c := Curve{Line: line}
		for _, at := range slices.Sorted(maps.Keys(points)) {
			if reason := alikeFactors(points[at]); reason != "" {
				return line.Name + ": " + reason
			}
			m, ok := f.X.mark(points[at], p.Measure.Value, factor, s)
			if ok {
				c.Ours = append(c.Ours, m)
			}
			p.Off += len(points[at]) - m.N
		}
		slices.SortFunc(c.Ours, func(a, b Mark) int { return cmp.Compare(a.X, b.X) })
		p.Curves = append(p.Curves, c)
	}
	if reason := mixed(anySeries, all); reason != "" {
		return reason
	}
	switch {
	case slices.ContainsFunc(p.Curves, func(c Curve) bool { return len(c.Ours) > 0 }):
		return ""
	case len(all) == 0:
		return "no accepted trial with " + where.String() + " is of one of its series"
	case !valued:
		return fmt.Sprintf("no accepted trial has %s (%s)", p.Measure.Label, p.Measure.Value)
	}
	return "no accepted trial has a place on its axis, " + f.X.Label
}

// and joins two conditions; the other's facts go before.
func (c Condition) and(other Condition) Condition {
	out := Condition{}
	maps.Copy(out, c)
	maps.Copy(out, other)
	return out
}

// place names the point of the axis that a trial belongs to.
func (x Axis) place(t Trial) string {
	var out []string
	for _, fact := range x.Along {
		out = append(out, t.Facts[fact])
	}
	return strings.Join(out, "\x00")
}

// mark is the point of some trials; there is none where they have no place on the
// axis.
func (x Axis) mark(trials []Trial, value string, factor float64, s Summariser) (Mark, bool) {
	var xs, ys []float64
	bound := false
	for _, t := range trials {
		if at, ok := x.of(t); ok {
			xs = append(xs, at)
			y, atLeast, _ := t.figureValue(value)
			ys, bound = append(ys, y*factor), bound || atLeast
		}
	}
	if len(xs) == 0 {
		return Mark{}, false
	}
	y := s.of(ys)
	if bound {
		y.Half = nil
	}
	at := s.of(xs).Mean
	if slices.Min(xs) == slices.Max(xs) {
		at = xs[0] // of which a sum's mean may be the next number
	}
	out := y.mark(at)
	out.AtLeast = bound
	return out, true
}

// mark is the point of a mean at a place of the axis.
func (v Interval) mark(x float64) Mark {
	out := Mark{X: x, Y: v.Mean, N: v.N}
	if v.Half != nil {
		out.Low, out.High = new(v.Mean-*v.Half), new(v.Mean+*v.Half)
	}
	return out
}

func (x Axis) of(t Trial) (float64, bool) {
	if x.Value != "" {
		v, known := t.Values[x.Value]
		return v, known
	}
	v, err := strconv.ParseFloat(t.Facts[x.Fact], 64)
	return v, err == nil
}

// figureValue is a trial's value. Of a time that some of its connections had not
// come to, it is the least that it can be. It is not known where nothing is known of
// one of them.
func (t Trial) figureValue(value string) (v float64, atLeast, known bool) {
	times := t.Times[value]
	if len(times) == 0 || len(times) != t.Connections {
		v, known = t.Values[value]
		return v, false, known
	}
	for _, d := range times {
		v += d.Value / float64(len(times))
	}
	return v, t.censored(value), true
}

// alikeFactors says in which factor of the campaign trials of one point differ.
func alikeFactors(trials []Trial) string {
	for _, factor := range unlike(trials) {
		first := trials[0].Factors[factor]
		other := slices.IndexFunc(trials, func(t Trial) bool { return t.Factors[factor] != first })
		return fmt.Sprintf("the trials of a point differ in the factor %s (%s and %s)", factor, first,
			trials[other].Factors[factor])
	}
	return ""
}

// mixed says in which fact trials differ that they must have in common: those of
// varied, and what is another view of one of them, they need not.
func mixed(varied Condition, trials []Trial) string {
	seen := map[string]map[string]bool{}
	for _, t := range trials {
		for fact := range t.Facts {
			seen[fact] = map[string]bool{}
		}
	}
	for fact, values := range seen {
		for _, t := range trials {
			values[t.Facts[fact]] = true
		}
	}
	compared := maps.Clone(varied)
	delete(compared, "ends") // they are drawn: what else differs does not differ by them
	for _, fact := range slices.Sorted(maps.Keys(seen)) {
		if varied[fact] == nil && len(seen[fact]) > 1 && !twoViews(fact, compared, nil) {
			return fmt.Sprintf("its trials differ in %s (%s), which it does not vary", fact,
				strings.Join(slices.Sorted(maps.Keys(seen[fact])), ", "))
		}
	}
	return ""
}

// varied are the facts that a curve's trials may differ in.
func (f Figure) varied(where Condition) Condition {
	out := Condition{"ends": {""}}
	for fact := range where {
		out[fact] = []string{""}
	}
	for _, fact := range f.X.Along {
		out[fact] = []string{""}
	}
	return out
}

// overlay adds what the paper printed of a plot's points.
func (p Published) overlay(f Figure, plot *Plot) {
	if f.Paper == "p1" {
		for i, section := range []string{"A", "B"} {
			for _, speed := range slices.Sorted(maps.Keys(p.Velocity[section])) {
				printed := p.Velocity[section][speed]
				v, err := strconv.ParseFloat(printed, 64)
				if err != nil {
					continue // Read has held them to be numbers
				}
				plot.Curves[i].Theirs = append(plot.Curves[i].Theirs, Mark{X: speed, Y: v, Low: &v, High: &v,
					Printed: printed + " MB", Source: "table of results"})
			}
		}
	}
	for _, k := range p.Points {
		if k.paper != f.Paper || k.figure != f.Number || k.panel != plot.Name {
			continue
		}
		m := Mark{Low: k.low, High: k.high, Printed: k.printed, Source: k.source}
		switch {
		case k.low != nil && k.high != nil:
			m.Y = (*k.low + *k.high) / 2
		case k.low != nil:
			m.Y = *k.low
		default:
			m.Y = *k.high
		}
		if k.x == nil {
			plot.Band = &m
			continue
		}
		m.X = *k.x
		for i := range plot.Curves {
			if plot.Curves[i].Name == k.series {
				plot.Curves[i].Theirs = append(plot.Curves[i].Theirs, m)
			}
		}
	}
}

// Overlay picks the trials whose traces a panel lays over each other, one a
// series: of one repetition, alike in all but the series. reason is why there
// are none.
func (f Figure) Overlay(p Panel, trials []Trial) (picked []int, reason string) {
	where := f.Where.and(p.Where)
	apart := Condition{}
	for _, l := range f.Series {
		maps.Copy(apart, l.Where)
	}
	var sides []func(Trial) bool
	for _, l := range f.Series {
		sides = append(sides, where.and(l.Where).holds)
	}
	open := openFactors(trials, sides...)
	groups := map[string][]int{}
	var order []string
	any := false
	for i, t := range trials {
		if !where.holds(t) {
			continue
		}
		any = true
		key := t.alike(apart, apart) + t.levels(open)
		for n, l := range f.Series {
			if !l.Where.holds(t) {
				continue
			}
			if groups[key] == nil {
				order = append(order, key)
				groups[key] = slices.Repeat([]int{-1}, len(f.Series))
			}
			if groups[key][n] < 0 {
				groups[key][n] = i
			}
		}
	}
	least := 0.0
	for _, key := range order {
		g := groups[key]
		if slices.Contains(g, -1) {
			continue
		}
		carried, known := trials[g[0]].Values[ThroughputKbitS]
		if f.Least && !known {
			continue
		}
		if picked == nil || f.Least && carried < least {
			picked, least = g, carried
		}
	}
	switch {
	case picked != nil:
		return picked, ""
	case !any:
		return nil, "no accepted trial has " + where.String()
	}
	names := make([]string, len(f.Series))
	for i, l := range f.Series {
		names[i] = l.Name
	}
	return nil, "no repetition has accepted trials of both " + strings.Join(names, " and ")
}
