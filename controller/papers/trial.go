package papers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Trial is an accepted trial as the papers look at it.
type Trial struct {
	Repetition int
	Facts      map[string]string
	Factors    map[string]string  // the levels of the campaign's factors
	Values     map[string]float64 // by metric, in the papers' units; what was not measured is absent
	// Times are how long each connection of the trial took to something, by
	// metric. Values has their mean where all are known.
	Times       map[string][]stats.Duration
	Connections int // measured, each of which has its time where that is known
}

// censored reports whether one of a trial's times is only known to be longer.
func (t Trial) censored(metric string) bool {
	return slices.ContainsFunc(t.Times[metric], func(d stats.Duration) bool { return d.Censored })
}

// Interval is a mean with the half width of its interval; nil where there are too
// few values.
type Interval struct {
	Mean float64
	Half *float64
	N    int
}

// Summariser computes the mean and its interval; the report's own.
type Summariser func([]float64) (mean float64, half *float64)

func (s Summariser) of(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	mean, half := s(values)
	return Interval{mean, half, len(values)}
}

// publishedAs are the papers' names of the variants that are as their authors
// published them. Linux has others of the same names, which are named apart: they
// are not what the papers compare. simulatedAs does both for routing: the papers
// ran ns-2's AODV and DSR, which those of the RFCs are not.
var (
	publishedAs = map[string]string{tcpcc.Vegas1995: tcpcc.Vegas, tcpcc.Westwood2001: tcpcc.Westwood}
	linuxOwn    = []string{tcpcc.Vegas, tcpcc.Westwood}
	simulatedAs = map[string]string{"aodv-ns2": "aodv", "aodv-p3": "aodv", "aodv": "aodv of RFC 3561", "dsr-ns2": "dsr",
		"dsr": "dsr of RFC 4728"}
)

// ApartFromP3 names AODV with ns-2's own times apart, for a run that is set beside
// P3, which had others.
func (t Trial) ApartFromP3(protocol string) {
	if protocol == "aodv-ns2" {
		t.Facts["routing"] = "aodv of ns-2"
	}
}

// Facts are what the papers vary, as a trial has it.
func Facts(t wire.Trial) map[string]string {
	out := map[string]string{"routing": t.Routing.Protocol, "variant": t.TCP.Variant, "tcp": profile(t.TCP),
		"motion": "mobile", "channel_error": "0"}
	if name, known := simulatedAs[t.Routing.Protocol]; known {
		out["routing"] = name
	}
	if name, published := publishedAs[t.TCP.Variant]; published {
		out["variant"] = name
	} else if slices.Contains(linuxOwn, t.TCP.Variant) {
		out["variant"] += " of Linux"
	}
	if c := t.Conditions; c != nil {
		number(out, "channel_error", c.ChannelErrorMean)
		number(out, "speed_max_mps", c.SpeedMaxMps)
		if c.WidthM != nil && c.HeightM != nil {
			out["field_m"] = fmt.Sprintf("%gx%g", *c.WidthM, *c.HeightM)
		}
		if c.QueueFrames != nil {
			out["queue_frames"] = strconv.Itoa(*c.QueueFrames)
		}
	}
	if t.Still || out["speed_max_mps"] == "0" {
		out["motion"], out["speed_max_mps"] = "static", "0"
	}
	if h := t.Acceptance.HopsMin; h != nil {
		out["hops"] = strconv.Itoa(*h)
	}
	if w := t.TCP.WindowPackets; w != nil {
		out["window_packets"] = strconv.Itoa(*w)
	}
	if least := t.TCP.RTOMinMs; least != nil {
		out["rto_min_ms"] = strconv.Itoa(*least)
	}
	if most := t.TCP.RTOMaxMs; most != nil {
		out["rto_max_ms"] = strconv.Itoa(*most)
	}
	tcp, cbr, bps := 0, 0, 0.0
	for _, f := range t.Traffic {
		switch {
		case f.Kind == wire.KindCBR, f.Kind == "iperf3_udp":
			cbr += max(f.Streams, 1)
			if f.BitrateBps != nil {
				bps += *f.BitrateBps // of its streams together
			}
		case !f.Background && f.Kind == "iperf3_tcp":
			tcp += max(f.Streams, 1)
		}
	}
	out["tcp_flows"], out["cbr_flows"] = strconv.Itoa(tcp), strconv.Itoa(cbr)
	out["cbr_kbit_s"] = strconv.FormatFloat(bps/1e3, 'g', 6, 64)
	out["nodes"] = strconv.Itoa(len(t.Nodes()))
	out["ends"] = t.Sender + " to " + t.Receiver
	number(out, "speed_mps", t.SpeedMps)
	switch {
	case t.Car == "":
	case t.Sender == t.Car:
		out["moving"] = "client"
	case t.Receiver == t.Car:
		out["moving"] = "server"
	}
	if m := t.Factors["mobility"]; m != "" { // P5's words, whose speeds are the campaign's
		out["mobility"] = m
	}
	return out
}

