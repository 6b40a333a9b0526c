package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// ReportCommand is `fieldmesh report RUN`.
func ReportCommand() *cobra.Command {
	var asJSON bool
	c := ofRun(&cobra.Command{
		Use:   "report RUN",
		Short: "Write a run's report and its table of numbers",
		Long: "Report writes report.html, one file that opens without a network, and metrics.csv into the folder of " +
			"the run, named or " +
			"given as a folder. It only reads what the run recorded, and can be repeated while the run goes.",
	}, func(c *cobra.Command, a *archive.Archive) error {
		path, of, err := writeReport(a)
		if err != nil {
			return err
		}
		if n := len(of.Altered); n > 0 {
			c.PrintErrf("warning: %s changed or missing since the run; `fieldmesh verify %s` names them\n",
				words.Count(n, "file"), a.Dir())
		}
		if asJSON {
			return writeJSON(c.OutOrStdout(), reportJSON{path, filepath.Join(a.Dir(), "metrics.csv"),
				findingsJSON(of.Altered)})
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "report: %s\n", path)
		return err
	})
	addJSON(c, &asJSON)
	return c
}

// ExportCommand is `fieldmesh export RUN`.
func ExportCommand() *cobra.Command {
	var to string
	var o export.Options
	c := ofRun(&cobra.Command{
		Use:   "export RUN",
		Short: "Write a run's numbers, timelines and records for other programs",
		Long: "Export writes results.csv (every accepted attempt, one a line, with its factors and all its numbers), " +
			"trials.csv (every attempt, and what happened to it), " +
			"metrics.csv (one number a line, with unit and definition), timelines.csv (every attempt at 10 Hz), " +
			"records.ndjson (every record as it came), the same records as Parquet tables, one a kind, tracks.gpx " +
			"and tracks.geojson, " +
			"data-dictionary.md (what every column means) and ro-crate-metadata.json (what the run was, with every " +
			"file's checksum) into the " +
			"folder export of the run, or into another; with --captures the packet captures too. It holds one " +
			"attempt at a time, however large " +
			"the run is. In CSV, a text that a spreadsheet would take for a formula begins with an apostrophe.",
	}, func(c *cobra.Command, a *archive.Archive) error {
		if to == "" {
			to = filepath.Join(a.Dir(), "export")
		}
		return exportRun(a, to, o, c.OutOrStdout())
	})
	c.Flags().StringVar(&to, "to", "", "folder to write into (default: export in the run's folder)")
	c.Flags().BoolVar(&o.Captures, "captures", false, "add the packet captures, pcapng, as they were taken")
	c.Flags().BoolVar(&o.Redact, "redact", false, "give other people's radios and networks made-up names, and "+
		"leave out texts, and places and movement outside the measuring windows")
	return c
}

func exportRun(a *archive.Archive, to string, o export.Options, out io.Writer) error {
	paths, err := export.Run(a, to, o)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}

// VerifyCommand is `fieldmesh verify RUN`.
func VerifyCommand() *cobra.Command {
	var runs string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify RUN",
		Short: "Compare a run's files with their checksums",
		Long: "Verify names every file of the run that is missing, changed, truncated, unreadable, or there without " +
			"being named by a " +
			"manifest, and ends with an error when there is one. A run that was not finished has no manifest of its " +
			"own yet: that is said too.",
		Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := runFolder(runs, args[0])
			if _, err := os.Stat(dir); err != nil {
				return explainRun(runs, args[0], fmt.Errorf("verify %q: %w", dir, archive.ErrNoRun))
			}
			findings, err := archive.Verify(dir)
			if err != nil {
				return err
			}
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), verifyJSON{dir, len(findings) == 0,
					findingsJSON(findings)}); err != nil {
					return err
				}
			}
			for _, f := range findings {
				if asJSON {
					break
				}
				if _, err := fmt.Fprintln(c.OutOrStdout(), f); err != nil {
					return err
				}
			}
			if len(findings) > 0 {
				return unmet{fmt.Errorf("verify %q: %s", dir, words.Count(len(findings), "finding"))}
			}
			if asJSON {
				return nil
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: OK: all files match the manifest\n", dir)
			return err
		},
	}
	addRuns(c, &runs)
	addJSON(c, &asJSON)
	c.ValidArgsFunction = completeRuns
	return c
}
