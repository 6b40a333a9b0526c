package metrics

import (
	"cmp"
	"slices"
)

// Definition says what a number of metrics.csv is.
type Definition struct {
	Name string // words in capitals stand for what varies
	Unit string
	Text string
}

//go:generate go test -run TestEveryDefinitionIsListed -update .

// Definitions are those of every number that an attempt may have, by name.
func Definitions() []Definition {
	const statistic = " (STATISTIC: mean, min, p50, p95, p99 or max)"
	all := append(declared(),
		definition{"one_way_delay_STATISTIC_ms", "ms", oneWayText + statistic},
		definition{"round_trip_STATISTIC_ms", "ms", roundTripText + statistic},
		delayOf("delay_round_trip", "STATISTIC", delayRoundTripText+" (STATISTIC: p50, p95 or p99)"),
		delayOf("delay_out", "STATISTIC", delayOutText+" (STATISTIC: p50, p95 or p99)"),
		delayOf("delay_back", "STATISTIC", delayBackText+" (STATISTIC: p50, p95 or p99)"),
		macFrames("CLASS"),
		definition{"WHO_messages_KIND_per_s", "messages/s", "routing messages of one kind in the window, mean of the " +
			"nodes (WHO: daemon, by the daemons' own counts, or captured, by captures)"},
		definition{"WHO_messages_KIND_bytes_per_s", "B/s", "their bytes with their own headers"})
	var out []Definition
	for _, d := range all {
		out = append(out, Definition{d.name, d.unit, d.text})
	}
	slices.SortFunc(out, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
