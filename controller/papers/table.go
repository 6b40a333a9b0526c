package papers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// Table is one of P2's tables with ours beside it: one metric of one scenario.
type Table struct {
	Metric, Unit string
	Variants     []string
	Rows         []Row
	Remarks      []string // where an order is not the published one
	Pooled       string   // why means have no interval; empty: they have
	Compared     int      // orders of two that could be compared
	Turned       int      // of those, the other way round here
	Equal        int      // of those, neither way here
}

// Row is one protocol, standing or moving.
type Row struct {
	Routing, Motion string
	Cells           []Pair
}

// Pair is one cell: ours and theirs.
type Pair struct {
	Ours    Interval
	Theirs  *float64 // absent where the paper has no such cell
	Printed string
	Ratio   *float64 // ours ÷ theirs; absent without ours, or where theirs is 0
	over    []string // factors in which our trials differ: they are no sample of one cell
}

// Tables sets the published tables of a scenario beside the trials.
func (p Published) Tables(scenario string, trials []Trial, s Summariser) []Table {
	var out []Table
	for _, metric := range listed(p.of(scenario), func(c Cell) string { return c.Metric }) {
		out = append(out, p.table(scenario, metric, trials, s))
	}
	return out
}

// Plot is a table's rows of one motion as curves, one a protocol, over the places of
// the variants: 1, 2, 3 and so on.
func (t Table) Plot(motion string) []Curve {
	var out []Curve
	for _, r := range t.Rows {
		if r.Motion != motion {
			continue
		}
		c := Curve{Line: Line{Name: r.Routing}}
		for i, k := range r.Cells {
			at := float64(i + 1)
			if k.Ours.N > 0 {
				c.Ours = append(c.Ours, k.Ours.mark(at))
			}
			if k.Theirs != nil {
				c.Theirs = append(c.Theirs, Mark{X: at, Y: *k.Theirs, Low: k.Theirs, High: k.Theirs,
					Printed: k.Printed, Source: "the paper's table"})
			}
		}
		out = append(out, c)
	}
	return out
}

func (p Published) of(scenario string) []Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return c.Scenario != scenario })
}

