package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// head is the report's first lines.
type head struct {
	Campaign, Run, Place, Created, Version string
	Seed                                   uint64
	Course                                 string
	Rehearsal                              bool
	Counts                                 string
	Title, Question, Answer                string
	Figure                                 *figureView
	Cautions, Findings                     []string
}

func viewHead(d *data) head {
	h := head{
		Campaign: d.info.Campaign, Run: d.info.Run, Place: d.info.Place, Version: d.info.Version, Seed: d.info.Seed,
		Created: d.info.CreatedWall.UTC().Format("2 January 2006, 15:04 UTC"), Course: strings.Join(d.courses(), ", "),
		Rehearsal: d.info.Place == archive.PlaceRehearsal, Counts: d.counted(),
	}
	if d.campaign != nil {
		h.Title, h.Question = strings.TrimSpace(d.campaign.Title), strings.TrimSpace(d.campaign.Question)
	}
	h.Title = cmp.Or(h.Title, d.info.Campaign)
	answer, rest := d.compare().Headline(design.Asked(d.asks(), passesOf(d.results())))
	h.Answer, h.Findings = answer, findings(d, rest)
	h.Figure = headFigure(d)
	if h.Rehearsal {
		h.Cautions = append(h.Cautions, "A rehearsal is no evidence about velocity, only about the campaign.")
	}
	if t, _ := speedWithDistance(d); t != nil {
		h.Cautions = append(h.Cautions, t.Title+". An effect of speed may be one of distance.")
	}
	return h
}

// counted says how many attempts came to what.
func (d *data) counted() string {
	accepted := map[int]bool{}
	rejected, failed, interrupted := 0, 0, 0
	for _, a := range d.attempts {
		switch {
		case d.beyond(a.Trial): // told where it says why it was enough
		case a.accepted():
			accepted[a.Trial.Number] = true
		case a.Verdict != nil && a.Verdict.Outcome == wire.Rejected:
			rejected++
		case a.interrupted():
			interrupted++
		case a.Verdict != nil:
			failed++
		}
	}
	text := fmt.Sprintf("%d of %d planned trials accepted, in %s (%d rejected, %d failed, %d interrupted).",
		len(accepted), len(d.info.Plan.Trials)-d.spared(), words.Count(len(d.attempts), "attempt"), rejected, failed,
		interrupted)
	if d.stop != nil {
		text += fmt.Sprintf(" Stopped after block %d: %s.", d.stop.Blocks, d.stop.Reason)
	}
	return text
}

// findings stand below the answer: what each section did from the slowest to the
// fastest, then the answers to all else that the campaign asks.
func findings(d *data, answers []string) []string {
	var out []string
	results := d.results()
	all := speeds(results)
	for _, s := range levels(results, section) {
		if len(all) < 2 {
			break
		}
		slow, fast := cellOf(d, s, all[0]), cellOf(d, s, all[len(all)-1])
		if slow.N > 0 && fast.N > 0 {
			out = append(out, fmt.Sprintf("Section %s (%s): %.2f %s on average at %g m/s, %.2f %s at %g m/s.",
				s, sectionMeaning(results, s), slow.Mean, rate, all[0], fast.Mean, rate, all[len(all)-1]))
		}
	}
	return slices.Concat(out, answers, d.compare().Aliased)
}

// sectionMeaning says who sends, if that is the same in all of the section.
func sectionMeaning(results []attempt, name string) string {
	meaning := ""
	for _, a := range results {
		if a.Section != name {
			continue
		}
		m := "neither end of the data is in the car"
		switch a.Trial.Car {
		case "":
			m = "nobody moves"
		case a.Trial.Sender:
			m = "the car sends"
		case a.Trial.Receiver:
			m = "the car receives"
		}
		if meaning != "" && m != meaning {
			return "sender varies"
		}
		meaning = m
	}
	return meaning
}

// cellOf summarises the responses of one section at one speed.
func cellOf(d *data, sectionName string, speed float64) summary {
	var values []float64
	for _, a := range d.results() {
		if v, ok := a.speedMps(); ok && v == speed && a.Section == sectionName {
			values = append(values, *a.Mbps)
		}
	}
	return summarise(values)
}

// zeros counts the accepted trials that transferred nothing.
func zeros(d *data) int {
	n := 0
	for _, a := range d.results() {
		if *a.Mbps == 0 {
			n++
		}
	}
	return n
}

// cellView is one cell of a table of results.
type cellView struct {
	Values   []string
	Mean     string
	Interval string
	Few      bool // too few for an interval
}

func makeCell(d *data, attempts []attempt) cellView {
	var values []float64
	var c cellView
	for _, a := range attempts {
		values = append(values, *a.Mbps)
		c.Values = append(c.Values, fmt.Sprintf("%.2f", *a.Mbps))
	}
	s := summarise(values)
	half := stats.HalfWidth(d.level(), values)
	c.Few = half == nil
	switch {
	case s.N == 0:
		c.Interval = "no accepted trial with a result"
		return c
	case s.N == 1:
		c.Interval = "no interval from one"
	case s.N == 2:
		c.Interval = "no interval from two"
	case half == nil:
		c.Interval = "no interval: all alike"
	default:
		c.Interval = fmt.Sprintf("%.2f to %.2f", s.Mean-*half, s.Mean+*half)
	}
	c.Mean = fmt.Sprintf("%.2f", s.Mean)
	return c
}

