package cmd

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/version"
)

// CollectCommand is `fieldmesh collect LOG…`.
func CollectCommand() *cobra.Command {
	var runs, name string
	c := &cobra.Command{Use: "collect LOG...", Args: flags.Some, RunE: func(c *cobra.Command, args []string) error {
		if name == "" {
			name = "log-" + time.Now().UTC().Format("20060102-150405")
		}
		dir, out := filepath.Join(runs, name), c.OutOrStdout()
		err := archive.FromLogs(dir, name, version.String(), args, func(l archive.Log) error {
			_, err := fmt.Fprintln(out, l)
			return err
		})
		if err == nil {
			_, err = fmt.Fprintf(out, "run: %s\nnext: fieldmesh export %s\n", dir, name)
		}
		return explainRun(runs, name, err)
	}}
	addRuns(c, &runs)
	c.Flags().StringVar(&name, "name", "", "name of the run (default: log- and the time)")
	return c
}
