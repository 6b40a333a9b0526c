package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/nodes"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// errNotRestored is returned when a node is not as it was; what was printed
// says which.
var errNotRestored = errors.New("not every node was put back")

// nodesRestoreCommand is `fieldmesh nodes restore [NODE...]`. Nodes that hold a
// run continue it when its controller has gone; this is how a person ends it.
func nodesRestoreCommand(path *string) *cobra.Command {
	return &cobra.Command{Use: "restore [NODE...]", RunE: func(c *cobra.Command, names []string) error {
		return withNodes(*path, names, func(clients []*fleet.Client) error {
			return restoreNodes(c.Context(), clients, c.OutOrStdout())
		})
	}}
}

// nodesForgetCommand is `fieldmesh nodes forget RUN [NODE...]`.
func nodesForgetCommand(path *string) *cobra.Command {
	return &cobra.Command{Use: "forget RUN [NODE...]", Args: flags.Some, RunE: func(c *cobra.Command,
		args []string) error {
		return withNodes(*path, args[1:], func(clients []*fleet.Client) error {
			return nodes.Forget(c.Context(), clients, args[0], c.OutOrStdout())
		})
	}}
}

// withNodes does something with the named nodes of a fleet, or with all.
func withNodes(path string, names []string, do func([]*fleet.Client) error) error {
	f, identity, err := loadFleet(path)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = f.Names()
	}
	var clients []*fleet.Client
	for _, n := range names {
		client, err := f.Client(identity, n)
		if err != nil {
			return err
		}
		defer client.Close()
		clients = append(clients, client)
	}
	return do(clients)
}

// restoreNodes tells all at once, and then prints what came of it in order.
func restoreNodes(ctx context.Context, clients []*fleet.Client, out io.Writer) error {
	reports, errs := fleet.RestoreAll(ctx, clients)
	var result error
	for i, c := range clients {
		lines := reports[i].Lines()
		if errs[i] != nil { // it has reported nothing
			lines = []string{errs[i].Error()}
		}
		if errs[i] != nil || len(reports[i].Failed) > 0 {
			result = errNotRestored
		}
		for _, l := range lines {
			if _, err := fmt.Fprintf(out, "%s: %s\n", c.Node().Name, terminal.Text(l)); err != nil {
				return fmt.Errorf("print report: %w", err)
			}
		}
	}
	return result
}
