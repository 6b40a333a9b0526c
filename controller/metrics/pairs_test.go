package metrics

import (
	"math"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// driven is a node's records: its window, and fixes every hz-th of a second of
// a drive due east of the site, from before the window to after it.
func driven(node string, openNs int64, fromM, speedMps, hz float64) []wire.Record {
	at := func(tNs int64, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Node: node, TBootNs: tNs}, Body: b}
	}
	out := []wire.Record{at(openNs, &wire.Window{OpenBootNs: openNs, CloseBootNs: openNs + 10*second})}
	const perDegree = earthRadiusM * math.Pi / 180
	for i := range int(14*hz) + 1 {
		s := float64(i)/hz - 2
		fix := openNs + int64(s*1e9)
		east := fromM + speedMps*s
		lon := 8 + east/(perDegree*math.Cos(50*math.Pi/180))
		out = append(out, at(fix+50_000_000, &wire.GPS{Mode: 3, Connected: true, FixBootNs: &fix, FixAgeMs: new(50.0), LatDeg: new(50.0), LonDeg: &lon, SpeedMps: &speedMps, RateHz: &hz}))
	}
	return out
}

func TestPairsStandToEachOther(t *testing.T) {
	trial := wire.Trial{Car: "car", Roadside: "road", Sender: "car", Receiver: "road", Initiator: "car", Relays: []string{"relay"}, DurationS: 10}
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
	// A position that is only held stands still: no speed is made of it.
	short := at.Between("road", "car")
	if p := short(11.9); p == nil || p.RelativeSpeedMps != nil {
		t.Errorf("at the tracks' end: %+v", p)
	}
	if p := short(40); p != nil {
		t.Errorf("long after: %+v", p)
	}
}

func show(v *float64) any {
	if v == nil {
		return "not told"
	}
	return *v
}
