package metrics

import (
	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Result is what Measured gives of an archive's attempt. It reads the records of those nodes
// only that receive a measured flow, and holds those of one at a time: where many nodes send
// to many, all of them are more than a rehearsal's kernel has room for.
func Result(a *archive.Archive, k wire.TrialKey) (mb, mbps *float64, err error) {
	t, planned := a.Trial(k.Trial)
	if !planned {
		return nil, nil, unplanned(a, k)
	}
	var rows []Row
	for to, flows := range byReceiver(t.Measured()) {
		at, err := load(a, k, func() ([]wire.Record, error) { return a.OfNode(k.Trial, k.Attempt, to) })
		if err != nil {
			return nil, nil, err
		}
		s := &set{at: at}
		for _, f := range flows {
			s.delivered(f)
		}
		rows = append(rows, s.rows...)
	}
	mb, mbps = Measured(t, rows)
	return mb, mbps, nil
}

func byReceiver(flows []wire.Flow) map[string][]wire.Flow {
	out := map[string][]wire.Flow{}
	for _, f := range flows {
		out[f.To] = append(out[f.To], f)
	}
	return out
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
