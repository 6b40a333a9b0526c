package cmd

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/calibrate"
	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/controller/compare"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// CalibrateCommand is `fieldmesh calibrate RUN`.
func CalibrateCommand() *cobra.Command {
	var to string
	var asJSON bool
	var holdOut int
	c := ofRun(&cobra.Command{Use: "calibrate RUN"}, func(c *cobra.Command, a *archive.Archive) error {
		r, err := calibrate.Run(a, holdOut, usualDbm)
		if err != nil {
			return err
		}
		if !asJSON {
			if err := r.Write(c.OutOrStdout()); err != nil {
				return err
			}
		}
		scenario, err := r.Scenario(a.Info().CampaignRaw)
		if err != nil {
			return err
		}
		if to == "" {
			to = filepath.Join(a.Dir(), "calibrated.yaml")
		}
		err = output.ReplaceFile(to, func(w io.Writer) error { _, err := w.Write(scenario); return err })
		if err != nil {
			return err
		}
		if asJSON {
			return document.Write(c.OutOrStdout(), document.Calibration(r, to))
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "scenario: %s\n", to)
		return err
	})
	c.Flags().StringVarP(&to, "output", "o", "", "file for the campaign (default: calibrated.yaml in the run's folder)")
	c.Flags().IntVar(&holdOut, "hold-out", 0, "how many of the last repetitions are not used, so that compare can "+
		"judge a rehearsal by them")
	addJSON(c, &asJSON)
	return c
}

// usualDbm is the power that a rehearsal gives a radio where nothing else is said.
func usualDbm(radio string) float64 {
	_, dbm := phy.RadioDefaults(radio)
	return dbm
}

// CompareCommand is `fieldmesh compare ROAD REHEARSAL`.
func CompareCommand() *cobra.Command {
	var runs string
	c := printing(&cobra.Command{Use: "compare ROAD REHEARSAL", Args: flags.Exactly(2)},
		func(_ *cobra.Command, args []string) (any, func(io.Writer) error, error) {
			road, err := openRun(runs, args[0])
			rehearsal, err2 := openRun(runs, args[1])
			if err := errors.Join(err, err2); err != nil {
				return nil, nil, err
			}
			t, err := compare.Runs(road, rehearsal)
			if err != nil {
				return nil, nil, err
			}
			return document.Compare(t), t.Write, nil
		})
	addRuns(c, &runs)
	return c
}
