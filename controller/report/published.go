package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/answers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
)

// publishedView is the run beside the figures of the paper whose question its
// campaign puts.
type publishedView struct {
	Paper    papers.Paper
	Scenario string
	Scale    string // the reduction that was driven; empty: none
	answers.View
	Tables   []publishedTable
	Facts    []string
	Metrics  []metrics.PaperMetric // the columns of Cells
	Cells    []oursView
	Silent   string // why there is no table
	Check    string // captures against the field's own word
	Lacking  string // what captures are not whole, so that numbers are absent
	Rule     string
	Interval string // the confidence of each
	Defined  []metrics.PaperMetric
	Means    string // how this run came to its numbers
	Table    string // where the paper's table stands, when it is in another section
	ADV      bool   // of the trials some are routed by ADV
}

type publishedTable struct {
	Title    string
	Variants []string
	Rows     []publishedRow
	Remarks  []string
	Orders   string
	Pooled   string // why its means have no interval; empty: they have
}

type publishedRow struct {
	Routing, Motion string
	Cells           []publishedCell
}

type publishedCell struct{ Ours, Theirs, Ratio string }

type oursView struct {
	Facts, Values []string
	Trials        int
}

// intervalAt gives the report's own mean and interval, at the run's confidence.
func intervalAt(d *evidence.Run) papers.Summariser { return intervalsOf(d)(1) }

// intervalsOf gives the same for one of several comparisons, which err together as often
// as one at the run's confidence.
func intervalsOf(d *evidence.Run) func(parts int) papers.Summariser {
	return func(parts int) papers.Summariser {
		return func(values []float64) (float64, *float64) {
			return stats.Summarise(values).Mean, stats.HalfWidth(1-(1-d.Level())/float64(parts), values)
		}
	}
}

func viewPublished(d *evidence.Run) (any, error) {
	if d.Info.Paper == nil {
		return nil, nil
	}
	paper, known := papers.Of(d.Info.Paper.Name)
	if !known {
		return nil, nil
	}
	all, err := papers.Read()
	if err != nil {
		return nil, err
	}
	v := publishedView{Paper: paper, Scenario: d.Info.Paper.Scenario, Rule: papers.Rule(d.Level()),
		Interval: words.Percent(d.Level()), Check: fieldCheck(d), Means: ourMeans(d)}
	if d.Info.Scale != nil {
		v.Scale = d.Info.Scale.Name
	}
	if incomplete, _ := threats.IncompleteCaptures(d); incomplete != nil {
		v.Lacking = incomplete.Text
	}
	trials := paperTrials(d)
	v.ADV = slices.ContainsFunc(trials, func(t papers.Trial) bool { return t.Facts["routing"] == "adv" })
	if evidence.AsksP1(d) {
		v.Table = "The paper's table stands beside ours under “Results”."
	}
	v.View = answers.Of(all.Claims(paper.ID, v.Scenario), trials, intervalsOf(d))
	for _, t := range all.Tables(v.Scenario, trials, intervalAt(d)) {
		v.Tables = append(v.Tables, tableView(t))
	}
	if len(v.Tables) == 0 && paper.ID == "p2" {
		v.Silent = "No figures of this scenario were published in numbers."
	}
	for _, m := range metrics.PaperMetrics() {
		if !slices.Contains(m.Papers, strings.ToUpper(paper.ID)) {
			continue
		}
		v.Defined = append(v.Defined, m)
		if slices.ContainsFunc(trials, func(t papers.Trial) bool { return hasValue(t, m.Name) }) {
			v.Metrics = append(v.Metrics, answers.InPapersUnit(m))
		}
	}
	v.cells(trials, intervalAt(d))
	return v, nil
}

// ourMeans says what was real in this run and what was not.
func ourMeans(d *evidence.Run) string {
	if d.Info.Place == archive.PlaceRehearsal {
		return "This run's kernels, sockets and routing are real; its radio and movement are emulated."
	}
	return "This run was measured on real hardware."
}

func hasValue(t papers.Trial, name string) bool {
	if len(t.Times[name]) > 0 {
		return true
	}
	if name == metrics.ThroughputBps {
		name = papers.ThroughputKbitS
	}
	_, known := t.Values[name]
	return known
}

