package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// connection is what captures say of one TCP connection.
type connection struct{ sent, lossPercent, delayMs float64 }

// beside makes an accepted attempt of the chain with its connections.
func beside(variant, routing string, repetition int, mbps float64, connections ...connection) evidence.Attempt {
	a := evidence.Attempt{Verdict: &wire.Verdict{Outcome: wire.Accepted}, Mbps: &mbps,
		Trial: wire.Trial{Repetition: repetition, Still: true, Routing: wire.Routing{Protocol: routing},
			TCP: wire.TCP{Variant: variant}}}
	for i, c := range connections {
		flow := fmt.Sprintf("f%d", i)
		a.Trial.Traffic = append(a.Trial.Traffic, wire.Flow{Name: flow, Kind: "iperf3_tcp"})
		a.Rows = append(a.Rows, metrics.Row{Flow: flow, Name: metrics.ThroughputBps,
			Value: mbps * 1e6 / float64(len(connections))})
		for name, v := range map[string]float64{"packets_sent": c.sent, metrics.LinkSent: c.sent,
			metrics.PacketLossPercent: c.lossPercent, metrics.LinkLossPercent: c.lossPercent,
			metrics.DeliveryFraction: 1 - c.lossPercent/100, metrics.OneWayMeanMs: c.delayMs} {
			a.Packets = append(a.Packets, metrics.Row{Flow: flow, Name: name, Value: v})
		}
	}
	return a
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q: %.300s", w, text)
		}
	}
}

// A packet's fate is told over the packets of all connections together, not as
// a mean of the connections' means.
func TestPapersValuesAreOverAllPackets(t *testing.T) {
	got := paperValues(beside("reno", "dsr-ns2", 1, 0.3, connection{1000, 10, 20}, connection{100, 0, 130}))
	for name, want := range map[string]float64{"throughput_kbit_s": 300, metrics.PacketLossPercent: 100.0 / 11,
		metrics.DeliveryFraction: 10.0 / 11, metrics.OneWayMeanMs: (900*20 + 100*130) / 1000.0} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	a := beside("reno", "dsr-ns2", 1, 0.3, connection{1000, 10, 20})
	a.Trial.Traffic = append(a.Trial.Traffic, wire.Flow{Name: "unconnected", Kind: "iperf3_tcp"})
	a.Packets = append(a.Packets, metrics.Row{Flow: "unconnected", Name: "packets_sent", Value: 0})
	if delay := paperValues(a)[metrics.OneWayMeanMs]; delay != 20 {
		t.Errorf("the delay of packets that arrived is %g ms, want 20: a connection that never was has none", delay)
	}
	a.Trial.Traffic = append(a.Trial.Traffic, wire.Flow{Name: "unseen", Kind: "iperf3_tcp"})
	if v, known := paperValues(a)[metrics.PacketLossPercent]; known {
		t.Errorf("loss is %g, and one of the connections was not captured", v)
	}
}

// Throughput to a destination is the mean of what each connection had in its own time, whenever
// that was, and not what they had together divided among them.
func TestThroughputToADestinationIsOfItsOwnTime(t *testing.T) {
	a := beside("reno", "dsr-ns2", 1, 0.3, connection{1000, 10, 20}, connection{100, 0, 130})
	a.Trial.Traffic[1].Streams = 2
	a.Rows = []metrics.Row{{Flow: "f0", Name: metrics.ThroughputBps, Value: 200e3},
		{Flow: "f1", Name: metrics.ThroughputBps, Value: 400e3}}
	if got := paperValues(a)[papers.ThroughputPerConnection]; got != 200 {
		t.Errorf("%g kbit/s, want 200", got)
	}
}

// A run of a paper's campaign has the paper's figures beside its own, remarks on
// orders, and answers to claims; another run has none of it.
func TestARunBesideThePapersFigures(t *testing.T) {
	d := &evidence.Run{Info: archive.RunInfo{Run: "r", Paper: &plan.Paper{Name: "p2", Scenario: "chain"}}}
	for rep := 1; rep <= 3; rep++ {
		off := 0.001 * float64(rep)
		d.Attempts = append(d.Attempts, beside("tahoe", "dsr-ns2", rep, 0.2+off, connection{1000, 1 + off, 100 + off}),
			beside("vegas1995", "dsr-ns2", rep, 0.3+2*off, connection{1000, 2 + 2*off, 50 + 2*off}))
	}
	view, err := viewPublished(d)
	if err != nil {
		t.Fatal(err)
	}
	v := view.(publishedView)
	if len(v.Tables) != 3 || len(v.Cells) != 2 || v.Counts != "Of 55 claims that can be tested this run supports 0 "+
		"and contradicts 3; 2 cannot be decided by it, and 50 it does not ask." {
		t.Errorf("%d tables, %d cells, %s", len(v.Tables), len(v.Cells), v.Counts)
	}
	cell := v.Tables[0].Rows[2].Cells[0] // loss, DSR, static, Tahoe: published 0.09
	if cell.Ours != "1 ± 0.00248" || cell.Theirs != "0.09" || cell.Ratio != "11.1" {
		t.Errorf("%+v", cell)
	}
	remark := strings.Join(v.Tables[0].Remarks, "\n")
	if !strings.Contains(remark, "published vegas < tahoe; here tahoe < vegas. vegas is above tahoe here "+
		"(beyond noise)") {
		t.Errorf("%q", remark)
	}
	pages, err := template.ParseFS(page, "page/*.html")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "published", v); err != nil {
		t.Fatal(err)
	}
	says(t, b.String(), "Oo and Othman", "cannot be decided by it", "one_way_delay_mean_ms",
		"paired t interval, n = 3: contradicted")
	d.Info.Paper = nil
	if view, err := viewPublished(d); view != nil || err != nil {
		t.Errorf("a run of nobody's question stands beside %v, %v", view, err)
	}
}

