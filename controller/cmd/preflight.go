package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
)

// ErrPreflight is returned when a need is not met; the table has said which.
var ErrPreflight = errors.New("the fleet cannot run this campaign as it is")

type preflightFlags struct {
	fleet  string
	asJSON bool
	time   time.Duration
	roadM  float64
	scan   bool
}

// PreflightCommand is `fieldmesh preflight FILE`: every node, every need of the
// plan, and the cure of each that is not met.
func PreflightCommand() *cobra.Command {
	var f preflightFlags
	c := &cobra.Command{
		Use:   "preflight FILE",
		Short: "Check every node of a fleet against what a campaign needs",
		Long: `Asks every node that the campaign in FILE names, and prints a table of every
need with what was found, and the cure of each that is not met. Nothing is
changed and nothing is driven. The exit status is not zero when a need is not
met. What only a person can tell, such as the length of the road, is "unknown"
and does not fail; --time and --road-m have it checked.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			campaign, err := loadCampaign(c.ErrOrStderr(), args[0], plan.FullScale)
			if err != nil {
				return err
			}
			report, err := f.ask(c, campaign)
			if err != nil {
				return err
			}
			return printPreflight(c.OutOrStdout(), report, f.asJSON)
		},
	}
	c.Flags().StringVar(&f.fleet, "fleet", defaultFleet, "the fleet file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object instead of a table")
	c.Flags().DurationVar(&f.time, "time", 0, "how long the road can be used, such as 2h30m")
	c.Flags().BoolVar(&f.scan, "scan", false, "have every radio listen on the campaign's channels for others who "+
		"use them")
	c.Flags().Float64Var(&f.roadM, "road-m", 0, "metres of straight road that can be driven")
	return c
}

func (f preflightFlags) ask(c *cobra.Command, campaign *plan.Campaign) (preflight.Report, error) {
	fl, err := fleet.Load(f.fleet)
	if err != nil {
		return preflight.Report{}, err
	}
	identity, err := fl.Identity()
	if err != nil {
		return preflight.Report{}, err
	}
	// The key authenticates GO; no node gets this plan.
	p, err := campaign.RunPlan("preflight", make([]byte, 32))
	if err != nil {
		return preflight.Report{}, err
	}
	nodes, rehearsed := map[string]preflight.Node{}, false
	for _, n := range p.Nodes {
		entry, ok := fl.Nodes[n.Name]
		if !ok {
			continue
		}
		client := fleet.NewClient(identity, entry)
		defer client.Close()
		nodes[n.Name], rehearsed = client, rehearsed || entry.Netns != ""
		if f.scan {
			nodes[n.Name] = preflight.Scanning(client, p)
		}
	}
	report := preflight.Report{Campaign: campaign.Name}
	report.Add(preflight.Campaign(campaign, preflight.Given{Seconds: f.time.Seconds(), RoadM: f.roadM}, rehearsed)...)
	seconds := campaign.Estimate().RoadTotalS
	if rehearsed {
		seconds = campaign.Estimate().RehearsalS
	}
	report.Add(preflight.Nodes(c.Context(), p, seconds, nodes)...)
	return report, nil
}

func printPreflight(out io.Writer, r preflight.Report, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("print preflight: %w", err)
		}
	} else if err := preflightTable(out, r); err != nil {
		return fmt.Errorf("print preflight: %w", err)
	}
	if !r.Pass {
		return ErrPreflight
	}
	return nil
}

// preflightTable is a line per need, with the cure under those that are not met.
func preflightTable(out io.Writer, r preflight.Report) error {
	words := map[string]string{preflight.Met: "ok", preflight.Unmet: "NOT MET", preflight.Unknown: "?",
		preflight.Unneeded: "-"}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tNEED\t\tFOUND") //nolint:errcheck // the writer keeps the error for Flush
	unmet := 0
	for _, i := range r.Items {
		// nolint:errcheck // as above
		fmt.Fprintln(table, strings.Join([]string{orDash(i.Node), i.Need, words[i.State], i.Found}, "\t"))
		switch {
		case i.State == preflight.Unmet:
			unmet++
			fmt.Fprintln(table, "\t\t\t→ "+i.Cure) //nolint:errcheck // as above
		case i.Cure != "":
			fmt.Fprintln(table, "\t\t\t  "+i.Cure) //nolint:errcheck // as above
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	verdict := "every need is met that can be looked at from here"
	if unmet > 0 {
		verdict = counted(unmet, "need") + " not met"
	}
	_, err := fmt.Fprintln(out, "\n"+r.Campaign+": "+verdict)
	return err
}
