package cmd

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// MetricsCommand is `fieldmesh metrics RUN`.
func MetricsCommand() *cobra.Command {
	var runs string
	var stdout bool
	c := &cobra.Command{
		Use:   "metrics RUN",
		Short: "Compute a run's numbers from its records and packet captures",
		Long: "Metrics writes metrics.csv into the folder of the run, named or given as a folder: one number a line, " +
			"with its unit and its " +
			"definition. Captures at both ends of a flow give delays, loss, goodput, retransmissions, reordering and " +
			"the time to connect; they " +
			"are read as streams, however large they are. A capture that is cut or corrupt is named with the place " +
			"of its fault, and the rest is computed all the same.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := openRun(runs, args[0])
			if err != nil {
				return err
			}
			if stdout {
				_, _, unreadable, err := streamMetrics(a, c.OutOrStdout())
				return errors.Join(err, unreadable)
			}
			return writeMetrics(a, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&runs, "runs", "runs", "folder that holds the runs")
	c.Flags().BoolVar(&stdout, "stdout", false, "print the table instead of writing metrics.csv")
	return c
}

func writeMetrics(a *archive.Archive, out io.Writer) error {
	path := filepath.Join(a.Dir(), "metrics.csv")
	var numbers, attempts int
	var unreadable error
	if err := replaceFile(path, func(w io.Writer) (err error) {
		numbers, attempts, unreadable, err = streamMetrics(a, w)
		return err
	}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "metrics: %s (%d numbers of %d attempts)\n", path, numbers, attempts)
	return errors.Join(err, unreadable)
}

// streamMetrics writes the table attempt by attempt.
func streamMetrics(a *archive.Archive, w io.Writer) (numbers, attempts int, unreadable, err error) {
	all, err := a.Trials()
	if err != nil {
		return 0, 0, nil, fmt.Errorf("list trials: %w", err)
	}
	table, err := metrics.NewTable(w)
	if err != nil {
		return 0, 0, nil, err
	}
	for _, at := range all {
		rows, bad, err := metrics.OfWhole(a, at.TrialKey)
		if err != nil {
			return numbers, attempts, unreadable, err
		}
		if err := table.Write(rows); err != nil {
			return numbers, attempts, unreadable, err
		}
		unreadable = errors.Join(unreadable, bad)
		numbers, attempts = numbers+len(rows), attempts+1
	}
	return numbers, attempts, unreadable, table.Flush()
}