// paperTrials are the trials that count as the papers look at them.
func paperTrials(d *evidence.Run) []papers.Trial {
	var out []papers.Trial
	for _, a := range d.Attempts {
		if !d.Counts(a) {
			continue
		}
		t := paperTrial(a)
		if p := d.Info.Paper; p != nil && p.Name == "p3" {
			t.ApartFromP3(a.Trial.Routing.Protocol)
		}
		out = append(out, t)
	}
	papers.WithReferenceRatio(out)
	return out
}

// paperTrial is an attempt as the papers look at it.
func paperTrial(a evidence.Attempt) papers.Trial {
	return papers.Trial{Repetition: a.Trial.Repetition, Facts: papers.Facts(a.Trial), Factors: a.Trial.Factors,
		Values: paperValues(a), Times: map[string][]stats.Duration{metrics.ConnectTimeMs: connectTimes(a)},
		Connections: len(a.Trial.Measured())}
}

// paperValues are an attempt's numbers by the papers' definitions: of a packet's
// fate over the packets of all its measured connections together.
func paperValues(a evidence.Attempt) map[string]float64 {
	out := map[string]float64{}
	put := func(name string, v *float64) {
		if v != nil && !math.IsNaN(*v) {
			out[name] = *v
		}
	}
	if a.Mbps != nil {
		connections := 0
		for _, f := range a.Trial.Measured() {
			connections += max(f.Streams, 1)
		}
		put(papers.ThroughputKbitS, new(*a.Mbps*1e3))
		if sum := metrics.Sum(a.Rows, a.Trial.Measured(), metrics.ThroughputBps); sum != nil {
			put(papers.ThroughputPerConnection, new(*sum/1e6*1e3/float64(connections)))
		}
	}
	if a.Trial.DurationS == 10 {
		put(papers.TransferredIn10S, metrics.Sum(a.Rows, a.Trial.Measured(), metrics.TransferredMB))
	}
	put(papers.HopsMean, a.Number(metrics.HopsMean))
	sent := func(flow string) *float64 { return metrics.Value(a.Packets, flow, metrics.PacketsSent) }
	arrived := func(flow string) *float64 {
		n, share := sent(flow), metrics.Value(a.Packets, flow, metrics.DeliveryFraction)
		if n != nil && *n == 0 { // it never connected: none of the packets is its
			return n
		}
		if n == nil || share == nil {
			return nil
		}
		return new(*n * *share)
	}
	put(metrics.PacketLossPercent, weighted(a, metrics.PacketLossPercent, sent))
	put(metrics.GoodputRatio, weighted(a, metrics.GoodputRatio, sent))
	put(metrics.DeliveryFraction, weighted(a, metrics.DeliveryFraction, sent))
	put(metrics.OneWayMeanMs, weighted(a, metrics.OneWayMeanMs, arrived))
	put(metrics.ConnectTimeMs, weighted(a, metrics.ConnectTimeMs, func(string) *float64 { return new(1.0) }))
	for _, name := range []string{metrics.RoutingPacketsPS, metrics.RoutingBytesPS} {
		put(name, metrics.Value(a.Packets, "", name))
	}
	for _, name := range []string{metrics.MACRoutingPS, metrics.CBRLatencyMs, metrics.CBRDelivery} {
		put(name, a.Number(name))
	}
	if flows := a.Trial.Measured(); len(flows) == 1 {
		put(metrics.RTTMeanMs, metrics.Value(a.Rows, flows[0].Name, metrics.RTTMeanMs))
	}
	return out
}

// connectTimes are how long each measured connection took, those among them that
// had none when the window closed.
func connectTimes(a evidence.Attempt) (out []stats.Duration) {
	for _, f := range a.Trial.Measured() {
		if v := metrics.Value(a.Packets, f.Name, metrics.ConnectTimeMs); v != nil {
			out = append(out, stats.Duration{Value: *v})
		} else if v := metrics.Value(a.Packets, f.Name, metrics.ConnectCensoredMs); v != nil {
			out = append(out, stats.Duration{Value: *v, Censored: true})
		}
	}
	return out
}

