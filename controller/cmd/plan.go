package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/cmd/judge"
	"fieldmesh.dev/fieldmesh/controller/cmd/predict"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// PlanCommand is `fieldmesh plan`: judge a campaign file, show the schedule that it
// expands to, and predict what it may find. Nothing is driven and no node is asked.
func PlanCommand() *cobra.Command {
	return group("plan", planCheckCommand(), planShowCommand(), planPredictCommand())
}

func planCheckCommand() *cobra.Command {
	var scale string
	var asJSON bool
	c := &cobra.Command{Use: "check FILE", Args: flags.Exactly(1), RunE: func(c *cobra.Command, args []string) error {
		if asJSON {
			return checkPlanJSON(c.OutOrStdout(), args[0], scale)
		}
		campaign, err := loadCampaign(c.ErrOrStderr(), args[0], scale)
		if err != nil {
			return err
		}
		return faultsOf(c.ErrOrStderr(), args[0], checkPlan(c.OutOrStdout(), campaign))
	}}
	addScale(c, &scale)
	addJSON(c, &asJSON)
	return c
}

func checkPlan(w io.Writer, c *plan.Campaign) error {
	trials, warnings, err := judge.Plan(c)
	if err != nil {
		return err
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s: fine: campaign %s, %d trials\n", c.Path, c.Name, trials)
	for _, warning := range warnings {
		fmt.Fprintln(out, warning)
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// wholeRoom says what is wrong if no archive has room for a run of the whole campaign.
func wholeRoom(c *plan.Campaign) tree.Problems {
	return c.Room(func(int) bool { return true })
}

// checkPlanJSON prints what is found as one document; faults end it with an error too.
func checkPlanJSON(w io.Writer, path, scale string) error {
	out := document.Check{File: path, Problems: tree.Problems{}, Warnings: []string{}}
	c, err := scene.Read(path, scale)
	if err == nil {
		var warnings []string
		out.Campaign = c.Name
		out.Trials, warnings, err = judge.Plan(c)
		out.Warnings = append(out.Warnings, warnings...)
	}
	problems, faulty := problemsOf(err)
	if err != nil && !faulty {
		return err
	}
	out.OK, out.Problems = !faulty, append(out.Problems, problems...)
	if err := document.Write(w, out); err != nil || !faulty {
		return err
	}
	return fmt.Errorf("campaign file %s has %s", path, words.Count(len(problems), "problem"))
}

// addScale adds the flag --scale.
func addScale(c *cobra.Command, scale *string) {
	c.Flags().StringVar(scale, "scale", plan.FullScale, "one of the scales that the file declares")
	completes(c, "scale", completeScales)
}

// ofCampaign makes c a command on one campaign, FILE, at one of its scales.
func ofCampaign(c *cobra.Command, do func(io.Writer, *plan.Campaign) error) *cobra.Command {
	var scale string
	c.Args = flags.Exactly(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		campaign, err := loadCampaign(c.ErrOrStderr(), args[0], scale)
		if err != nil {
			return err
		}
		return do(c.OutOrStdout(), campaign)
	}
	addScale(c, &scale)
	return c
}

func planShowCommand() *cobra.Command {
	var asJSON bool
	c := ofCampaign(&cobra.Command{Use: "show FILE"}, func(w io.Writer, c *plan.Campaign) error {
		if asJSON {
			return document.Plan(w, c)
		}
		return show.Plan(w, c, scene.Rehearsal(c))
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	return c
}

func planPredictCommand() *cobra.Command {
	var scale string
	var seeds int
	var asJSON bool
	c := &cobra.Command{Use: "predict FILE", Args: flags.Exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if seeds < 1 || seeds > predict.MostSeeds {
				return misused("--seeds %d: expected 1 to %d", seeds, predict.MostSeeds)
			}
			campaign, err := loadCampaign(c.ErrOrStderr(), args[0], scale)
			if err != nil {
				return err
			}
			p, err := predict.Of(c.Context(), campaign, seeds)
			if err != nil {
				return err
			}
			if asJSON {
				return document.Write(c.OutOrStdout(), p)
			}
			return p.Write(c.OutOrStdout(), campaign)
		}}
	addScale(c, &scale)
	c.Flags().IntVar(&seeds, "seeds", 5, "draws of the field; the first is by the campaign's own seed, and three "+
		"make an interval")
	addJSON(c, &asJSON)
	return c
}

// loadCampaign reads a campaign and prints each of its faults on a line of its
// own, FILE:LINE:COL: message, so that an editor can jump to it.
func loadCampaign(stderr io.Writer, path, scale string) (*plan.Campaign, error) {
	campaign, err := scene.Read(path, scale)
	return campaign, faultsOf(stderr, path, err)
}

// faultsOf prints the faults of a campaign, each on a line, and returns what to say of them; any other error as it is.
func faultsOf(stderr io.Writer, path string, err error) error {
	problems, faulty := problemsOf(err)
	if !faulty {
		return err
	}
	if _, err := fmt.Fprintln(stderr, problems.Error()); err != nil {
		return fmt.Errorf("print problems: %w", err)
	}
	return fmt.Errorf("campaign file %s has %s", path, words.Count(len(problems), "problem"))
}
