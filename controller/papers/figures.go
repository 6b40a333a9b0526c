package papers

import (
	"fmt"
	"slices"
)

// Kind is how one of a paper's figures comes about.
type Kind string

// The kinds. A sweep has points over what was varied; traces are over time;
// printed is a table of numbers, which the report sets beside ours as a table; of
// illustration and setting there is nothing to measure.
const (
	Sweep        Kind = "sweep"
	Traces       Kind = "traces"
	Printed      Kind = "table"
	Illustration Kind = "illustration"
	Setting      Kind = "setting"
)

// Figure is one of a paper's figures or tables as it is drawn here: what is on its
// axes, what makes a series and a panel, and which trials belong to it.
type Figure struct {
	Paper, Number string // p3, Figure 12
	Caption       string // in short
	Kind          Kind
	Scenario      string // of a paper's several, the one that it is of
	Where         Condition
	X             Axis
	Series        []Line
	Panels        []Panel
	Least         bool // of traces: the repetition in which the first series carried the least, not the first one
	// Axes says how the axes are known, and what is read into them. The papers'
	// texts are at hand, their drawings are not.
	Axes string
	Note string
	Why  string // why there is no drawing of it, of kinds that have none
}

// Axis is what a figure's points lie over: a fact of the trials or, where Value is
// set, one of their values, in its unit.
type Axis struct {
	Label, Unit string
	Fact, Value string
	Along       []string // facts that change along it with it
}

// Line is one series.
type Line struct {
	Name   string
	Where  Condition
	Dotted bool // drawn as the paper draws it
}

// Panel is one plot of a figure.
type Panel struct {
	Name    string
	Measure string // of the figure's paper
	Where   Condition
}

// Measure is what a paper measures, by its own definition, and the value of ours
// that stands beside it.
type Measure struct {
	Paper, Name string
	Label, Unit string // of an axis, in the paper's unit
	Value       string // by our names
	ByPaper     string // the definition, as near to the paper's words as its length allows
	Ours        string // in what ours is another
	Together    string // how several connections of one trial count
	Apart       bool   // its values lie close together: the axis need not begin at 0
}

func routings(names ...string) []Line {
	labels := map[string]string{"adv": "ADV", "aodv": "AODV", "dsr": "DSR", "dsdv": "DSDV", "aomdv": "AOMDV",
		"olsr": "OLSR"}
	var out []Line
	for _, n := range names {
		out = append(out, Line{Name: labels[n], Where: Condition{"routing": {n}}})
	}
	return out
}

func variants(names ...string) []Line {
	labels := map[string]string{"tahoe": "Tahoe", "reno": "Reno", "newreno": "NewReno", "vegas": "Vegas",
		"westwood": "Westwood", "sack": "SACK", "fack": "FACK"}
	var out []Line
	for _, n := range names {
		out = append(out, Line{Name: labels[n], Where: Condition{"variant": {n}}})
	}
	return out
}

// The transport profiles of P3.
const (
	plainReno = "reno"
	withSACK  = "reno+sack"
	withDelay = "reno+sack+delack"
	fixedRTO  = "reno+sack+delack+fixedrto"
)

var (
	newRenoAndReference = []Line{{Name: "TCP NewReno", Where: Condition{"variant": {"newreno"}}},
		{Name: "R-TCP", Where: Condition{"variant": {"reference"}}, Dotted: true}}
	renoAndFixedRTO = []Line{{Name: "Reno", Where: Condition{"tcp": {plainReno}}},
		{Name: "SACK + delayed ACKs + fixed RTO", Where: Condition{"tcp": {fixedRTO}}}}
)

