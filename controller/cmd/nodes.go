package cmd

import "github.com/spf13/cobra"

// NodesCommand is `fieldmesh nodes`: the state of every node of a fleet.
func NodesCommand() *cobra.Command {
	return &cobra.Command{Use: "nodes", Short: "Show the state of every node"}
}
