package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
)

// track is one column of the timelines: a number with one scale for all trials.
type track struct {
	Name, Unit string
	Colour     string
	of         func(metrics.Point) *float64
	fromZero   bool
	Low, High  float64 // of the scale, where any is known
	any        bool
}

// Scale prints the column's range.
func (t track) Scale() string {
	if !t.any {
		return "not measured"
	}
	return fmt.Sprintf("%s to %s %s", figure.Tick(t.Low), figure.Tick(t.High), t.Unit)
}

// accessPoint names the column that only phones have which run a node by the app.
const accessPoint = "signal of the access point, by Android"

func tracks() []track {
	return []track{
		{Name: "throughput", Unit: "Mbit/s", Colour: "#0072b2", fromZero: true, of: func(p metrics.Point) *float64 {
			return scaled(p.ThroughputBps, 1e-6)
		}},
		{Name: "speed", Unit: "m/s", Colour: "#d55e00", fromZero: true, of: func(p metrics.Point) *float64 {
			return p.SpeedMps
		}},
		{Name: "distance", Unit: "m", Colour: "#009e73", fromZero: true, of: func(p metrics.Point) *float64 {
			return p.DistanceM
		}},
		{Name: "signal", Unit: "dBm", Colour: "#8a5a83", of: func(p metrics.Point) *float64 { return p.SignalDbm }},
		{Name: accessPoint, Unit: "dBm", Colour: "#8a5a83", of: func(p metrics.Point) *float64 { return p.WiFiDbm }},
		{Name: "cwnd, all streams", Unit: "segments", Colour: "#555555", fromZero: true,
			of: func(p metrics.Point) *float64 { return p.CwndSegments }},
	}
}

func scaled(v *float64, by float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v * by)
}

type timelinesView struct {
	Tracks []track
	Rows   []timelineRow
}

type timelineRow struct {
	Name, What, Outcome, Value string
	Seconds                    float64
	Strips                     []template.HTML
}

func viewTimelines(d *evidence.Run) (any, error) {
	v := timelinesView{Tracks: tracks()}
	shown := slices.DeleteFunc(slices.Clone(d.Attempts), func(a evidence.Attempt) bool { return len(a.Points) == 0 })
	if len(shown) == 0 {
		return nil, nil
	}
	for i := range v.Tracks {
		v.Tracks[i].measure(shown)
	}
	v.Tracks = slices.DeleteFunc(v.Tracks, func(t track) bool { return t.Name == accessPoint && !t.any })
	slices.SortStableFunc(shown, func(a, b evidence.Attempt) int {
		sa, _ := a.SpeedMps()
		sb, _ := b.SpeedMps()
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(sa, sb))
	})
	for _, a := range shown {
		row := timelineRow{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a), Outcome: outcome(a),
			Value: "—", Seconds: a.Points[len(a.Points)-1].S}
		if a.Mbps != nil {
			row.Value = fmt.Sprintf("%.2f Mbit/s", *a.Mbps)
		}
		for _, t := range v.Tracks {
			row.Strips = append(row.Strips, t.strip(a).Draw())
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// what names an attempt's cell.
func what(a evidence.Attempt) string {
	text := ""
	if a.Calibration() {
		text = a.Trial.Pass
		if a.Trial.Course.MarkM != nil {
			text += fmt.Sprintf(" at %g m", *a.Trial.Course.MarkM)
		}
	}
	if a.Section != "" {
		text += " " + a.Section
	}
	if v, ok := a.SpeedMps(); ok {
		text += fmt.Sprintf(", %g m/s", v)
	}
	return strings.TrimLeft(text, " ,")
}

func outcome(a evidence.Attempt) string {
	if a.Verdict == nil {
		return "undecided"
	}
	return string(a.Verdict.Outcome)
}

// measure finds the range of a column over all attempts.
func (t *track) measure(attempts []evidence.Attempt) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, a := range attempts {
		for _, p := range a.Points {
			if v := t.of(p); v != nil {
				low, high = min(low, *v), max(high, *v)
			}
		}
	}
	if t.any = high >= low; !t.any {
		return
	}
	if t.fromZero {
		low = 0
	}
	t.Low, t.High = figure.Range(low, high)
}

func (t track) strip(a evidence.Attempt) figure.Strip {
	s := figure.Strip{Seconds: a.Points[len(a.Points)-1].S, Low: t.Low, High: t.High, Colour: t.Colour}
	for _, p := range a.Points {
		s.S = append(s.S, p.S)
		s.V = append(s.V, t.of(p))
	}
	target, ok := a.SpeedMps()
	if band := a.Trial.Acceptance.SpeedBandMps; t.Name == "speed" && ok && band != nil {
		s.BandLow, s.BandHigh = new(max(target-*band, t.Low)), new(min(target+*band, t.High))
	}
	return s
}