// measures are the papers' own.
var measures = []Measure{
	{"p1", "throughput", "transferred in 10 s", "MB", TransferredIn10S,
		"data transferred in 10 s over six TCP connections, mean of two readings; whether MB are of 10^6 or 2^20 " +
			"bytes is not said", "MB of 10^6 bytes; windows of 10 s only", "summed over the connections", false},
	{"p2", "loss", "packet loss rate", "%", "packet_loss_percent",
		"dropped packets ÷ (highest packet ID + 1) × 100", "a packet is one transmission of a segment, and " +
			"divided is by those that were sent; ns-2's own IDs would number ACKs too, and halve the rate",
		"over the packets of all connections", false},
	{"p2", "delay", "average end-to-end delay", "ms", "one_way_delay_mean_ms",
		"delay of the data packets that are delivered", "from a packet's leaving its socket to its arrival",
		"over the delivered packets of all connections", false},
	{"p2", "throughput", "throughput to a destination", "kbit/s", ThroughputPerConnection,
		"rate of successfully delivered data per second to individual destinations",
		"per second of the time for which the connection was to send",
		"mean of the connections; those that delivered nothing count as 0", false},
	{"p3", "connect time", "connect time", "s", "connect_time_ms",
		"time that it takes to deliver the first TCP packet, from the connection's beginning",
		"until the first SYN is answered; the simulator's TCP has no handshake", "mean of the connections", false},
	{"p3", "throughput", "throughput", "kbit/s", ThroughputKbitS,
		"data that TCP transferred after the warm-up ÷ that time, without what came twice", "",
		"summed over the connections", false},
	{"p3", "goodput", "goodput", "1", "goodput_ratio",
		"TCP packets delivered ÷ TCP packets transmitted", "", "over the packets of all connections", true},
	{"p3", "routing packets", "routing packets", "packets/s", "routing_packets_per_s",
		"routing packets transmitted at IP per second, at each hop", "", "summed over the nodes", false},
	{"p3", "routing bytes", "routing data", "kbit/s", "routing_bytes_per_s",
		"routing data transmitted at IP per second; DSR's with what its data packets carry of routing", "",
		"summed over the nodes", false},
	{"p3", "routing at MAC", "routing frames at MAC", "frames/s", "mac_frames_routing_per_s",
		"all routing packets at IP and the RTS, CTS and ACKs of unicast data and of routing packets",
		"the RTS, CTS and ACKs of data packets are not in it", "summed over the nodes", false},
	{"p3", "CBR latency", "CBR packet latency", "s", "cbr_latency_ms",
		"mean latency of the packets of the constant-bit-rate flows", "of those that arrived",
		"over the packets of all such flows", false},
	{"p3", "CBR delivery", "CBR packets delivered", "1", "cbr_delivery_fraction",
		"packets of the constant-bit-rate flows delivered ÷ sent", "", "over the packets of all such flows", false},
	{"p3", "window", "congestion window", "segments", CwndMovingMean,
		"congestion window, 5 s moving mean", "", "one connection", false},
	{"p4", "throughput", "throughput", "bit/s", ThroughputKbitS,
		"highest packet sequence number received ÷ the session's length",
		"payload that arrived in order, and windows of the campaign's length", "one connection", false},
	{"p4", "sequence number", "acknowledged", "packets", AckedPackets,
		"not defined; read of figure 2, whose axis its text does not have",
		"payload acknowledged ÷ payload of a packet", "one connection", false},
	{"p4", "window", "congestion window", "segments", Cwnd,
		"not in its text", "congestion window over time", "one connection", false},
	{"p5", "throughput", "throughput", "kbit/s", ThroughputKbitS,
		"TCP throughput; its unit, and whether it is of one connection or of all, is not said", "",
		"summed over the connections", false},
	{"p5", "delay", "average end-to-end delay", "ms", "one_way_delay_mean_ms", "not defined", "of those that arrived",
		"over the delivered packets of all connections", false},
	{"p5", "delivery", "packet delivery fraction", "1", "delivery_fraction", "not defined",
		"packets delivered ÷ sent, each transmission being one", "over the packets of all connections", true},
}

// Values of trials that are made for the papers' figures.
const (
	TransferredIn10S        = "transferred_in_10s_mb"
	ThroughputPerConnection = "throughput_per_connection_kbit_s"
	HopsMean                = "hops_mean"
	CwndMovingMean          = "cwnd_5s_mean_segments"
	Cwnd                    = "cwnd_segments"
	AckedPackets            = "acked_packets"
)

// ValueUnits are the units of the values that figures are drawn from.
var ValueUnits = map[string]string{
	TransferredIn10S: "MB", ThroughputKbitS: "kbit/s", ThroughputPerConnection: "kbit/s", "packet_loss_percent": "%",
	"one_way_delay_mean_ms": "ms", "goodput_ratio": "1", "delivery_fraction": "1", "connect_time_ms": "ms",
	"routing_packets_per_s": "packets/s", "routing_bytes_per_s": "B/s", "mac_frames_routing_per_s": "frames/s",
	"cbr_latency_ms": "ms", "cbr_delivery_fraction": "1", HopsMean: "hops", CwndMovingMean: "segments",
	Cwnd: "segments", AckedPackets: "packets", "rtt_mean_ms": "ms",
}

