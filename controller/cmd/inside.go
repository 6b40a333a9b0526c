package cmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/relay"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// fieldBootCommand is the first process of a kernel in virtual time.
func fieldBootCommand() *cobra.Command {
	return &cobra.Command{Use: "boot JOB", Hidden: true, Args: flags.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error { return virtual.Boot(args[0]) }}
}

// fieldDriveCommand is what rehearse does inside a kernel in virtual time: it
// drives a run that was made outside, and tells its steps.
func fieldDriveCommand() *cobra.Command {
	var f rehearseFlags
	var patience time.Duration
	c := &cobra.Command{Use: "drive RUN", Hidden: true, Args: flags.Exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			t := relay.NewTeller(c.OutOrStdout())
			f.resume, f.fields, f.dir, f.patience = args[0], 1, "/var/lib/fieldmesh/rehearsal", patience
			s, err := openSession(f.runFlags, "", archive.PlaceRehearsal)
			if err == nil {
				err = s.inFields(c.Context(), f, func(p run.Progress) { t.Tell(relay.Line{Step: &p}) })
				if cerr := s.close(); err == nil {
					err = cerr
				}
			}
			end := &relay.End{}
			if err != nil {
				end.Error, end.Unmet = err.Error(), errors.Is(err, errUnmet)
			}
			t.Tell(relay.Line{Ended: end})
			return t.Err
		}}
	c.Flags().DurationVar(&patience, "patience", 0, "as of rehearse")
	c.Flags().StringVar(&f.agent, "agent", "", "the agent's program")
	return c
}
