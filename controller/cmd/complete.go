package cmd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
)

// runsOf is the folder of runs that a command is given.
func runsOf(c *cobra.Command) string {
	runs, _ := c.Flags().GetString("runs") // "" where there is no such flag
	return runs
}

// completeRuns offers the runs of a folder; another folder may be typed too.
func completeRuns(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	found, _ := filepath.Glob(filepath.Join(runsOf(c), "*", "run.json")) // only a bad pattern is an error
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeScales offers the scales that the campaign file declares which is the command's argument.
func completeScales(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := []string{plan.FullScale}
	if len(args) > 0 {
		var campaign struct {
			Scales map[string]any `yaml:"scales"`
		}
		raw, err := os.ReadFile(args[0])
		if err == nil && yaml.Unmarshal(raw, &campaign) == nil {
			names = append(names, slices.Sorted(maps.Keys(campaign.Scales))...)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeTrials offers the trials of the run that is the command's argument.
func completeTrials(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var numbers []string
	if len(args) > 0 {
		if a, err := archive.Read(runFolder(runsOf(c), args[0])); err == nil {
			for _, t := range a.Info().Plan.Trials {
				numbers = append(numbers, strconv.Itoa(t.Number))
			}
		}
	}
	return numbers, cobra.ShellCompDirectiveNoFileComp
}

// completes has a flag of c completed.
func completes(c *cobra.Command, flag string, by cobra.CompletionFunc) {
	_ = c.RegisterFlagCompletionFunc(flag, by) // fails where c has no such flag, or has it completed already
}