// conversions are from our units to a paper's.
var conversions = map[[2]string]float64{
	{"ms", "s"}: 1e-3, {"kbit/s", "bit/s"}: 1e3, {"B/s", "kbit/s"}: 8e-3,
}

// Factor turns a value of ours into the measure's unit.
func (m Measure) Factor() (float64, bool) {
	from, known := ValueUnits[m.Value]
	if known && from == m.Unit {
		return 1, true
	}
	f, convertible := conversions[[2]string{from, m.Unit}]
	return f, known && convertible
}

// MeasureOf finds what a paper measures by a name.
func MeasureOf(paper, name string) (Measure, bool) {
	i := slices.IndexFunc(measures, func(m Measure) bool { return m.Paper == paper && m.Name == name })
	if i < 0 {
		return Measure{}, false
	}
	return measures[i], true
}

// Measures are all that a paper measures.
func Measures(paper string) []Measure {
	return slices.DeleteFunc(slices.Clone(measures), func(m Measure) bool { return m.Paper != paper })
}

// Figures are all of a paper's figures and tables, in its order.
func Figures(paper string) []Figure {
	return slices.DeleteFunc(slices.Concat(figuresP1(), figuresP2(), figuresP3(), figuresP4(), figuresP5()),
		func(f Figure) bool { return f.Paper != paper })
}

func figuresP1() []Figure {
	return []Figure{
		{Paper: "p1", Number: "Table 1", Caption: "wireless connection specifications", Kind: Setting,
			Why: "it lists settings: what was driven and with what stands in its own section"},
		{Paper: "p1", Number: "Table of results", Caption: "throughput by velocity and section", Kind: Printed},
		{Paper: "p1", Number: "Figure 1", Caption: "setup", Kind: Illustration},
		{Paper: "p1", Number: "Figures 2 and 3", Caption: "throughput as a function of nodal velocity", Kind: Sweep,
			X: Axis{Label: "velocity", Unit: "m/s", Fact: "speed_mps", Along: []string{"speed_mps"}},
			Series: []Line{{Name: "section A: the client moves", Where: Condition{"moving": {"client"}}},
				{Name: "section B: the server moves", Where: Condition{"moving": {"server"}}}},
			Panels: []Panel{{Measure: "throughput"}},
			Axes: "The paper's two figures have one caption and show the numbers of its table: here they are one. " +
				"Ours " +
				"stand at the velocity that was the target; the paper calls its velocities maximum.",
			Note: "The paper's marks are means of two readings, without an interval."},
	}
}

func figuresP2() []Figure {
	illustration := func(number, caption string) Figure {
		return Figure{Paper: "p2", Number: number, Caption: caption, Kind: Illustration}
	}
	out := []Figure{
		illustration("Figures 1 to 3 (section 2)", "route discovery of DSR, AODV and AOMDV"),
		illustration("Figures 1 to 3 (section 3)", "congestion control of Tahoe, Reno and NewReno"),
		illustration("Figures 4 to 8", "the chain, the grid, their movements, and the random field"),
	}
	for j, scenario := range []string{"chain", "grid"} {
		for i, caption := range []string{"packet loss rate", "average end-to-end delay", "throughput"} {
			out = append(out, Figure{Paper: "p2", Number: fmt.Sprintf("Table %d", 1+i+3*j), Kind: Printed,
				Caption: caption + ", " + scenario, Scenario: scenario})
		}
	}
	for _, f := range []struct{ number, caption, measure string }{
		{"Figure 9", "packet loss rate in the random topology", "loss"},
		{"Figure 10", "average end-to-end delay in the random topology", "delay"},
		{"Figure 11", "throughput in the random topology", "throughput"},
	} {
		fig := Figure{Paper: "p2", Number: f.number, Caption: f.caption, Kind: Sweep, Scenario: "random",
			X: Axis{Label: "TCP connections", Unit: "connections", Fact: "tcp_flows",
				Along: []string{"tcp_flows"}},
			Series: variants("tahoe", "reno", "newreno", "vegas", "westwood"),
			Axes: "Axes by the text: 10 to 50 connections, one plot a protocol, (a) DSDV to (e) OLSR, one curve " +
				"a variant.",
		}
		for i, r := range routings("dsdv", "dsr", "aodv", "aomdv", "olsr") {
			fig.Panels = append(fig.Panels, Panel{Name: fmt.Sprintf("(%c) %s", 'a'+i, r.Name), Measure: f.measure,
				Where: r.Where})
		}
		out = append(out, fig)
	}
	return out
}