// profile names a transport profile in full: reno+sack+delack+fixedrto.
func profile(t wire.TCP) string {
	out := t.Variant
	if t.SACK != nil && *t.SACK && t.Variant != "sack" && t.Variant != "fack" {
		out += "+sack"
	}
	if t.DelayedACK != nil && *t.DelayedACK {
		out += "+delack"
	}
	if t.FixedRTO {
		out += "+fixedrto"
	}
	return out
}

func number(out map[string]string, fact string, v *float64) {
	if v != nil {
		out[fact] = fmt.Sprintf("%g", *v)
	}
}

// The values that WithReferenceRatio adds.
const (
	referenceRatio = "reference_ratio"
	referenceGap   = "reference_gap_kbit_s"
)

// WithReferenceRatio adds to every trial of another variant its throughput ÷
// that of the reference TCP and how much the reference has above it, where there is
// a trial of the reference that is alike in all else.
func WithReferenceRatio(trials []Trial) {
	variant := Condition{"variant": {"reference"}} // its other view, tcp, is left out too
	open := openFactors(trials, variant.holds, func(t Trial) bool { return !variant.holds(t) })
	key := func(t Trial) string { return t.alike(variant, variant) + t.levels(open) }
	references := map[string][]float64{}
	for _, t := range trials {
		if v, known := t.Values[ThroughputKbitS]; known && variant.holds(t) {
			references[key(t)] = append(references[key(t)], v)
		}
	}
	for _, t := range trials {
		r := references[key(t)]
		v, known := t.Values[ThroughputKbitS]
		if !known || len(r) != 1 || variant.holds(t) {
			continue
		}
		t.Values[referenceGap] = r[0] - v
		if r[0] > 0 {
			t.Values[referenceRatio] = v / r[0]
		}
	}
}

// Ours is a cell of a run by itself: what its trials have in common, and the
// summaries of metrics.
type Ours struct {
	Facts  []string // values of the facts that vary
	Trials int
	Values []Interval
	Times  [][]stats.Duration // of the metrics that are times; nil of others
}

// endsMatter reports whether the ends of the traffic tell trials of a
// repetition apart. Where every repetition draws ends of its own they do not:
// trials with other ends are then repetitions of one cell.
func endsMatter(trials []Trial) bool {
	ends := Condition{"ends": nil}
	of := map[string]string{}
	for _, t := range trials {
		alike := t.alike(ends, ends)
		if known, met := of[alike]; met && known != t.Facts["ends"] {
			return true
		}
		of[alike] = t.Facts["ends"]
	}
	return false
}

// Cells groups trials by the facts that vary, and by the factors that these do not tell, and
// summarises metrics of them.
func Cells(trials []Trial, names []string, s Summariser) (facts []string, cells []Ours) {
	seen := map[string]map[string]bool{}
	for _, t := range trials {
		for fact, v := range t.Facts {
			if seen[fact] == nil {
				seen[fact] = map[string]bool{}
			}
			seen[fact][v] = true
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(seen)) {
		// "tcp" says all that "variant" does, and "motion" is the speed's where there is one.
		said := fact == "variant" || (fact == "motion" || fact == "mobility") && len(seen["speed_max_mps"]) > 1 ||
			fact == "ends" && (len(seen["moving"]) > 1 || !endsMatter(trials))
		if len(seen[fact]) > 1 && !said {
			facts = append(facts, fact)
		}
	}
	groups, of, factors := grouped(trials, facts)
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return slices.CompareFunc(of[a], of[b], wire.CompareLevels)
	}) {
		o := Ours{Facts: of[key], Trials: len(groups[key])}
		for _, name := range names {
			var values []float64
			var times []stats.Duration
			for _, t := range groups[key] {
				if v, known := t.Values[name]; known {
					values = append(values, v)
				}
				times = append(times, t.Times[name]...)
			}
			o.Values, o.Times = append(o.Values, s.of(values)), append(o.Times, times)
		}
		cells = append(cells, o)
	}
	return slices.Concat(facts, factors), cells
}

// grouped are trials by the values of facts, and by those factors in which trials of a group would
// differ else; of has the values of each group.
func grouped(trials []Trial, facts []string) (groups map[string][]Trial, of map[string][]string, factors []string) {
	for {
		groups, of = map[string][]Trial{}, map[string][]string{}
		for _, t := range trials {
			var values []string
			for _, f := range facts {
				values = append(values, t.Facts[f])
			}
			for _, f := range factors {
				values = append(values, t.Factors[f])
			}
			key := strings.Join(values, "\x00")
			groups[key], of[key] = append(groups[key], t), values
		}
		more := ""
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			if differ := unlike(groups[key]); len(differ) > 0 && (more == "" || differ[0] < more) {
				more = differ[0]
			}
		}
		if more == "" {
			return groups, of, factors
		}
		factors = append(factors, more)
	}
}

// unlike are the factors of a campaign in which trials differ.
func unlike(trials []Trial) []string {
	differ := map[string]bool{}
	for _, t := range trials {
		for factor, level := range t.Factors {
			if level != trials[0].Factors[factor] {
				differ[factor] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}
