package cmd

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// addJSON adds the flag --json of a command that has a result.
func addJSON(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print one JSON document instead")
}

// printing makes c a command that prints what find returns: the text, or with --json
// the document.
func printing(c *cobra.Command, find func(c *cobra.Command, args []string) (doc any, text func(io.Writer) error,
	err error)) *cobra.Command {
	var asJSON bool
	c.RunE = func(c *cobra.Command, args []string) error {
		doc, text, err := find(c, args)
		if err != nil {
			return err
		}
		if asJSON {
			return document.Write(c.OutOrStdout(), doc)
		}
		return text(c.OutOrStdout())
	}
	addJSON(c, &asJSON)
	return c
}

// problemsOf are a campaign file's faults, if that is what an error is about.
func problemsOf(err error) (tree.Problems, bool) {
	var problems tree.Problems
	ok := errors.As(err, &problems)
	return problems, ok
}