func figuresP3() []Figure {
	adv := routings("adv", "aodv", "dsr")
	overhead := []Panel{{Name: "routing packets at IP", Measure: "routing packets"},
		{Name: "routing data at IP", Measure: "routing bytes"}, {Name: "routing at MAC", Measure: "routing at MAC"}}
	byLoad := slices.Concat([]Panel{{Name: "connect time", Measure: "connect time"},
		{Name: "throughput", Measure: "throughput"}}, overhead)
	byConnections := slices.Concat(byLoad[:2:2], []Panel{{Name: "goodput", Measure: "goodput"}}, overhead)
	load := Axis{Label: "background traffic", Unit: "kbit/s", Fact: "cbr_kbit_s", Along: []string{"cbr_kbit_s"}}
	connections := Axis{Label: "TCP connections", Unit: "connections", Fact: "tcp_flows", Along: []string{"tcp_flows"}}
	const overheadRead = " Which of its three measures of overhead the paper draws is not in the text: all are drawn " +
		"here. Connect time is the paper's until the first TCP packet is delivered, ours until a SYN's answer."
	var out []Figure
	add := func(number, caption string, where Condition, x Axis, series []Line, panels []Panel, axes string) {
		out = append(out, Figure{Paper: "p3", Number: "Figure " + number, Caption: caption, Kind: Sweep, Where: where,
			X: x, Series: series, Panels: panels, Axes: axes})
	}
	for _, f := range []struct{ number, caption, tcp, cbr string }{
		{"1", "1 TCP Reno connection, 10 CBR flows", plainReno, "10"},
		{"2", "1 TCP connection with SACK, delayed ACKs and fixed RTO, 10 CBR flows", fixedRTO, "10"},
		{"3", "1 TCP Reno connection, 40 CBR flows", plainReno, "40"},
		{"4", "1 TCP connection with SACK, delayed ACKs and fixed RTO, 40 CBR flows", fixedRTO, "40"},
	} {
		add(f.number, f.caption, Condition{"tcp": {f.tcp}, "tcp_flows": {"1"}, "cbr_flows": {f.cbr}}, load, adv, byLoad,
			"Axes by the captions and the text: over the background traffic of all CBR flows together."+overheadRead)
	}
	for i, r := range adv {
		fig := Figure{Paper: "p3", Number: fmt.Sprintf("Figure %d", 5+i), Kind: Traces,
			Caption: r.Name + ": congestion window of one connection over time",
			Where:   Condition{"routing": r.Where["routing"], "tcp_flows": {"1"}}, Series: renoAndFixedRTO, Least: true,
			X:      Axis{Label: "time", Unit: "s"},
			Panels: []Panel{{Name: r.Name, Measure: "window"}},
			Axes: "Axes by the text: a 5 s moving mean over the time of the simulation, whose TCP begins after the " +
				"warm-up. " +
				"The paper draws the mobility scenario in which the three protocols did worst or nearly so; here it " +
				"is the one " +
				"of this run's in which Reno carried the least over this protocol.",
		}
		out = append(out, fig)
	}
	profiles := []Panel{{"Reno", "throughput", Condition{"tcp": {plainReno}}},
		{"SACK", "throughput", Condition{"tcp": {withSACK}}},
		{"SACK + delayed ACKs", "throughput", Condition{"tcp": {withDelay}}},
		{"SACK + delayed ACKs + fixed RTO", "throughput", Condition{"tcp": {fixedRTO}}}}
	for _, f := range []struct{ number, kbits, cbr string }{
		{"8", "100", "10"}, {"9", "100", "40"}, {"10", "200", "10"}, {"11", "200", "40"},
	} {
		add(f.number, "combined throughput of 2, 5 and 10 TCP connections, "+f.cbr+" CBR flows of "+f.kbits+
			" kbit/s together", Condition{"tcp_flows": {"2", "5", "10"}, "cbr_flows": {f.cbr}, "cbr_kbit_s": {f.kbits}},
			connections, adv, profiles, "Axes by the captions. That each of the four techniques has a plot is read "+
				"into it.")
	}
	for _, f := range []struct{ number, caption, tcp, cbr string }{
		{"12", "TCP Reno, 10 CBR flows of 100 kbit/s together", plainReno, "10"},
		{"13", "TCP Reno, 40 CBR flows of 100 kbit/s together", plainReno, "40"},
		{"14", "SACK, delayed ACKs and fixed RTO, 10 CBR flows of 100 kbit/s together", fixedRTO, "10"},
		{"15", "SACK, delayed ACKs and fixed RTO, 40 CBR flows of 100 kbit/s together", fixedRTO, "40"},
	} {
		add(f.number, f.caption, Condition{"tcp": {f.tcp}, "cbr_flows": {f.cbr}, "cbr_kbit_s": {"100"}}, connections,
			adv, byConnections, "Axes by the captions and the text."+overheadRead)
	}
	for _, f := range []struct{ number, caption, measure string }{
		{"16", "latency of CBR packets, 10 CBR flows of 100 kbit/s together", "CBR latency"},
		{"17", "share of CBR packets delivered, 10 CBR flows of 100 kbit/s together", "CBR delivery"},
	} {
		add(f.number, f.caption, Condition{"cbr_flows": {"10"}, "cbr_kbit_s": {"100"}}, connections, adv,
			[]Panel{{"Reno", f.measure, Condition{"tcp": {plainReno}}},
				{"SACK + delayed ACKs + fixed RTO", f.measure, Condition{"tcp": {fixedRTO}}}},
			"Axes by the captions and the text.")
	}
	return out
}