// resultsView is the table of results: P1's, or one row for each combination of
// what varied.
type resultsView struct {
	Unit     string
	Interval string // the confidence of each
	Sections []sectionHead
	Rows     []speedRow
	Paper    bool
	Generic  []genericRow
	Factors  []string
	Zero     string // on trials without any connection
}

type sectionHead struct {
	Name, Meaning string
	Key           template.HTML
}

type speedRow struct {
	Speed    string
	GPSSpeed string
	Distance string
	Cells    []cellView
	Paper    []paperCell
}

// paperCell is a figure of P1: as it was printed, in MB of 10 s, and as a rate.
type paperCell struct{ Printed, Rate string }

// asRate converts what P1 printed. Whether its MB are of 10⁶ or of 2²⁰ bytes is not
// said, so that the rate is a range.
func asRate(printed string) paperCell {
	c := paperCell{Printed: printed}
	if mb, err := strconv.ParseFloat(printed, 64); err == nil {
		c.Rate = fmt.Sprintf("%.1f–%.1f", mb*8e6/10/1e6, mb*8*(1<<20)/10/1e6)
	}
	return c
}

type genericRow struct {
	Levels []string
	Cell   cellView
}

func viewResults(d *data) (any, error) {
	v := resultsView{Unit: rate, Interval: words.Percent(d.level())}
	if n := zeros(d); n > 0 {
		v.Zero = words.Count(n, "trial") + " had no connection and counts as 0."
		if n > 1 {
			v.Zero = words.Count(n, "trial") + " had no connection and count as 0."
		}
	}
	if !speedBySection(d) {
		v.Factors, v.Generic = genericTable(d)
		return v, nil
	}
	published, err := papers.Read()
	if err != nil {
		return nil, err
	}
	return v.bySpeed(d, published), nil
}

// bySpeed is P1's table: a row a speed, with what P1 published beside it where
// the campaign puts P1's question.
func (v resultsView) bySpeed(d *data, published papers.Published) resultsView {
	v.Paper = asksP1(d)
	all := d.planned()
	names := levels(all, section)
	for i, s := range names {
		v.Sections = append(v.Sections, sectionHead{s, sectionMeaning(all, s), figure.Key(i)})
	}
	for _, speed := range speeds(all) {
		row := speedRow{Speed: fmt.Sprintf("%g", speed)}
		var atSpeed []attempt
		for _, s := range names {
			cell := slices.DeleteFunc(d.results(), func(a attempt) bool {
				v, ok := a.speedMps()
				return !ok || v != speed || a.Section != s
			})
			atSpeed = append(atSpeed, cell...)
			row.Cells = append(row.Cells, makeCell(d, cell))
			if v.Paper {
				row.Paper = append(row.Paper, asRate(published.Velocity[s][speed]))
			}
		}
		row.GPSSpeed = span("%.1f", numbersOf(atSpeed, metrics.SpeedMeanMps))
		row.Distance = distances(atSpeed)
		v.Rows = append(v.Rows, row)
	}
	return v
}

// distances reports where the window opened and closed, on average, and by how
// much one of them may be off where a position was extrapolated.
func distances(attempts []attempt) string {
	open, closing := numbersOf(attempts, metrics.DistanceOpenM), numbersOf(attempts, metrics.DistanceCloseM)
	if len(open) == 0 || len(closing) == 0 {
		return "not measured"
	}
	out := fmt.Sprintf("%.0f → %.0f", summarise(open).Mean, summarise(closing).Mean)
	off := append(numbersOf(attempts, metrics.DistanceOpenUncertaintyM),
		numbersOf(attempts, metrics.DistanceCloseUncertaintyM)...)
	if len(off) > 0 && slices.Max(off) >= 0.5 {
		out += fmt.Sprintf(" (± %.0f)", slices.Max(off))
	}
	return out
}

// numbersOf collects a metric where it was measured.
func numbersOf(attempts []attempt, name string) []float64 {
	var out []float64
	for _, a := range attempts {
		if v := a.number(name); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// span prints least and most of some numbers, or the one that they all are.
func span(format string, values []float64) string {
	if len(values) == 0 {
		return "not measured"
	}
	low, high := fmt.Sprintf(format, slices.Min(values)), fmt.Sprintf(format, slices.Max(values))
	if low == high {
		return low
	}
	return low + "–" + high
}

// genericTable has one row for each combination of the factors that vary.
func genericTable(d *data) (factors []string, rows []genericRow) {
	all := d.planned()
	factors = factorNames(all)
	byLevels := map[string][]attempt{}
	var order [][]string
	combination := func(a attempt) []string {
		var out []string
		for _, f := range factors {
			out = append(out, a.Trial.Factors[f])
		}
		return out
	}
	for _, a := range all {
		l := combination(a)
		if k := strings.Join(l, "\x00"); byLevels[k] == nil {
			byLevels[k] = []attempt{}
			order = append(order, l)
		}
	}
	for _, a := range d.results() {
		k := strings.Join(combination(a), "\x00")
		byLevels[k] = append(byLevels[k], a)
	}
	slices.SortFunc(order, func(x, y []string) int { return slices.CompareFunc(x, y, wire.CompareLevels) })
	for _, l := range order {
		rows = append(rows, genericRow{l, makeCell(d, byLevels[strings.Join(l, "\x00")])})
	}
	return factors, rows
}
