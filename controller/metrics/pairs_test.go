package metrics

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// driven is a node's records: its window, and fixes every hz-th of a second of
// a drive due east of the site, from before the window to after it.
func driven(node string, openNs int64, fromM, speedMps, hz float64) []wire.Record {
	at := func(tNs int64, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Node: node, TBootNs: tNs}, Body: b}
	}
	out := []wire.Record{at(openNs, &wire.Window{OpenBootNs: openNs, CloseBootNs: openNs + 10*second})}
	const perDegree = earth.MeanRadiusM * math.Pi / 180
	for i := range int(14*hz) + 1 {
		s := float64(i)/hz - 2
		fix := openNs + int64(s*1e9)
		east := fromM + speedMps*s
		lon := 8 + east/(perDegree*math.Cos(50*math.Pi/180))
		out = append(out, at(fix+50_000_000, &wire.GPS{Mode: 3, Connected: true, FixBootNs: &fix, FixAgeMs: new(50.0),
			LatDeg: new(50.0), LonDeg: &lon, SpeedMps: &speedMps, RateHz: &hz}))
	}
	return out
}

func TestPairsStandToEachOther(t *testing.T) {
	trial := wire.Trial{Car: "car", Roadside: "road", Sender: "car", Receiver: "road", Initiator: "car",
		Relays: []string{"relay"}, DurationS: 10}
	// Each node has a boot clock of its own; their windows are one.
	records := append(driven("car", 1000*second, 100, 10, 5), driven("road", 50*second, 0, 0, 1)...)
	records = append(records, driven("relay", 7*second, 50, -5, 5)...)
	at := Attempt{trial: trial, records: records}
	rows := at.Rows()
	for _, c := range []struct {
		flow, name string
		want, off  float64
	}{
		{"", "bearing_open_deg", 90, 0.1},
		{"", "bearing_close_deg", 90, 0.1},
		{"", "relative_speed_mean_mps", 10, 0.01},
		{"", "distance_mean_m", 150, 0.6}, // at 10 Hz, the window's last tick left out
		{"", "gps_rate_hz", 5, 1e-9},
		{"", "fix_age_mean_ms", 50, 1e-9},
		{"car/relay", "relative_speed_mean_mps", 15, 0.01},
		{"car/relay", "bearing_open_deg", 270, 0.1},
		{"car/relay", "pair_distance_mean_m", 125, 0.8},
		{"road/relay", "bearing_close_deg", 90, 0.1}, // at 0 m, where it has none of its own
	} {
		got := Value(rows, c.flow, c.name)
		if c.flow == "road/relay" {
			if got == nil {
				t.Errorf("%s of %s is not told", c.name, c.flow)
			}
			continue
		}
		if got == nil || math.Abs(*got-c.want) > c.off {
			t.Errorf("%s of %q is %v, want %g", c.name, c.flow, show(got), c.want)
		}
	}
	// No speed is made of a position that is extrapolated.
	short := at.Between("road", "car")
	if p := short(11.9); p == nil || p.RelativeSpeedMps != nil {
		t.Errorf("at the tracks' end: %+v", p)
	}
	if p := short(40); p != nil {
		t.Errorf("long after: %+v", p)
	}
}

// A relative speed is a mean of the whole window, as far as positions in it tell: a receiver's last
// fix may be shortly before its close. One of a part may be another's.
func TestARelativeSpeedIsOfTheWholeWindow(t *testing.T) {
	trial := wire.Trial{Car: "car", Roadside: "road", Sender: "car", Receiver: "road", Initiator: "car", DurationS: 10}
	for _, c := range []struct {
		fromS, toS float64 // of the car's fixes
		told       bool
		windowS    int64
	}{{-2, 12, true, 10}, {0, 10, true, 10}, {-2, 4, false, 10}, {4, 12, false, 10}, {0.3, 12, true, 10},
		{0.5, 12, false, 10}, {-2, 9.6, true, 10}, {-2, 9.4, false, 10}, {-2, 12, true, 2}, {-2, 1.2, false, 2}} {
		car := slices.DeleteFunc(driven("car", 1000*second, 100, 20, 5), func(r wire.Record) bool {
			g, is := r.Body.(*wire.GPS)
			return is && (*g.FixBootNs < 1000*second+int64(c.fromS*1e9) || *g.FixBootNs > 1000*second+int64(c.toS*1e9))
		})
		records := append(car, driven("road", 50*second, 0, 0, 1)...)
		for _, r := range records {
			if w, is := r.Body.(*wire.Window); is {
				w.CloseBootNs = w.OpenBootNs + c.windowS*second
			}
		}
		rows := Attempt{trial: trial, records: records}.Rows()
		if got := Value(rows, "", "relative_speed_mean_mps"); (got != nil) != c.told {
			t.Errorf("window of %d s, positions from %g to %g s: %v m/s, want it told: %v", c.windowS, c.fromS, c.toS,
				show(got), c.told)
		}
	}
}