// errorAndCongestion are P4's conditions, by their words.
func errorAndCongestion(channelError, flows string) Condition {
	return Condition{"channel_error": {channelError}, "cbr_flows": {flows}}
}

func figuresP4() []Figure {
	speed := Axis{Label: "mobility speed", Unit: "m/s", Fact: "speed_max_mps",
		Along: []string{"speed_max_mps", "motion"}}
	ordinary := func(c Condition) Condition { // what the trial says nothing of is the campaign's field's
		out := Condition{"routing": {"dsr"}, "window_packets": {"8"}, "queue_frames": {"", "50"},
			"field_m": {"", "400x800"}}
		for fact, values := range c {
			out[fact] = values
		}
		return out
	}
	special := func(c Condition) Condition { // section 3.6, "without specification"
		out := ordinary(errorAndCongestion("0.01", "2"))
		out["speed_max_mps"], out["field_m"] = []string{"5"}, []string{"400x800"}
		for fact, values := range c {
			if values == nil {
				delete(out, fact)
				continue
			}
			out[fact] = values
		}
		return out
	}
	throughput := []Panel{{Measure: "throughput"}}
	const read = "Axes by the text: throughput in bit/s over the speed, NewReno solid and R-TCP dotted."
	out := []Figure{
		{Paper: "p4", Number: "Figure 1", Caption: "pseudo-code of R-TCP", Kind: Illustration},
		{Paper: "p4", Number: "Figure 2", Caption: "NewReno and R-TCP under congestion, mobility and channel error",
			Kind: Traces, Where: ordinary(nil), X: Axis{Label: "time", Unit: "s"}, Series: newRenoAndReference,
			Axes: "The text has no axis of this figure. What it reads from it, how far the flows are at the end " +
				"and a " +
				"blackout within it, fits a sequence number over time; the congestion window is drawn besides.",
			Note: "Of the trials that belong to a plot, those of the first repetition that has both are drawn."},
		{Paper: "p4", Number: "Figure 3", Caption: "throughput by speed: mobility; with congestion; with 1 % channel " +
			"error", Kind: Sweep, Where: ordinary(nil), X: speed, Series: newRenoAndReference, Axes: read,
			Panels: []Panel{{"mobility only", "throughput", errorAndCongestion("0", "0")},
				{"mobility + congestion", "throughput", errorAndCongestion("0", "2")},
				{"mobility + channel error 1 %", "throughput", errorAndCongestion("0.01", "0")}}},
		{Paper: "p4", Number: "Figure 4", Caption: "throughput by speed: with 10 % channel error; with congestion " +
			"and " +
			"1 %; with congestion and 10 %", Kind: Sweep, Where: ordinary(nil), X: speed,
			Series: newRenoAndReference, Axes: read,
			Panels: []Panel{{"mobility + channel error 10 %", "throughput", errorAndCongestion("0.1", "0")},
				{"mobility + congestion + channel error 1 %", "throughput", errorAndCongestion("0.01", "2")},
				{"mobility + congestion + channel error 10 %", "throughput", errorAndCongestion("0.1", "2")}}},
	}
	for _, measure := range []string{"sequence number", "window"} {
		out[1].Panels = append(out[1].Panels,
			Panel{"congestion, nobody moves", measure, Condition{"motion": {"static"}, "channel_error": {"0"},
				"cbr_flows": {"2"}}},
			Panel{"nodes move at 5 m/s", measure, Condition{"speed_max_mps": {"5"}, "channel_error": {"0"},
				"cbr_flows": {"0"}}},
			Panel{"congestion and channel error 1 %, nobody moves", measure, Condition{"motion": {"static"},
				"channel_error": {"0.01"}, "cbr_flows": {"2"}}})
	}
	add := func(number, caption string, where Condition, x Axis, axes string) {
		out = append(out, Figure{Paper: "p4", Number: "Figure 5, plot " + number, Caption: caption, Kind: Sweep,
			Where: where, X: x, Series: newRenoAndReference, Panels: throughput, Axes: axes})
	}
	const of36 = "Axes by the text of section 3.6, whose scenario is 5 m/s, 1 % channel error and two UDP flows " +
		"where it " +
		"says nothing else; throughput in bit/s as in the figures before."
	add("1", "throughput by the advertised window", special(Condition{"window_packets": nil}),
		Axis{Label: "advertised window", Unit: "packets", Fact: "window_packets", Along: []string{"window_packets"}},
		of36)
	add("2", "throughput by speed over AODV", special(Condition{"routing": {"aodv"}, "speed_max_mps": nil}), speed,
		of36)
	add("3", "throughput by the size of each node's buffer", special(Condition{"queue_frames": nil}),
		Axis{Label: "buffer of each node", Unit: "packets", Fact: "queue_frames", Along: []string{"queue_frames"}},
		of36)
	add("4", "throughput by the average length of the way", special(Condition{"field_m": nil}),
		Axis{Label: "average length of the way", Unit: "hops", Value: HopsMean, Along: []string{"field_m", "nodes",
			"hops"}},
		of36+" The length of the way is measured, as the paper's is.")
	return out
}

