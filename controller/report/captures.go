package report

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// lacksOf says of an attempt's captures which are not whole, and why.
func lacksOf(lacks []metrics.Lack, captured []metrics.Row) []string {
	var out []string
	for _, l := range lacks {
		out = append(out, l.Node+": "+l.What)
	}
	if n := metrics.Value(captured, "", metrics.CapturesUnreadable); n != nil {
		out = append(out, fmt.Sprintf("of %s the capture cannot be read: fieldmesh metrics says where it is at fault",
			words.Count(int(*n), "node")))
	}
	return out
}

// incompleteCaptures reports the trials that count whose captures are not whole, so
// that numbers are absent which other trials have.
func incompleteCaptures(d *data) (*threat, string) {
	captured, trials := 0, 0
	var all []string
	for _, a := range d.attempts {
		if !d.counts(a) || a.Trial.Capture == nil {
			continue
		}
		captured++
		if len(a.lacks) > 0 {
			trials++
		}
		for _, l := range a.lacks {
			all = append(all, fmt.Sprintf("trial %d.%d, %s", a.Trial.Number, a.Attempt, l))
		}
	}
	switch {
	case captured == 0:
		return nil, ""
	case trials == 0:
		return nil, fmt.Sprintf("The captures of %s hold the whole window at every node.",
			words.Count(captured, "accepted trial"))
	}
	text := fmt.Sprintf("Of %s that captured, %d lack a part at a node. "+
		"Loss, delay and delivery of the flows there are left out, and what routing sent in all, whose means are "+
		"then of the other trials: %s.",
		words.Count(captured, "accepted trial"), trials, shortList(all))
	return &threat{"Captures are incomplete", text}, ""
}
