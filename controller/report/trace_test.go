package report

import (
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
