// Package cmd is the command line `fieldmesh`: it reads flags, puts the parts
// together and words their results. Whatever does the work is elsewhere.
package cmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/internal/version"
)

// Root is the whole command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:           "fieldmesh",
		Short:         "Measure TCP over moving ad hoc networks, on the road or in rehearsal",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(RehearseCommand(), RunCommand(), FieldCommand(), PlanCommand(), NodesCommand(), KeysCommand(),
		VerifyCommand(), ReportCommand(), ExportCommand(), PublishCommand())
	return root
}

// Main runs the command line and returns its exit status: 0 for success, 1
// for an error, which is printed, 130 when it was interrupted.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := Root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "fieldmesh: interrupted; what was recorded is kept")
		return 130
	}
	fmt.Fprintln(os.Stderr, "fieldmesh:", err)
	return 1
}
