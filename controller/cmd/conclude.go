package cmd

import (
	"fmt"
	"io"

	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// conclude writes the report of what there is so far, prints the result table
// and says where the report is.
func (s *session) conclude(out io.Writer) error {
	if len(s.archive.Decisions()) == 0 {
		return nil
	}
	path, of, err := output.Report(s.archive)
	if err != nil {
		return err
	}
	if err := output.Table(out, s.archive, of.Rows); err != nil {
		return err
	}
	accepted, planned := 0, 0
	for _, v := range s.archive.Decisions() {
		if t, known := s.archive.Trial(v.Trial); known && v.Outcome == wire.Accepted && s.archive.Drives(t) {
			accepted++
		}
	}
	for _, t := range s.plan.Trials {
		if s.archive.Drives(t) {
			planned++
		}
	}
	if stop := s.archive.Stopped(); stop != nil {
		if _, err := fmt.Fprintf(out, "\nstopped after block %d: %s\n", stop.Blocks, stop.Reason); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "\n%d of %d trials accepted\nreport: %s\n", accepted, planned, path)
	return err
}
