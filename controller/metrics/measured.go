package metrics

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Measured sums the flows of an attempt that are measured, in MB and in Mbit/s;
// absent as soon as one of them is.
func Measured(t wire.Trial, rows []Row) (mb, mbps *float64) {
	var amount, rate float64
	flows := 0
	for _, f := range t.Traffic {
		if f.Background || f.Kind != "iperf3_tcp" {
			continue
		}
		m, r := Value(rows, f.Name, TransferredMB), Value(rows, f.Name, ThroughputBps)
		if m == nil || r == nil {
			return nil, nil
		}
		amount, rate, flows = amount+*m, rate+*r/1e6, flows+1
	}
	if flows == 0 {
		return nil, nil
	}
	return &amount, &rate
}