// times prints the median of what took so long, and of how many it is known.
func times(all []stats.Duration) string {
	known, longest := 0, 0.0
	for _, d := range all {
		longest = max(longest, d.Value)
		if !d.Censored {
			known++
		}
	}
	median, ok := stats.MedianDuration(all)
	text := "median " + words.Digits(median)
	if !ok {
		text = "median > " + words.Digits(longest)
	}
	return fmt.Sprintf("%s, %d of %d connected", text, known, len(all))
}

// weighted is the weighted mean of a number over the measured connections.
func weighted(a evidence.Attempt, name string, weight func(flow string) *float64) *float64 {
	var values, weights []*float64
	for _, f := range a.Trial.Measured() {
		values, weights = append(values, metrics.Value(a.Packets, f.Name, name)), append(weights, weight(f.Name))
	}
	return stats.Weighted(values, weights)
}

func tableView(t papers.Table) publishedTable {
	out := publishedTable{Title: papers.Words(t.Metric) + ", " + t.Unit, Variants: t.Variants, Remarks: t.Remarks,
		Pooled: t.Pooled}
	for _, r := range t.Rows {
		row := publishedRow{Routing: r.Routing, Motion: r.Motion}
		for _, c := range r.Cells {
			cell := publishedCell{Ours: answers.Interval(c.Ours, ""), Theirs: c.Printed, Ratio: "—"}
			if c.Ratio != nil {
				cell.Ratio = fmt.Sprintf("%.3g", *c.Ratio)
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	switch {
	case t.Compared == 0:
		out.Orders = "No two cells that differ as published were driven: no order can be compared."
	case t.Turned+t.Equal == 0:
		out.Orders = fmt.Sprintf("All %d orders of two variants or protocols that could be compared are as published.",
			t.Compared)
	default:
		out.Orders = fmt.Sprintf("Of %s of two variants or protocols that could be compared, the other way round "+
			"here: %d", words.Count(t.Compared, "order"), t.Turned)
		if t.Equal > 0 {
			out.Orders += fmt.Sprintf(", equal here: %d", t.Equal)
		}
		out.Orders += "."
	}
	return out
}

func (v *publishedView) cells(trials []papers.Trial, s papers.Summariser) {
	var names []string
	for _, m := range v.Metrics {
		names = append(names, m.Name)
	}
	facts, cells := papers.Cells(trials, names, s)
	v.Facts = facts
	for _, c := range cells {
		row := oursView{Facts: c.Facts, Trials: c.Trials}
		for i, k := range c.Values {
			if len(c.Times[i]) > 0 {
				row.Values = append(row.Values, times(c.Times[i]))
				continue
			}
			row.Values = append(row.Values, answers.Interval(k, ""))
		}
		v.Cells = append(v.Cells, row)
	}
}

// fieldCheck holds the loss by captures against what the emulated field says of
// itself; empty where no field told.
func fieldCheck(d *evidence.Run) string {
	var more []float64 // packets that captures miss and the field did not lose, a flow
	var sent, missed, lost float64
	agree := 0
	for _, a := range d.Attempts {
		if !a.Accepted() {
			continue
		}
		for _, f := range a.Trial.Traffic {
			n, seen, truth := metrics.Value(a.Packets, f.Name, metrics.LinkSent),
				metrics.Value(a.Packets, f.Name, metrics.LinkLossPercent),
				metrics.Value(a.Packets, f.Name, metrics.TrueLossPercent)
			if n == nil || seen == nil || truth == nil {
				continue
			}
			if math.Abs(*seen-*truth) <= 0.1 {
				agree++
			}
			more = append(more, math.Round((*seen-*truth)/100**n))
			sent, missed, lost = sent+*n, missed+*seen/100**n, lost+*truth/100**n
		}
	}
	if len(more) == 0 {
		return ""
	}
	return fmt.Sprintf("Loss by captures on the radios' interfaces against the emulated field's own word, over %s of "+
		"%.0f packets: %.3g %% and %.3g %% in all; flow by flow within 0.1 percentage points in %d, and captures "+
		"less field from %s to %s packets. "+
		"What captures have more was discarded by routing daemons on the way, which the field cannot see; what they "+
		"have less are packets of the connection without data, and packets at the window's edges.",
		words.Count(len(more), "flow"), sent, 100*missed/sent, 100*lost/sent, agree, words.Signed(slices.Min(more)),
		words.Signed(slices.Max(more)))
}
