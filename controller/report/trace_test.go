package report

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// The events of an attempt are counted in segments, and who told them is said.
func TestEventsAreCountedAndWhoToldThem(t *testing.T) {
	mark := func(event string, count int, fromS *float64) metrics.TraceMark {
		return metrics.TraceMark{S: 2, FromS: fromS, Event: event, Count: count}
	}
	for name, c := range map[string]struct {
		marks []metrics.TraceMark
		want  string
	}{
		"nothing happened": {nil, "0 segments retransmitted, 0 time-outs, 0 episodes of recovery"},
		"by the kernel": {[]metrics.TraceMark{mark("retransmission", 3, nil), mark("retransmission", 1, nil),
			mark("rto", 1, nil)}, "4 segments retransmitted, 1 time-outs, 0 episodes of recovery; told by the kernel"},
		"between samples": {[]metrics.TraceMark{mark("retransmission", 3, new(1.9)), mark("recovery", 1, new(1.9))},
			"3 segments retransmitted, 0 time-outs, 1 episodes of recovery; told between samples"},
		"what did not leave": {[]metrics.TraceMark{mark("failed_retransmission", 2, nil)},
			"0 segments retransmitted, 0 time-outs, 0 episodes of recovery, 2 segments that could not be sent again; " +
				"told by the kernel"},
	} {
		if got := toldEvents([]metrics.Trace{{Marks: c.marks}}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The figure has its three panels, the mean of five seconds, the thresholds, and
// a sign of each kind of event.
func TestATraceFigureHasItsParts(t *testing.T) {
	trace := metrics.Trace{Flow: "main"}
	for i := range 101 {
		trace.Points = append(trace.Points, metrics.TracePoint{S: float64(i) / 10, CwndSegments: float64(10 + i%10),
			SsthreshSegments: new(8.0), RTTMs: new(20.0), AckedMB: float64(i) / 20})
	}
	for i, event := range []string{"retransmission", "rto", "recovery", "recovery_end"} {
		trace.Marks = append(trace.Marks, metrics.TraceMark{S: float64(2 * (i + 1)), Event: event, Count: 1})
	}
	svg := string(traceFigure{traces: []metrics.Trace{trace}, seconds: 10, bins: linePoints}.draw())
	for part, want := range map[string]int{`class="line"`: 3, `class="ssthresh"`: 1, `class="moving"`: 1,
		`class="again"`: 1, `class="rto"`: 1, `class="recovery"`: 1,
		"cwnd, segments": 1, "round trip, ms": 1, "acknowledged, MB": 1, "<title>rto, stream 0, 4.00 s</title>": 1} {
		if n := strings.Count(svg, part); n != want {
			t.Errorf("%q is there %d times, want %d", part, n, want)
		}
	}
}