func figuresP5() []Figure {
	out := []Figure{}
	series := variants("tahoe", "reno", "newreno", "sack", "fack", "vegas")
	nodes := Axis{Label: "nodes", Unit: "nodes", Fact: "nodes", Along: []string{"nodes"}}
	connections := Axis{Label: "connections", Unit: "connections", Fact: "tcp_flows", Along: []string{"tcp_flows"}}
	for _, f := range []struct {
		number, caption string
		where           Condition
		x               Axis
	}{
		{"1", "5 connections, low mobility", Condition{"tcp_flows": {"5"}, "mobility": {"low"}}, nodes},
		{"2", "25 connections, low mobility", Condition{"tcp_flows": {"25"}, "mobility": {"low"}}, nodes},
		{"3", "100 nodes, low mobility", Condition{"nodes": {"100"}, "mobility": {"low"}}, connections},
		{"4", "200 nodes, low mobility", Condition{"nodes": {"200"}, "mobility": {"low"}}, connections},
		{"5", "100 nodes, high mobility", Condition{"nodes": {"100"}, "mobility": {"high"}}, connections},
		{"6", "200 nodes, high mobility", Condition{"nodes": {"200"}, "mobility": {"high"}}, connections},
	} {
		out = append(out, Figure{Paper: "p5", Number: "Figure " + f.number, Caption: "throughput, " + f.caption,
			Kind: Sweep, Where: f.where, X: f.x, Series: series, Panels: []Panel{{Measure: "throughput"}},
			Axes: "Axes by the captions. The paper gives throughput no unit, so that only its order can be compared.",
		})
	}
	return out
}
