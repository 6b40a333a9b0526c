package threats

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// withoutNumbers tells which accepted trials have no amount, and why each has none.
func withoutNumbers(d *evidence.Run) (*Threat, string) {
	var all []string
	for _, a := range d.Attempts {
		if !d.Counts(a) {
			continue
		}
		why := withoutDelay(a)
		if a.Mbps == nil && (len(a.Trial.Measured()) > 0 || !a.Trial.MeasuresDelay()) {
			why = append(why, cmp.Or(a.Unmeasured, "its records do not say why"))
		}
		if len(why) > 0 {
			all = append(all, fmt.Sprintf("%d.%d: %s", a.Trial.Number, a.Attempt, strings.Join(why, "; ")))
		}
	}
	if len(all) == 0 {
		return nil, ""
	}
	text := fmt.Sprintf("%s without a transferred amount or a delay (%s). They are in no mean.",
		words.Count(len(all), "accepted trial"), shortList(all))
	return &Threat{"Accepted trials without a result", text}, ""
}

// withoutDelay tells which flows of kind delay left no whole record.
func withoutDelay(a evidence.Attempt) []string {
	var out []string
	for _, f := range a.Trial.Traffic {
		if f.Kind == wire.KindDelay && metrics.Value(a.Rows, f.Name, metrics.DatagramsSent) == nil {
			out = append(out, fmt.Sprintf("flow %s: %s did not record its end", f.Name, f.From))
		}
	}
	return out
}

// olderAgents tells which results were judged by less than the rules have.
func olderAgents(d *evidence.Run) (*Threat, string) {
	trials := map[string][]string{} // what is not recorded → where
	for _, a := range d.Results() {
		for _, what := range a.Unjudged {
			trials[what] = append(trials[what], fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt))
		}
	}
	if len(trials) == 0 {
		return nil, ""
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(trials)) {
		parts = append(parts, fmt.Sprintf("%s (trials %s)", what, shortList(trials[what])))
	}
	return &Threat{"Agents recorded less than attempts are judged by",
		"In some accepted trials a node did not record " +
			strings.Join(parts, ", or ") + ", as agents of older versions do not. " +
			"What the rules of acceptance say of it was not applied to these trials."}, ""
}

// captureDrops tells what the kernel did not let the captures of accepted trials
// have.
func captureDrops(d *evidence.Run) (*Threat, string) {
	accepted := map[wire.TrialKey]bool{}
	for _, a := range d.Attempts {
		if a.Accepted() && !a.Calibration() {
			accepted[a.TrialKey] = true
		}
	}
	known, dropped, total := 0, 0, 0.0
	var where []string
	for _, r := range d.Table {
		key := wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}
		if r.Name != metrics.CaptureDropped || !accepted[key] {
			continue
		}
		if known++; r.Value > 0 {
			dropped, total = dropped+1, total+r.Value
			where = append(where, fmt.Sprintf("%d.%d: %.0f", r.Trial, r.Attempt, r.Value))
		}
	}
	switch {
	case known == 0:
		return nil, ""
	case dropped == 0:
		return nil, fmt.Sprintf("The kernels dropped nothing from the captures of %s.",
			words.Count(known, "accepted trial"))
	}
	text := fmt.Sprintf("The kernels dropped %.0f packets from the captures of %d of %s for lack of room (%s). "+
		"By captures, loss may be too high and routing's overhead too low by as much.",
		total, dropped, words.Count(known, "accepted trial"), shortList(where))
	return &Threat{"Captures lack packets", text}, ""
}
