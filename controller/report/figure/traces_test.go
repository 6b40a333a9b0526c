package figure

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

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
	svg := string(Traces([]metrics.Trace{trace}, 10, 240))
	for part, want := range map[string]int{`class="line"`: 3, `class="ssthresh"`: 1, `class="moving"`: 1,
		`class="again"`: 1, `class="rto"`: 1, `class="recovery"`: 1,
		"cwnd, segments": 1, "round trip, ms": 1, "acknowledged, MB": 1, "<title>rto, stream 0, 4.00 s</title>": 1} {
		if n := strings.Count(svg, part); n != want {
			t.Errorf("%q is there %d times, want %d", part, n, want)
		}
	}
}