// A connection that had not come about when the window closed is told as such:
// it is in no mean, and the median knows of it.
func TestConnectionsThatNeverWereAreTold(t *testing.T) {
	d := &evidence.Run{}
	d.Info.Paper = &plan.Paper{Name: "p3"}
	for i, ms := range []float64{400, 500, 0, 0, 600} {
		a := beside("reno", "dsr-ns2", i, 0.2, connection{1000, 1, 100})
		name, v := metrics.ConnectTimeMs, ms
		if ms == 0 {
			name, v = metrics.ConnectCensoredMs, 9000
		}
		a.Packets = append(a.Packets, metrics.Row{Flow: "f0", Name: name, Value: v})
		d.Attempts = append(d.Attempts, a)
	}
	cell := func() string {
		t.Helper()
		view, err := viewPublished(d)
		if err != nil {
			t.Fatal(err)
		}
		v := view.(publishedView)
		at := slices.IndexFunc(v.Metrics, func(m metrics.PaperMetric) bool { return m.Name == metrics.ConnectTimeMs })
		if at < 0 || len(v.Cells) != 1 {
			t.Fatalf("no connect time in %+v", v.Cells)
		}
		return v.Cells[0].Values[at]
	}
	says(t, cell(), "median 600, 3 of 5 connected")
	d.Attempts = d.Attempts[:4]
	d.Attempts = append(d.Attempts, d.Attempts[2])
	says(t, cell(), "median > 9000, 2 of 5 connected")
}

// What the emulated field knows of losses is set against the captures.
func TestCapturesAgainstTheFieldsWord(t *testing.T) {
	d := &evidence.Run{}
	for i, truth := range []float64{1, 0.95, 0.2} {
		a := beside("reno", "dsr-ns2", i, 0.2, connection{1000, 1, 100})
		a.Packets = append(a.Packets, metrics.Row{Flow: "f0", Name: metrics.TrueLossPercent, Value: truth})
		d.Attempts = append(d.Attempts, a)
	}
	says(t, fieldCheck(d), "over 3 flows of 3000 packets: 1 % and 0.717 % in all; flow by flow within 0.1 percentage "+
		"points in 2", "from +0 to +8 packets")
	alone := beside("reno", "dsr-ns2", 1, 1, connection{1, 0, 1})
	if text := fieldCheck(&evidence.Run{Attempts: []evidence.Attempt{alone}}); text != "" {
		t.Errorf("no field told anything: %q", text)
	}
}

// Trials that nodes drove after the run had enough are in no figure beside a
// paper's, as they are in no mean and no model.
func TestTrialsBeyondEnoughAreInNoPapersFigure(t *testing.T) {
	d := &evidence.Run{Stop: &archive.Stop{Blocks: 2}}
	for block := 1; block <= 3; block++ {
		a := beside("tahoe", "dsr-ns2", block, float64(block), connection{100, 1, 5})
		a.Trial.Block = block
		d.Attempts = append(d.Attempts, a)
	}
	if got := paperTrials(d); len(got) != 2 || got[0].Values["throughput_kbit_s"] != 1000 ||
		got[1].Values["throughput_kbit_s"] != 2000 {
		t.Errorf("trials %+v", got)
	}
}

// The round trip time beside a paper's is that of a trial's one connection: of
// several there is no mean whose weights a paper names.
func TestTheRoundTripTimeIsOfOneConnection(t *testing.T) {
	one := beside("newreno", "dsr-ns2", 1, 1, connection{100, 1, 5})
	if v, known := paperValues(one)[metrics.RTTMeanMs]; known {
		t.Errorf("%g ms, and nothing was sampled", v)
	}
	one.Rows = append(one.Rows, metrics.Row{Flow: "f0", Name: metrics.RTTMeanMs, Value: 250})
	if v := paperValues(one)[metrics.RTTMeanMs]; v != 250 {
		t.Errorf("%g ms, want 250", v)
	}
	two := beside("newreno", "dsr-ns2", 1, 1, connection{100, 1, 5}, connection{100, 1, 5})
	two.Rows = one.Rows
	if v, known := paperValues(two)[metrics.RTTMeanMs]; known {
		t.Errorf("%g ms of two connections", v)
	}
}

// What the flows of a constant bit rate measured is there without a capture: their ends recorded it.
func TestConstantBitRatesNeedNoCapture(t *testing.T) {
	a := beside("fixedrto", "adv", 1, 1)
	for name, v := range map[string]float64{metrics.CBRLatencyMs: 750, metrics.CBRDelivery: 0.6} {
		a.Rows = append(a.Rows, metrics.Row{Name: name, Value: v})
		if got, known := paperValues(a)[name]; !known || got != v {
			t.Errorf("%s is %g (known: %v), want %g", name, got, known, v)
		}
	}
}
