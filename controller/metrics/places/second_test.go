package places

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A second's throughput is that of the ticks that end in it, the last of them at its end, and of no other.
func TestASecondHasItsOwnThroughput(t *testing.T) {
	points := make([]metrics.Point, metrics.TickHz+1)
	sum := 0.0
	for i := range points {
		points[i] = metrics.Point{S: 3 + float64(i)/metrics.TickHz, ThroughputBps: new(float64(i * i))}
		if i > 0 {
			sum += float64(i * i)
		}
	}
	points[0].ThroughputBps = new(1e9) // of the second before
	s := secondOf(wire.TrialKey{Trial: 1, Attempt: 1}, 3, points)
	if want := sum / metrics.TickHz; s.ThroughputBps == nil || *s.ThroughputBps != want {
		t.Errorf("%v, want %g", s.ThroughputBps, want)
	}
}