// listed are the values of a property, in the order of the table.
func listed(cells []Cell, of func(Cell) string) []string {
	var out []string
	for _, c := range cells {
		if v := of(c); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (p Published) table(scenario, metric string, trials []Trial, s Summariser) Table {
	cells := slices.DeleteFunc(p.of(scenario), func(c Cell) bool { return c.Metric != metric })
	t := Table{Metric: metric, Unit: cells[0].Unit, Variants: listed(cells, func(c Cell) string { return c.Variant })}
	routings := listed(cells, func(c Cell) string { return c.Routing })
	motions := listed(cells, func(c Cell) string { return c.Motion })
	var over []string
	for _, routing := range routings {
		for _, motion := range motions {
			row := Row{Routing: routing, Motion: motion}
			for _, v := range t.Variants {
				k := pairOf(cells, v, routing, motion, metric, trials, s)
				row.Cells, over = append(row.Cells, k), append(over, k.over...)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(over) > 0 {
		slices.Sort(over)
		t.Pooled = words.Pooled(slices.Compact(over))
	}
	for _, motion := range motions {
		for _, routing := range routings {
			t.order(cells, Condition{"routing": {routing}, "motion": {motion}}, "variant", t.Variants, trials, s)
		}
		for _, v := range t.Variants {
			t.order(cells, Condition{"variant": {v}, "motion": {motion}}, "routing", routings, trials, s)
		}
	}
	return t
}

func (c Cell) facts() Trial {
	return Trial{Facts: map[string]string{"variant": c.Variant, "routing": c.Routing, "motion": c.Motion}}
}

func pairOf(cells []Cell, variant, routing, motion, metric string, trials []Trial, s Summariser) Pair {
	where := Condition{"variant": {variant}, "routing": {routing}, "motion": {motion}}
	var out Pair
	i := slices.IndexFunc(cells, func(c Cell) bool { return where.holds(c.facts()) })
	if i >= 0 {
		out.Theirs, out.Printed = &cells[i].Value, cells[i].Printed
	}
	var values []float64
	var of []Trial
	for _, t := range trials {
		if v, known := t.Values[metric]; known && where.holds(t) {
			values, of = append(values, v), append(of, t)
		}
	}
	out.Ours, out.over = s.of(values), unlike(of)
	if len(out.over) > 0 {
		out.Ours.Half = nil
	}
	if i >= 0 && cells[i].Value != 0 && out.Ours.N > 0 {
		out.Ratio = new(out.Ours.Mean / cells[i].Value)
	}
	return out
}

// place is one of those that an order ranks.
type place struct {
	name         string
	theirs, ours float64
}

// order compares the order of a fact's values where the other facts are alike,
// and remarks on it when ours is another.
func (t *Table) order(cells []Cell, where Condition, fact string, values []string, trials []Trial, s Summariser) {
	var there []Trial
	for _, x := range trials {
		if where.holds(x) {
			there = append(there, x)
		}
	}
	var places []place
	for _, v := range values {
		one := maps.Clone(where)
		one[fact] = []string{v}
		k := pairOf(cells, one["variant"][0], one["routing"][0], one["motion"][0], t.Metric, there, s)
		i := slices.IndexFunc(cells, func(c Cell) bool { return one.holds(c.facts()) })
		if k.Ours.N > 0 && i >= 0 {
			places = append(places, place{v, cells[i].Value, k.Ours.Mean})
		}
	}
	var turned []string
	for i, a := range places {
		for _, b := range places[i+1:] {
			if a.theirs == b.theirs {
				continue
			}
			t.Compared++
			low, high := a, b // as published
			if a.theirs > b.theirs {
				low, high = b, a
			}
			switch {
			case low.ours < high.ours:
				continue
			case low.ours == high.ours:
				t.Equal++
				continue
			}
			t.Turned++
			d := compared(Claim{Metric: t.Metric, Relation: More}, Condition{fact: {low.name}},
				Condition{fact: {high.name}}, there, s)
			how := "no more than noise"
			if d.Verdict == Supported {
				how = "beyond noise"
			} else if d.Estimate.Half == nil {
				how = fmt.Sprintf("too few pairs (%d), or none that differ, to tell from noise", d.N)
			}
			turned = append(turned, fmt.Sprintf("%s is above %s here (%s)", low.name, high.name, how))
		}
	}
	if len(turned) == 0 {
		return
	}
	t.Remarks = append(t.Remarks, fmt.Sprintf("%s: published %s; here %s. %s.", where,
		ranked(places, func(p place) float64 { return p.theirs }),
		ranked(places, func(p place) float64 { return p.ours }), strings.Join(turned, "; ")))
}

// ranked writes an order from the least to the most.
func ranked(places []place, of func(place) float64) string {
	sorted := slices.Clone(places)
	slices.SortStableFunc(sorted, func(a, b place) int { return cmp.Compare(of(a), of(b)) })
	var b strings.Builder
	for i, p := range sorted {
		switch {
		case i > 0 && of(p) == of(sorted[i-1]):
			b.WriteString(" = ")
		case i > 0:
			b.WriteString(" < ")
		}
		b.WriteString(p.name)
	}
	return b.String()
}

// metricWords name metrics in claims and tables.
var metricWords = map[string]string{"packet_loss_percent": "loss", "one_way_delay_mean_ms": "delay",
	ThroughputPerConnection: "throughput of a connection", ThroughputKbitS: "throughput", "goodput_ratio": "goodput",
	"delivery_fraction": "delivery", "connect_time_ms": "connect time", "cbr_delivery_fraction": "CBR delivery",
	"cbr_latency_ms": "CBR latency", "routing_packets_per_s": "routing packets",
	"routing_bytes_per_s": "routing bytes",
	"rtt_mean_ms":         "round trip time", referenceRatio: "throughput ÷ R-TCP's",
	referenceGap: "what R-TCP has above it"}

// Words names a metric in a word.
func Words(metric string) string {
	if w := metricWords[metric]; w != "" {
		return w
	}
	return metric
}

// Drawn are the claims that the tables of a scenario make without words: where
// two variants, two protocols, or standing and moving, differ the same way in
// every one of a table's cells that differ, and where they are equal in all. All
// lines of one have its ID, one a cell.
func (p Published) Drawn(scenario string) []Claim {
	var out []Claim
	claims := 0
	for _, metric := range listed(p.of(scenario), func(c Cell) string { return c.Metric }) {
		cells := slices.DeleteFunc(p.of(scenario), func(c Cell) bool { return c.Metric != metric })
		for _, f := range []struct {
			fact string
			of   func(Cell) string
		}{{"variant", func(c Cell) string { return c.Variant }}, {"routing", func(c Cell) string { return c.Routing }},
			{"motion", func(c Cell) string { return c.Motion }}} {
			levels := listed(cells, f.of)
			for i, a := range levels {
				for _, b := range levels[i+1:] {
					lines := drawn(cells, f.fact, f.of, a, b)
					if len(lines) > 0 {
						claims++
					}
					for _, c := range lines {
						c.ID = fmt.Sprintf("P2 %s.%d", scenario, claims)
						c.Text = fmt.Sprintf("%s, %s: %s", scenario, metricWords[metric], c.Text)
						out = append(out, c)
					}
				}
			}
		}
	}
	return out
}

func drawn(cells []Cell, fact string, of func(Cell) string, a, b string) (out []Claim) {
	above, below := 0, 0
	for _, x := range cells {
		for _, y := range cells {
			other := x.facts()
			other.Facts[fact] = b
			if of(x) != a || !maps.Equal(other.Facts, y.facts().Facts) {
				continue
			}
			c := Claim{Paper: "p2", Metric: x.Metric, Where: Condition{}, Relation: Same}
			for k, v := range other.Facts {
				if k != fact {
					c.Where[k] = []string{v}
				}
			}
			switch {
			case x.Value > y.Value:
				above, c.Relation = above+1, More
			case x.Value < y.Value:
				below, c.Relation = below+1, More
			}
			out = append(out, c)
		}
	}
	if above > 0 && below > 0 {
		return nil
	}
	if below > 0 { // told with more in front
		a, b = b, a
	}
	text, printed := fmt.Sprintf("%s above %s", a, b), fmt.Sprintf("in all %d cells", len(out))
	switch n := above + below; {
	case n == 0:
		text, printed = fmt.Sprintf("%s as %s", a, b), fmt.Sprintf("equal in all %d cells", len(out))
	case n < len(out):
		printed = fmt.Sprintf("in %d of %d cells, equal in the others", n, len(out))
	}
	for i := range out {
		out[i].A, out[i].B = Condition{fact: {a}}, Condition{fact: {b}}
		out[i].Text, out[i].Printed = text, printed
	}
	return out
}

// Claims are all that a paper says of a scenario: what its tables show, and what its text
// states. A statement is of the scenario that its setting begins with; the papers
// but P2 have one scenario.
func (p Published) Claims(paper, scenario string) []Claim {
	stated := slices.DeleteFunc(slices.Clone(p.Tests), func(c Claim) bool {
		return c.Paper != paper || paper == "p2" && !strings.HasPrefix(c.Text, scenario)
	})
	if paper == "p2" {
		return append(p.Drawn(scenario), stated...)
	}
	return stated
}
