package report

import (
	"cmp"
	"fmt"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// withoutNumbers tells which accepted trials have no amount, and why each has none.
func withoutNumbers(d *data) (*threat, string) {
	var all []string
	for _, a := range d.attempts {
		if !d.counts(a) {
			continue
		}
		why := withoutDelay(a)
		if a.Mbps == nil && (len(a.Trial.Measured()) > 0 || !a.Trial.MeasuresDelay()) {
			why = append(why, cmp.Or(a.unmeasured, "its records do not say why"))
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
	return &threat{"Accepted trials without a result", text}, ""
}

// withoutDelay tells which flows of kind delay left no whole record.
func withoutDelay(a attempt) []string {
	var out []string
	for _, f := range a.Trial.Traffic {
		if f.Kind == wire.KindDelay && metrics.Value(a.rows, f.Name, metrics.DatagramsSent) == nil {
			out = append(out, fmt.Sprintf("flow %s: %s did not record its end", f.Name, f.From))
		}
	}
	return out
}

// olderAgents tells which results were judged by less than the rules have.
func olderAgents(d *data) (*threat, string) {
	trials := map[string][]string{} // what is not recorded → where
	for _, a := range d.results() {
		for _, what := range a.unjudged {
			trials[what] = append(trials[what], fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt))
		}
	}
	if len(trials) == 0 {
		return nil, ""
	}
	var parts []string
	for _, what := range sortedKeys(trials) {
		parts = append(parts, fmt.Sprintf("%s (trials %s)", what, shortList(trials[what])))
	}
	return &threat{"Agents recorded less than attempts are judged by",
		"In some accepted trials a node did not record " +
			strings.Join(parts, ", or ") + ", as agents of older versions do not. " +
			"What the rules of acceptance say of it was not applied to these trials."}, ""
}

// captureDrops tells what the kernel did not let the captures of accepted trials
// have.
func captureDrops(d *data) (*threat, string) {
	accepted := map[wire.TrialKey]bool{}
	for _, a := range d.attempts {
		if a.accepted() && !a.calibration() {
			accepted[a.TrialKey] = true
		}
	}
	known, dropped, total := 0, 0, 0.0
	var where []string
	for _, r := range d.table {
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
	return &threat{"Captures lack packets", text}, ""
}
