package report

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Summary is one judged attempt as the report reckons it, for others who show
// the same numbers.
type Summary struct {
	wire.TrialKey
	Trial   wire.Trial
	Verdict wire.Verdict
	Section string        // A, B …; empty when the campaign has none
	Unit    string        // hardware in the car
	MB      *float64      // of the measured flows together; nil: not measured
	Mbps    *float64      // likewise
	Rows    []metrics.Row // all its numbers, those of its captures among them
	Records []wire.Record // they must not be changed
}

// Summarise reckons one attempt that has a verdict.
func Summarise(a *archive.Archive, e archive.Attempt) (Summary, error) {
	t, planned := a.Trial(e.Trial)
	if !planned || e.Verdict == nil {
		return Summary{}, fmt.Errorf("summarise trial %d attempt %d: it is not planned, or not judged", e.Trial,
			e.Attempt)
	}
	loaded, err := metrics.Load(a, e.TrialKey)
	if err != nil {
		return Summary{}, fmt.Errorf("summarise: %w", err)
	}
	rows, _ := loaded.AllRows(a) // captures that cannot be read are counted in a row
	p := design.Of(a.Info().Plan.Nodes, t)
	s := Summary{TrialKey: e.TrialKey, Trial: t, Verdict: *e.Verdict, Section: p.Section, Unit: p.Unit, Rows: rows,
		Records: loaded.Records()}
	s.MB, s.Mbps = metrics.Measured(t, rows)
	return s, nil
}
