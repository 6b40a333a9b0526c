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
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// head is the report's first lines.
type head struct {
	Campaign, Run, Place, Created, Version string
	Computed                               string // by which other version; empty: by the same
	Seed                                   uint64
	Course                                 string
	Rehearsal                              bool
	Counts                                 string
	Title, Question, Answer                string
	Figure                                 *figureView
	Cautions, Findings                     []string
}

func viewHead(d *evidence.Run) head {
	h := head{
		Campaign: d.Info.Campaign, Run: d.Info.Run, Place: d.Info.Place, Version: d.Info.Version, Seed: d.Info.Seed,
		Computed: computedBy(d),
		Created:  d.Info.CreatedWall.UTC().Format("2 January 2006, 15:04 UTC"), Course: strings.Join(d.Courses(), ", "),
		Rehearsal: d.Info.Place == archive.PlaceRehearsal, Counts: attemptsCounted(d),
	}
	if d.Campaign != nil {
		h.Title, h.Question = strings.TrimSpace(d.Campaign.Title), strings.TrimSpace(d.Campaign.Question)
	}
	h.Title = cmp.Or(h.Title, d.Info.Campaign)
	answer, rest := compare(d).Headline(design.Asked(d.Asks(), evidence.PassesOf(d.Results())))
	h.Answer, h.Findings = answer, findings(d, rest)
	h.Figure = headFigure(d)
	if h.Rehearsal {
		h.Cautions = append(h.Cautions, "A rehearsal is no evidence about velocity, only about the campaign.")
	}
	if t, _ := threats.SpeedWithDistance(d); t != nil {
		h.Cautions = append(h.Cautions, t.Title+". An effect of speed may be one of distance.")
	}
	return h
}

// attemptsCounted says how many attempts came to what.
func attemptsCounted(d *evidence.Run) string {
	accepted, passed := map[int]bool{}, map[int]bool{}
	attempts, rejected, failed, interrupted := 0, 0, 0, 0
	for _, a := range d.Attempts {
		if !d.Drives(a.Trial) { // beyond enough: told where it says why it was enough
			continue
		}
		if a.Calibration() {
			if a.Accepted() {
				passed[a.Trial.Number] = true
			}
			continue
		}
		attempts++
		switch {
		case a.Accepted():
			accepted[a.Trial.Number] = true
		case a.Verdict != nil && a.Verdict.Outcome == wire.Rejected:
			rejected++
		case a.Interrupted():
			interrupted++
		case a.Verdict != nil:
			failed++
		}
	}
	trials, passes := d.ToDrive()
	text := fmt.Sprintf("%d of %d planned trials accepted, in %s (%d rejected, %d failed, %d interrupted).",
		len(accepted), trials, words.Count(attempts, "attempt"), rejected, failed, interrupted)
	if passes > 0 {
		text += fmt.Sprintf(" %d of %d calibration passes accepted.", len(passed), passes)
	}
	if d.Info.Shard != nil {
		text = fmt.Sprintf("Shard %s: %s", d.Info.Shard, text)
	}
	if d.Stop != nil {
		text += fmt.Sprintf(" Stopped after block %d: %s.", d.Stop.Blocks, d.Stop.Reason)
	}
	return text
}

// findings stand below the answer: what each section did from the slowest to the
// fastest, then the answers to all else that the campaign asks.
func findings(d *evidence.Run, answers []string) []string {
	var out []string
	results := d.Results()
	all := evidence.Speeds(results)
	for _, s := range evidence.Levels(results, evidence.Section) {
		if len(all) < 2 {
			break
		}
		slow, fast := evidence.CellOf(d, s, all[0]), evidence.CellOf(d, s, all[len(all)-1])
		if slow.N > 0 && fast.N > 0 {
			out = append(out, fmt.Sprintf("Section %s (%s): %.2f %s on average at %g m/s, %.2f %s at %g m/s.",
				s, sectionMeaning(results, s), slow.Mean, evidence.RateUnit, all[0], fast.Mean, evidence.RateUnit,
				all[len(all)-1]))
		}
	}
	return slices.Concat(out, answers, compare(d).Aliased)
}

