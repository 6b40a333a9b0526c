package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	joins "fieldmesh.dev/fieldmesh/node-agent/pairing"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
)

// PairCommand is `fieldmesh-agent pair`: make this node part of a fleet.
func PairCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "pair CODE",
		Short: "Make this node part of a fleet, by the code that `fieldmesh keys pair` shows",
		Long: `Makes this node's key, shows it to the controller that made the code, and keeps
whom to let in. Node name, port and folder of keys are those of the agent's
configuration. The agent is started afterwards, or starts by itself where it
waits for its keys.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			code, err := pairing.Parse(args[0])
			if err != nil {
				return err
			}
			cfg, face, err := asRoot(c, path)
			if err != nil {
				return err
			}
			controller, err := joins.Join(c.Context(), code, joins.Node{Name: cfg.Node, Listen: cfg.Listen,
				KeysDir: cfg.KeysDir, UID: face.uid, GID: face.gid})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is paired: it obeys the controller with key %.12s…\n", cfg.Node,
				controller)
			return err
		},
	}
	addConfig(c, &path)
	return c
}
