package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// addJSON adds the flag --json of a command that has a result.
func addJSON(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print one JSON document instead")
}

// problemsOf are a campaign file's faults, if that is what an error is about.
func problemsOf(err error) (tree.Problems, bool) {
	var problems tree.Problems
	ok := errors.As(err, &problems)
	return problems, ok
}
