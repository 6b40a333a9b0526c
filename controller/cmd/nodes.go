package cmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/nodes"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/keys"
)

// defaultFleet is where `fieldmesh keys init` puts the fleet file.
const defaultFleet = "fleet/fleet.yaml"

// NodesCommand is `fieldmesh nodes`: the state of every node of a fleet.
func NodesCommand() *cobra.Command {
	var path string
	var watch, asJSON bool
	var every time.Duration
	command := &cobra.Command{Use: "nodes", Args: flags.None, RunE: func(command *cobra.Command, _ []string) error {
		if every <= 0 {
			return misused("--every %v: expected more than 0s", every)
		}
		f, identity, err := loadFleet(path)
		if err != nil {
			return err
		}
		if len(f.Nodes) == 0 {
			return fmt.Errorf("show nodes: fleet %q has none; `fieldmesh keys pair NODE` adds one", path)
		}
		if watch {
			return nodes.Watch(command.Context(), f, identity, every, asJSON, command.OutOrStdout())
		}
		return nodes.Show(command.Context(), f, identity, asJSON, command.OutOrStdout())
	}}
	command.PersistentFlags().StringVar(&path, "fleet", defaultFleet, "the fleet file")
	command.Flags().BoolVar(&watch, "watch", false, "go on asking until interrupted")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	command.Flags().DurationVar(&every, "every", 2*time.Second, "with --watch, how often to ask")
	command.AddCommand(nodesRestoreCommand(&path), nodesForgetCommand(&path))
	return command
}

// loadFleet reads a fleet file, and the controller's keys that it names.
func loadFleet(path string) (f *fleet.Fleet, identity keys.Identity, err error) {
	if f, err = fleet.Load(path); err == nil {
		identity, err = f.Identity()
	}
	return f, identity, err
}
