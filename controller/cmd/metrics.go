package cmd

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// MetricsCommand is `fieldmesh metrics RUN`.
func MetricsCommand() *cobra.Command {
	var stdout, asJSON bool
	c := ofRun(&cobra.Command{Use: "metrics RUN"}, func(c *cobra.Command, a *archive.Archive) error {
		if asJSON && stdout {
			return misused("--stdout prints the table, and --json a document; leave one of the two out")
		}
		if asJSON {
			return document.Metrics(c.OutOrStdout(), a)
		}
		if stdout {
			written, err := metrics.StreamCSV(c.OutOrStdout(), nil, a)
			return errors.Join(err, written.Unreadable)
		}
		return writeMetrics(a, c.OutOrStdout())
	})
	c.Flags().BoolVar(&stdout, "stdout", false, "print the table instead of writing metrics.csv")
	addJSON(c, &asJSON)
	return c
}

func writeMetrics(a *archive.Archive, out io.Writer) error {
	path := filepath.Join(a.Dir(), "metrics.csv")
	var written metrics.Streamed
	if err := output.ReplaceFile(path, func(w io.Writer) (err error) {
		written, err = metrics.StreamCSV(w, nil, a)
		return err
	}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "metrics: %s (%d numbers of %d attempts)\n", path, written.Numbers, written.Attempts)
	return errors.Join(err, written.Unreadable)
}