// sectionMeaning says who sends, if that is the same in all of the section.
func sectionMeaning(results []evidence.Attempt, name string) string {
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

// cellView is one cell of a table of results.
type cellView struct {
	Values   []string
	Mean     string
	Interval string
	Few      bool // too few for an interval
}

func makeCell(d *evidence.Run, attempts []evidence.Attempt) cellView {
	var values []float64
	var c cellView
	for _, a := range attempts {
		values = append(values, *a.Mbps)
		c.Values = append(c.Values, fmt.Sprintf("%.2f", *a.Mbps))
	}
	s := stats.Summarise(values)
	half := stats.HalfWidth(d.Level(), values)
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
	Zero     string // on trials that transferred nothing
	Pooled   string // why the means have no interval; empty: they have
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

func viewResults(d *evidence.Run) (any, error) {
	v := resultsView{Unit: evidence.RateUnit, Interval: words.Percent(d.Level())}
	if n := evidence.Zeros(d); n > 0 {
		v.Zero = words.Count(n, "trial") + " transferred nothing and counts as 0."
		if n > 1 {
			v.Zero = words.Count(n, "trial") + " transferred nothing and count as 0."
		}
	}
	if !evidence.SpeedBySection(d) {
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
func (v resultsView) bySpeed(d *evidence.Run, published papers.Published) resultsView {
	v.Paper = evidence.AsksP1(d)
	over := pooledBySpeed(d)
	if len(over) > 0 {
		v.Pooled = words.Pooled(over)
	}
	all := d.Planned()
	names := evidence.Levels(all, evidence.Section)
	for i, s := range names {
		v.Sections = append(v.Sections, sectionHead{s, sectionMeaning(all, s), figure.Key(i)})
	}
	for _, speed := range evidence.Speeds(all) {
		row := speedRow{Speed: fmt.Sprintf("%g", speed)}
		var atSpeed []evidence.Attempt
		for _, s := range names {
			cell := slices.DeleteFunc(d.Results(), func(a evidence.Attempt) bool {
				v, ok := a.SpeedMps()
				return !ok || v != speed || a.Section != s
			})
			atSpeed = append(atSpeed, cell...)
			c := makeCell(d, cell)
			if len(over) > 0 && !c.Few {
				c.Interval, c.Few = "no interval", true
			}
			row.Cells = append(row.Cells, c)
			if v.Paper {
				row.Paper = append(row.Paper, asRate(published.Velocity[s][speed]))
			}
		}
		row.GPSSpeed = span("%.1f", evidence.NumbersOf(atSpeed, metrics.SpeedMeanMps))
		row.Distance = distances(atSpeed)
		v.Rows = append(v.Rows, row)
	}
	return v
}

// distances reports where the window opened and closed, on average over those of which
// both is known, and by how much one of them may be off where a position was extrapolated.
func distances(attempts []evidence.Attempt) string {
	attempts = slices.DeleteFunc(slices.Clone(attempts), func(a evidence.Attempt) bool {
		return a.Number(metrics.DistanceOpenM) == nil || a.Number(metrics.DistanceCloseM) == nil
	})
	if len(attempts) == 0 {
		return "not measured"
	}
	open := evidence.NumbersOf(attempts, metrics.DistanceOpenM)
	closing := evidence.NumbersOf(attempts, metrics.DistanceCloseM)
	out := fmt.Sprintf("%.0f → %.0f", stats.Summarise(open).Mean, stats.Summarise(closing).Mean)
	off := append(evidence.NumbersOf(attempts, metrics.DistanceOpenUncertaintyM),
		evidence.NumbersOf(attempts, metrics.DistanceCloseUncertaintyM)...)
	if len(off) > 0 && slices.Max(off) >= 0.5 {
		out += fmt.Sprintf(" (± %.0f)", slices.Max(off))
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
func genericTable(d *evidence.Run) (factors []string, rows []genericRow) {
	all := d.Planned()
	factors = factorNames(all)
	byLevels := map[string][]evidence.Attempt{}
	var order [][]string
	combination := func(a evidence.Attempt) []string {
		var out []string
		for _, f := range factors {
			out = append(out, a.Trial.Factors[f])
		}
		return out
	}
	for _, a := range all {
		l := combination(a)
		if k := strings.Join(l, "\x00"); byLevels[k] == nil {
			byLevels[k] = []evidence.Attempt{}
			order = append(order, l)
		}
	}
	for _, a := range d.Results() {
		k := strings.Join(combination(a), "\x00")
		byLevels[k] = append(byLevels[k], a)
	}
	slices.SortFunc(order, func(x, y []string) int { return slices.CompareFunc(x, y, wire.CompareLevels) })
	for _, l := range order {
		rows = append(rows, genericRow{l, makeCell(d, byLevels[strings.Join(l, "\x00")])})
	}
	return factors, rows
}
