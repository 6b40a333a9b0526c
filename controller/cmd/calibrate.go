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
)

// CalibrateCommand is `fieldmesh calibrate RUN`.
func CalibrateCommand() *cobra.Command {
	var to string
	var asJSON bool
	c := ofRun(&cobra.Command{
		Use:   "calibrate RUN",
		Short: "Fit the emulated radio to what a run recorded, and write the campaign to rehearse with it",
		Long: "Calibrate fits how signal falls with distance, the shadowing about that and the differences of the " +
			"hardware units to the signals " +
			"and GPS positions of a run's accepted attempts, and prints each with its 95 % interval, and what the " +
			"run cannot tell. It writes the " +
			"run's campaign with the result in its section `field`, ready for `fieldmesh rehearse`: into the run's " +
			"folder, or with --output elsewhere.",
	}, func(c *cobra.Command, a *archive.Archive) error {
		r, err := calibrate.Run(a)
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
	addJSON(c, &asJSON)
	return c
}

// CompareCommand is `fieldmesh compare ROAD REHEARSAL`.
func CompareCommand() *cobra.Command {
	var runs string
	c := printing(&cobra.Command{
		Use:   "compare ROAD REHEARSAL",
		Short: "Compare a road run with its rehearsal, cell by cell",
		Long: "Compare prints, for every cell of the design, throughput, loss and signal of the accepted trials of " +
			"both runs with their 95 % intervals, " +
			"and the difference with its own. Where either has fewer than three values there is no interval. It only " +
			"reads; neither run need be finished.",
		Args: flags.Exactly(2),
	}, func(_ *cobra.Command, args []string) (any, func(io.Writer) error, error) {
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
