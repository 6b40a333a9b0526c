package metrics

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Measured is the result of an attempt, in MB and in Mbit/s: the sum over its
// measured flows, absent as soon as one of them is.
func Measured(t wire.Trial, rows []Row) (mb, mbps *float64) {
	amount, rate := Sum(rows, t.Measured(), TransferredMB), Sum(rows, t.Measured(), ThroughputBps)
	if amount == nil || rate == nil {
		return nil, nil
	}
	return amount, new(*rate / 1e6)
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
