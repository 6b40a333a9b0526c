package threats

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// IncompleteCaptures reports the trials that count whose captures are not whole, so
// that numbers are absent which other trials have.
func IncompleteCaptures(d *evidence.Run) (*Threat, string) {
	captured, trials := 0, 0
	var all []string
	for _, a := range d.Attempts {
		if !d.Counts(a) || a.Trial.Capture == nil {
			continue
		}
		captured++
		if len(a.Lacks) > 0 {
			trials++
		}
		for _, l := range a.Lacks {
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
	return &Threat{"Captures are incomplete", text}, ""
}
