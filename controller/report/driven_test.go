package report

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// planned are shipped campaigns and their trials of three repetitions, read once.
var planned = map[string]struct {
	of     *plan.Campaign
	trials []wire.Trial
}{}

// drivenOf is a shipped campaign as if it had been driven for some repetitions,
// three at most, with made-up numbers. They are drawn from the trial's own factors
// and claim nothing. Trials that drop says are left out.
func drivenOf(t *testing.T, name string, repetitions int, drop func(wire.Trial) bool) *evidence.Run {
	t.Helper()
	k, known := planned[name]
	if !known {
		c, err := plan.Load("../../campaigns/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if c.Crosses() { // by no links: who has a flow does not matter here
			err = c.DrawAcross(func(wire.Trial, float64) (*draw.Links, error) { return &draw.Links{}, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		schedule, err := c.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		k.of = c
		for _, trial := range schedule {
			if trial.Repetition <= 3 {
				k.trials = append(k.trials, trial)
			}
		}
		planned[name] = k
	}
	d := &evidence.Run{Info: archive.RunInfo{Run: "made-up", Campaign: k.of.Name, Place: archive.PlaceRehearsal,
		Paper: k.of.Paper}}
	for _, trial := range k.trials {
		if trial.Repetition > repetitions || drop != nil && drop(trial) {
			continue
		}
		d.Info.Plan.Trials = append(d.Info.Plan.Trials, trial)
		d.Attempts = append(d.Attempts, made(d, trial))
	}
	return d
}

// megabytes is what an attempt's measured flows transferred.
func megabytes(a evidence.Attempt) float64 {
	return *metrics.Sum(a.Rows, a.Trial.Measured(), metrics.TransferredMB)
}

// made is an accepted attempt with made-up numbers.
func made(d *evidence.Run, t wire.Trial) evidence.Attempt {
	h := fnv.New64a()
	fmt.Fprint(h, t.Factors, t.Repetition)
	noise := rand.New(rand.NewPCG(h.Sum64(), 7))
	a := d.AttemptOf(t)
	a.TrialKey = wire.TrialKey{Trial: t.Number, Attempt: 1}
	a.Verdict = &wire.Verdict{Outcome: wire.Accepted, TrialKey: a.TrialKey}
	mbps := 0.05 + 0.3*noise.Float64()
	mb := mbps / 8 * t.DurationS
	if t.Car != "" {
		mb = 15 + 5*noise.Float64()
		mbps = mb * 8 / t.DurationS
	}
	a.Mbps = &mbps
	put := func(rows *[]metrics.Row, flow, name string, v float64) {
		*rows = append(*rows, metrics.Row{Flow: flow, Name: name, Value: v})
	}
	for _, f := range t.Measured() {
		put(&a.Rows, f.Name, metrics.TransferredMB, mb/float64(len(t.Measured())))
		put(&a.Rows, f.Name, metrics.ThroughputBps, mbps*1e6/float64(len(t.Measured())))
		for name, v := range map[string]float64{"packets_sent": 1000, metrics.PacketLossPercent: 4 * noise.Float64(),
			metrics.DeliveryFraction: 0.95 + 0.05*noise.Float64(), metrics.OneWayMeanMs: 40 + 300*noise.Float64(),
			metrics.GoodputRatio: 0.94 + 0.05*noise.Float64(), metrics.ConnectTimeMs: 500 + 7000*noise.Float64()} {
			put(&a.Packets, f.Name, name, v)
		}
	}
	for name, v := range map[string]float64{metrics.RoutingPacketsPS: 400 * noise.Float64(),
		metrics.RoutingBytesPS: 40_000 * noise.Float64()} {
		put(&a.Packets, "", name, v)
	}
	put(&a.Rows, "", metrics.CBRLatencyMs, 300+900*noise.Float64())
	put(&a.Rows, "", metrics.CBRDelivery, 0.4+0.5*noise.Float64())
	put(&a.Rows, "", metrics.MACRoutingPS, 900*noise.Float64())
	put(&a.Rows, "", metrics.HopsMean, 3+6*noise.Float64())
	if len(t.Measured()) == 1 && t.Car == "" && t.Repetition == 1 {
		trace := metrics.Trace{Flow: t.Measured()[0].Name}
		for s := 0.0; s <= t.DurationS; s += t.DurationS / 300 {
			cwnd := 1 + 7*math.Abs(math.Sin(s/20+float64(h.Sum64()%7)))
			acked := mbps / 8 * s
			trace.Points = append(trace.Points, metrics.TracePoint{S: s, CwndSegments: cwnd, AckedMB: acked})
		}
		a.Traces = []metrics.Trace{trace}
		a.Points = []metrics.Point{{S: 0}, {S: t.DurationS}}
	}
	return a
}
