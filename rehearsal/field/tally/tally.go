// Package tally is how many frames a second every node of a field puts on the air.
package tally

import (
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

const (
	// Every is how often there is one.
	Every      = time.Second
	maxTallies = 65 * 60 // of the longest window that a plan may have, and of what comes after it
)

// Tally is what every node had put on the air at a moment of the boot clock.
type Tally struct {
	At     time.Duration
	ByNode []medium.ClassCounts
}

// Add keeps the newest of them.
func Add(kept []Tally, t Tally) []Tally {
	if len(kept) == maxTallies {
		kept = append(kept[:0:0], kept[maxTallies/10:]...)
	}
	return append(kept, t)
}

// Rates are the frames a second that every node put on the air, from the first
// to the last tally within an interval; nil where there are not two.
func Rates(kept []Tally, open, closed time.Duration) []map[string]float64 {
	var first, last *Tally
	for i := range kept {
		if t := &kept[i]; t.At >= open && t.At <= closed {
			if first == nil {
				first = t
			}
			last = t
		}
	}
	if first == last {
		return nil
	}
	out := make([]map[string]float64, len(last.ByNode))
	for node := range out {
		out[node] = map[string]float64{}
		for c, n := range last.ByNode[node] {
			if medium.Class(c) == medium.Management && n == 0 {
				continue // interfaces of Ethernet have none
			}
			out[node][medium.Class(c).String()] = float64(n-first.ByNode[node][c]) / (last.At - first.At).Seconds()
		}
	}
	return out
}
