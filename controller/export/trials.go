package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// trialColumns are those that every run has; the factors' come after them.
var trialColumns = []column{
	{name: "run", meaning: "name of the run"},
	{name: "trial", meaning: "number of the trial in the schedule"},
	{name: "attempt", meaning: "which attempt at the trial"},
	{name: "outcome", meaning: "accepted, rejected, failed or interrupted; empty while it is not judged"},
	{name: "counts", meaning: "1 where the attempt is a result: accepted, no calibration, and driven before the run " +
		"had enough; empty while it is not judged"},
	{name: "reason", meaning: "why it was not accepted; of a redacted export its code alone"},
	{name: "block", meaning: "block of the design"},
	{name: "repetition", meaning: "repetition of the cell"},
	{name: "direction", meaning: "direction of travel"},
	{name: "pass", meaning: "calibration of what answers no question of the campaign's"},
	{name: "sender", meaning: "node that sends"},
	{name: "receiver", meaning: "node that receives"},
	{name: "car", meaning: "node in the car"},
	{name: "target_mps", unit: "m/s", meaning: "speed of the car as planned"},
	{name: "duration_s", unit: "s", meaning: "length of the measuring window"},
}

// writeTrials writes one line an attempt. What is not known is an empty cell. Of a
// reason only the code is written where the export is redacted.
func writeTrials(w io.Writer, a *archive.Archive, redacted bool) error {
	attempts, err := a.Trials()
	if err != nil {
		return err
	}
	factors := factorsOf(a.Info().Plan)
	c := csv.NewWriter(w)
	var head []string
	for _, c := range trialColumns {
		head = append(head, c.name)
	}
	for _, name := range factors {
		if slices.ContainsFunc(trialColumns, func(c column) bool { return c.name == name }) {
			name += "_level" // a factor may have any name
		}
		head = append(head, metrics.Cell(name))
	}
	if err := c.Write(head); err != nil {
		return fmt.Errorf("write trials: %w", err)
	}
	for _, at := range attempts {
		if err := c.Write(trialLine(a, at, factors, redacted)); err != nil {
			return fmt.Errorf("write trials: %w", err)
		}
	}
	c.Flush()
	return c.Error()
}

func factorsOf(p wire.RunPlan) []string {
	names := map[string]bool{}
	for _, t := range p.Trials {
		for name := range t.Factors {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func trialLine(a *archive.Archive, at archive.Attempt, factors []string, redacted bool) []string {
	t, _ := a.Trial(at.Trial) // one that the plan lacks is told without what was planned
	outcome, counts, reason, target := "", "", "", ""
	if at.Verdict != nil {
		outcome, counts, reason = string(at.Verdict.Outcome), "0", at.Verdict.Reason.String()
		if redacted {
			reason = codeOf(at.Verdict.Reason)
		}
		if archive.Counts(t, at.Verdict, a.Stopped()) {
			counts = "1"
		}
	}
	if t.SpeedMps != nil {
		target = metrics.Number(*t.SpeedMps)
	}
	line := []string{
		metrics.Cell(a.Info().Run), strconv.Itoa(at.Trial), strconv.Itoa(at.Attempt), metrics.Cell(outcome), counts,
		metrics.Cell(reason), strconv.Itoa(t.Block), strconv.Itoa(t.Repetition), metrics.Cell(t.Direction),
		metrics.Cell(t.Pass), metrics.Cell(t.Sender), metrics.Cell(t.Receiver), metrics.Cell(t.Car),
		target, metrics.Number(t.DurationS),
	}
	for _, name := range factors {
		line = append(line, metrics.Cell(t.Factors[name]))
	}
	return line
}
