package cmd

import "github.com/spf13/cobra"

// KeysCommand is `fieldmesh keys`: the controller's and the nodes' keys.
func KeysCommand() *cobra.Command {
	return &cobra.Command{Use: "keys", Short: "Make and revoke the keys of controller and nodes"}
}
