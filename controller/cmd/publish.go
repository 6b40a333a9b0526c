package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/influx"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/flags"
	line "fieldmesh.dev/fieldmesh/internal/influx"
)

// PublishCommand is `fieldmesh publish RUN --influx URL`.
func PublishCommand() *cobra.Command {
	var db influxFlags
	var runs string
	var patience time.Duration
	c := &cobra.Command{Use: "publish RUN --influx URL", Args: flags.Exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if db.target.URL == "" {
				return errors.New("publish: --influx is missing: the URL of the InfluxDB, http://HOST:PORT")
			}
			if patience < 0 {
				return misused("--patience %v: expected 0s or more", patience)
			}
			return publish(c.Context(), runs, args[0], db, patience, c.OutOrStdout())
		}}
	db.add(c)
	addRuns(c, &runs)
	c.ValidArgsFunction = completeRuns
	c.Flags().DurationVar(&patience, "patience", time.Minute, "how long to wait for an InfluxDB that is away")
	return c
}

func publish(ctx context.Context, runs, given string, db influxFlags, patience time.Duration, out io.Writer) error {
	w, err := line.Open(db.target, db.passwordFile, logger())
	if err != nil {
		return err
	}
	w.Patience = max(patience, 1) // none at all would be for ever
	if err := w.Prepare(ctx); err != nil {
		return err
	}
	s, err := influx.Publish(ctx, runFolder(runs, given), w)
	if err = errors.Join(explainRun(runs, given, err), printPublished(out, s, w.Target.String())); err != nil {
		return err
	}
	nothing := s.Points+s.Results == 0 && len(s.Undated)+int(s.Waiting) > 0
	if s.RefusedN+s.Damaged+s.Unreckoned > 0 || nothing {
		return unmet{fmt.Errorf("publish %s: %s has not all of it; what it lacks is named above", given, w.Target)}
	}
	return nil
}

// printPublished says how many records are there now, and what is not and why.
func printPublished(out io.Writer, s influx.Summary, where string) error {
	_, err := fmt.Fprintf(out, "%s and %s: %s\n", words.Count(int(s.Points), "record"),
		words.Count(int(s.Results), "result"), where)
	note := func(n int64, format string, args ...any) {
		if n > 0 && err == nil {
			_, err = fmt.Fprintf(out, "  "+format+"\n", args...)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.Undated)) {
		note(1, "left out: %d of node %s, because no record tells their time", s.Undated[node], node)
	}
	note(s.Waiting, "left out: %d whose attempt, or one beside it, is not judged yet; publish again then", s.Waiting)
	note(s.Unknown, "left out: %d of kinds that this version does not know", s.Unknown)
	note(s.Damaged, "left out: %d lines that are not records; see fieldmesh verify", s.Damaged)
	note(s.Unreckoned, "left out: results of %d attempts that hold lines that are not records; see fieldmesh verify",
		s.Unreckoned)
	note(s.Kept, "kept by the database: what it had of %d attempts' results, numbers too that late records made "+
		"unknown (%v); wipe the database and publish again", s.Kept, s.KeptWhy)
	note(s.RefusedN, "refused by the database: %d, for example:", s.RefusedN)
	for _, r := range s.Refused {
		note(1, "  %s: %.120s", r.Reason, r.Line)
	}
	return err
}
