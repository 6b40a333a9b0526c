package metrics

import (
	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Result is what Measured gives of an archive's attempt. It reads and computes no more
// than that needs: of 200 nodes the records of those that the measured flows end at.
func Result(a *archive.Archive, k wire.TrialKey) (mb, mbps *float64, err error) {
	at, err := load(a, k, func() ([]wire.Record, error) {
		t, _ := a.Trial(k.Trial)
		var ends []string
		for _, f := range t.Measured() {
			ends = append(ends, f.From, f.To)
		}
		return a.OfNodes(k.Trial, k.Attempt, ends)
	})
	if err != nil {
		return nil, nil, err
	}
	s := &set{at: at}
	for _, f := range at.trial.Measured() {
		s.flow(f)
	}
	mb, mbps = Measured(at.trial, s.rows)
	return mb, mbps, nil
}

// Measured is the result of an attempt, in MB and in Mbit/s: of its measured flows
// together, absent as soon as one of them is. A flow's throughput counts by the share
// that it sends of the time in which any does.
func Measured(t wire.Trial, rows []Row) (mb, mbps *float64) {
	mb, seconds, bps := Sum(rows, t.Measured(), TransferredMB), t.MeasuredS(), 0.0
	if mb == nil || seconds <= 0 {
		return nil, nil
	}
	for _, f := range t.Measured() {
		v := Value(rows, f.Name, ThroughputBps)
		if v == nil {
			return nil, nil
		}
		bps += *v * (f.WindowS(t.DurationS) / seconds)
	}
	return mb, new(bps / 1e6)
}

// Sum adds up a number of some flows of an attempt; nil when one of them has
// none, or there is no flow.
func Sum(rows []Row, flows []wire.Flow, name string) *float64 {
	if len(flows) == 0 {
		return nil
	}
	var sum float64
	for _, f := range flows {
		v := Value(rows, f.Name, name)
		if v == nil {
			return nil
		}
		sum += *v
	}
	return &sum
}
