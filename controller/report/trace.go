package report

import (
	"fmt"
	"html/template"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// tracesView are the attempts that the page has room for.
type tracesView struct {
	Shown []traceView
	Left  int // those that it has none for
	// Others: in some of them other nodes send measured flows, too
	Others bool
}

// traceView is what TCP did in one attempt: panels with one axis of time.
type traceView struct {
	Name, What, Outcome string
	Streams             int
	Told                string // the events, counted
	SVG                 template.HTML
	Open                bool
}

// tracesShown bounds the page: of a long run the first attempts are drawn, all
// are in the archive.
const tracesShown = 120

// linePoints is how many points a line has at most in a report of few attempts,
// and traceTotal how many all attempts' lines have together.
const (
	linePoints    = 240
	linePointsMin = 60
	traceTotal    = 12_000
)

func viewTraces(d *evidence.Run) (any, error) {
	shown := slices.DeleteFunc(slices.Clone(d.Attempts), func(a evidence.Attempt) bool { return len(a.Traces) == 0 })
	if len(shown) == 0 {
		return nil, nil
	}
	v := tracesView{Left: max(len(shown)-tracesShown, 0)}
	shown = shown[:len(shown)-v.Left]
	bins := min(linePoints, max(linePointsMin, traceTotal/len(shown)))
	for i, a := range shown {
		v.Others = v.Others || slices.ContainsFunc(a.Trial.Measured(),
			func(f wire.Flow) bool { return f.From != a.Trial.Sender })
		v.Shown = append(v.Shown, traceView{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a),
			Outcome: outcome(a), Streams: len(a.Traces), Told: toldEvents(a.Traces),
			SVG: figure.Traces(a.Traces, a.Points[len(a.Points)-1].S, bins), Open: i == 0})
	}
	return v, nil
}

// toldEvents counts the events of an attempt in words, and says who told them.
func toldEvents(traces []metrics.Trace) string {
	count, between := map[string]int{}, 0
	for _, t := range traces {
		for _, m := range t.Marks {
			count[m.Event] += m.Count
			if m.FromS != nil {
				between++
			}
		}
	}
	text := fmt.Sprintf("%d segments retransmitted, %d time-outs, %d episodes of recovery", count["retransmission"],
		count["rto"], count["recovery"])
	if n := count["failed_retransmission"]; n > 0 {
		text += fmt.Sprintf(", %d segments that could not be sent again", n)
	}
	switch {
	case len(count) == 0:
		return text
	case between == 0:
		return text + "; told by the kernel"
	}
	return text + "; told between samples"
}