func show(v *float64) any {
	if v == nil {
		return "not told"
	}
	return *v
}

// runUp is a car's fixes while it stands, gathers speed at 2.5 m/s² and keeps
// 14 m/s; its receiver's speeds run behind by a lag.
func runUp(hz, lagS float64) []wire.Record {
	speed := func(s float64) float64 { return min(max(2.5*(s-3), 0), 14) }
	way := func(s float64) float64 {
		t := min(max(s-3, 0), 14/2.5)
		return 2.5*t*t/2 + 14*max(s-3-14/2.5, 0)
	}
	const perDegree = earth.MeanRadiusM * math.Pi / 180
	var out []wire.Record
	for i := range int(16 * hz) {
		s := float64(i) / hz
		fix := 700*second + int64(s*1e9)
		lon := 8 + way(s)/(perDegree*math.Cos(50*math.Pi/180))
		lon = math.Round(lon*60*1e4) / 1e4 / 60 // NMEA's four decimals of a minute, 12 cm
		out = append(out, wire.Record{Header: wire.Header{Node: "car", TBootNs: fix + 50_000_000},
			Body: &wire.GPS{Mode: 3, Connected: true, FixBootNs: &fix, LatDeg: new(50.0), LonDeg: &lon,
				SpeedMps: new(speed(s - lagS))}})
	}
	return out
}

// The mean age of a fix is no mean over the window where for a part of it there was none.
func TestAMeanAgeIsOfTheWholeWindow(t *testing.T) {
	at := Attempt{trial: wire.Trial{Car: "car", Sender: "car", Receiver: "road", Initiator: "car", DurationS: 10}}
	for _, r := range driven("car", 1000*second, 100, 20, 5) {
		if r.Body.Kind() != "gps" || r.TBootNs > 1009*second {
			at.records = append(at.records, r)
		}
	}
	absent(t, at.Rows(), "", "fix_age_max_ms", "fix_age_mean_ms")
}

func TestLagOfAReceiversSpeed(t *testing.T) {
	for _, hz := range []float64{1, 5, 10} {
		for _, lag := range []float64{0, 0.4, 1.2} {
			got := track.SpeedLagS(verdict.Fixes("car", runUp(hz, lag)))
			if got == nil || math.Abs(*got-lag) > 0.11 {
				t.Errorf("%g Hz, %g s behind: %v", hz, lag, show(got))
			}
		}
	}
	steady := driven("car", 1000*second, 100, 10, 5)
	if got := track.SpeedLagS(verdict.Fixes("car", steady)); got != nil {
		t.Errorf("of a car that keeps its speed %g s are told", *got)
	}
}

// In a trial of many nodes only those that a flow joins are pairs: the 19,900 of 200 nodes
// made a report of two windows of half an hour take 8 minutes.
func TestOfManyNodesOnlyThoseOfAFlowArePairs(t *testing.T) {
	trial := wire.Trial{Sender: "n00", Receiver: "n01", DurationS: 10,
		Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "n00", To: "n01"},
			{Name: "back", Kind: "iperf3_tcp", From: "n07", To: "n03", Background: true}}}
	var records []wire.Record
	for i := range pairsOfMost + 1 {
		name := fmt.Sprintf("n%02d", i)
		if i > 1 {
			trial.Relays = append(trial.Relays, name)
		}
		records = append(records, driven(name, int64(i+1)*second, float64(10*i), 1, 1)...)
	}
	told := map[string]bool{}
	for _, r := range (Attempt{trial: trial, records: records}).Rows() {
		if r.Name == pairDistance.name {
			told[r.Flow] = true
		}
	}
	if len(told) != 2 || !told["n00/n01"] || !told["n03/n07"] {
		t.Errorf("the pairs are %v", told)
	}
}
