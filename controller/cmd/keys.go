package cmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// KeysCommand is `fieldmesh keys`: the controller's and the nodes' keys.
func KeysCommand() *cobra.Command {
	command := &cobra.Command{Use: "keys", Args: flags.None}
	dir := command.PersistentFlags().String("dir", "fleet", "folder of the keys and of fleet.yaml")
	command.AddCommand(keysInitCommand(dir), keysIssueCommand(dir), keysPairCommand(dir), keysTellCommand(dir),
		keysRevokeCommand(dir))
	return command
}

func keysInitCommand(dir *string) *cobra.Command {
	return &cobra.Command{Use: "init", Args: flags.None, RunE: func(command *cobra.Command, _ []string) error {
		identity, err := fleet.Init(*dir)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(command.OutOrStdout(), "controller key: %s\nfleet file:     %s\n", identity.Pin,
			filepath.Join(*dir, fleet.FileName))
		return err
	}}
}

func keysIssueCommand(dir *string) *cobra.Command {
	var address string
	var o fleet.IssueOptions
	command := &cobra.Command{Use: "issue NODE", Args: flags.Exactly(1),
		RunE: func(command *cobra.Command, args []string) error {
			if address == "" {
				return misused("--address is missing: HOST:PORT at which the node's agent answers, such as "+
					"192.168.1.20:7443; `fieldmesh keys pair %s` finds it out by itself", args[0])
			}
			bundle, err := fleet.Issue(*dir, args[0], address, o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "bundle: %s\nCopy it to the node by a safe way; there: sudo "+
				"fieldmesh-agent pair --bundle FOLDER\n", bundle)
			return err
		}}
	command.Flags().StringVar(&address, "address", "", "HOST:PORT at which the node's agent answers")
	command.Flags().StringVar(&o.Unit, "unit", "", "name of the hardware that carries the node")
	command.Flags().StringToStringVar(&o.Labels, "label", nil, "NAME=VALUE, may be repeated")
	return command
}

func keysRevokeCommand(dir *string) *cobra.Command {
	return &cobra.Command{Use: "revoke NAME", Args: flags.Exactly(1),
		RunE: func(command *cobra.Command, args []string) error {
			f, err := fleet.Load(filepath.Join(*dir, fleet.FileName))
			if err != nil {
				return err
			}
			if err := fleet.Revoke(*dir, args[0]); err != nil {
				return err
			}
			if _, app := f.Apps[args[0]]; app {
				if _, err := fmt.Fprintf(command.OutOrStdout(), "%s is revoked.\n", args[0]); err != nil {
					return err
				}
				return tellApps(command.Context(), command.OutOrStdout(), *dir)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s is revoked: this controller will not talk to its key "+
				"again.\nOn the node itself, delete the files of its keys_dir: until then it still obeys this "+
				"controller's key.\n", args[0])
			return err
		}}
}
