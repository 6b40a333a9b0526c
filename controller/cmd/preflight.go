package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/screen"
)

// ErrPreflight is returned when a need is not met; the table has said which.
var ErrPreflight = errors.New("the fleet cannot run this campaign as it is")

type preflightFlags struct {
	fleet    string
	asJSON   bool
	time     time.Duration
	roadM    float64
	scan     bool
	patience time.Duration
}

// PreflightCommand is `fieldmesh preflight FILE`: every node, every need of the
// plan, and the cure of each that is not met.
func PreflightCommand() *cobra.Command {
	var f preflightFlags
	c := &cobra.Command{Use: "preflight FILE", Args: flags.Exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.patience < 0 {
				return misused("--patience %v: expected 0s or more", f.patience)
			}
			campaign, err := loadCampaign(c.ErrOrStderr(), args[0], plan.FullScale)
			if err != nil {
				return err
			}
			fl, err := fleet.Load(f.fleet)
			if err != nil {
				return err
			}
			report, err := preflight.Patiently(c.Context(), f.patience,
				func(ctx context.Context) (preflight.Report, error) {
					return preflight.Fleet(ctx, campaign, fl,
						preflight.Given{Seconds: f.time.Seconds(), RoadM: f.roadM}, f.scan)
				})
			if err != nil {
				return err
			}
			return printPreflight(c.OutOrStdout(), report, f.asJSON)
		}}
	c.Flags().StringVar(&f.fleet, "fleet", defaultFleet, "the fleet file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object instead of a table")
	c.Flags().DurationVar(&f.time, "time", 0, "how long the road can be used, such as 2h30m")
	c.Flags().DurationVar(&f.patience, "patience", 0, "how long to look again while the need generator is not met, "+
		"such as 30s")
	c.Flags().BoolVar(&f.scan, "scan", false, "have every radio listen on the campaign's channels for others who "+
		"use them")
	c.Flags().Float64Var(&f.roadM, "road-m", 0, "metres of straight road that can be driven, on both sides of the "+
		"roadside node together")
	return c
}

func printPreflight(out io.Writer, r preflight.Report, asJSON bool) error {
	write := preflightTable
	if asJSON {
		write = func(out io.Writer, r preflight.Report) error { return document.Write(out, r) }
	}
	if err := write(out, r); err != nil {
		return fmt.Errorf("print preflight: %w", err)
	}
	if !r.Pass {
		return ErrPreflight
	}
	return nil
}

// preflightTable is a line per need, with the cure under those that are not met.
func preflightTable(out io.Writer, r preflight.Report) error {
	states := map[string]string{preflight.Met: "ok", preflight.Unmet: "NOT MET", preflight.Unknown: "?",
		preflight.Unneeded: "-"}
	columns := screen.Columns(out)
	out = terminal.Writer(out) // a node's words may be anybody's
	var table screen.Table
	table.Row("NODE", "NEED", "", "FOUND")
	unmet := 0
	for _, i := range r.Items {
		table.Row(cmp.Or(i.Node, "-"), i.Need, states[i.State], i.Found)
		switch {
		case i.State == preflight.Unmet:
			unmet++
			table.Row("", "", "", "→ "+i.Cure)
		case i.Cure != "":
			table.Row("", "", "", "  "+i.Cure)
		}
	}
	if err := table.Write(out, columns); err != nil {
		return err
	}
	verdict := "every need is met that can be looked at from here"
	if unmet > 0 {
		verdict = words.Count(unmet, "need") + " not met"
	}
	_, err := fmt.Fprintln(out, "\n"+r.Campaign+": "+verdict)
	return err
}
