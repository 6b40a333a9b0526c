package field

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

const (
	tallyEvery = time.Second
	maxTallies = 65 * 60 // of the longest window that a plan may have, and of what comes after it
)

// tally is what every node had put on the air at a moment of the boot clock.
type tally struct {
	at     time.Duration
	byNode []medium.ClassCounts
}

// addTally keeps the newest of them.
func addTally(kept []tally, t tally) []tally {
	if len(kept) == maxTallies {
		kept = append(kept[:0:0], kept[maxTallies/10:]...)
	}
	return append(kept, t)
}

// rates are the frames a second that every node put on the air, from the first
// to the last tally within an interval; nil where there are not two.
func rates(kept []tally, open, closed time.Duration) []map[string]float64 {
	var first, last *tally
	for i := range kept {
		if t := &kept[i]; t.at >= open && t.at <= closed {
			if first == nil {
				first = t
			}
			last = t
		}
	}
	if first == last {
		return nil
	}
	out := make([]map[string]float64, len(last.byNode))
	for node := range out {
		out[node] = map[string]float64{}
		for c, n := range last.byNode[node] {
			if medium.Class(c) == medium.Management && n == 0 {
				continue // interfaces of Ethernet have none
			}
			out[node][medium.Class(c).String()] = float64(n-first.byNode[node][c]) / (last.at - first.at).Seconds()
		}
	}
	return out
}
