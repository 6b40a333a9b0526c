// Package cmd is the command line `fieldmesh`: it reads flags, puts the parts
// together and words their results. Whatever does the work is elsewhere.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// Root is the whole command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:           "fieldmesh",
		Short:         "Measure TCP over moving ad hoc networks, on the road or in rehearsal",
		Version:       version.Build(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flags.Explain(err) })
	root.AddCommand(RehearseCommand(), RunCommand(), FieldCommand(), PlanCommand(), PreflightCommand(),
		NodesCommand(), KeysCommand(),
		RunsCommand(), VerifyCommand(), ReportCommand(), MetricsCommand(), ExportCommand(),
		PullCommand(), LiveCommand(), PublishCommand(), CollectCommand(), MergeCommand(), CalibrateCommand(),
		CompareCommand(), TopologyCommand(), SimulateRoutingCommand())
	return root
}

// exactly wants as many arguments as its command's usage names, and shows the usage otherwise.
func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageOf(c)
		}
		return nil
	}
}

// some wants at least one argument.
func some(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageOf(c)
	}
	return nil
}

func usageOf(c *cobra.Command) error {
	return fmt.Errorf("usage: %s; `%s --help` explains it", c.UseLine(), c.CommandPath())
}

// group is a command that does nothing by itself: it has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// statusResume is EX_TEMPFAIL of sysexits.h: batch systems can be told that it
// asks to be run again.
const statusResume = 75

// Main runs the command line and returns its exit status: 0 for success, 1
// for an error, which is printed, 130 when it was interrupted, and 75 when a
// rehearsal in virtual time was cut off, however it was, and can be resumed.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for an end in order
	root := Root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, virtual.ErrCut):
		fmt.Fprintln(os.Stderr, "fieldmesh:", err)
		return statusResume
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "fieldmesh: interrupted; what was recorded is kept")
		for _, e := range besidesInterrupt(err) {
			fmt.Fprintln(os.Stderr, "fieldmesh:", e)
		}
		return 130
	}
	fmt.Fprintln(os.Stderr, "fieldmesh:", err)
	return 1
}

// besidesInterrupt is what went wrong while an interrupted command came to its
// end: the parts of an error that do not only say that it was interrupted.
func besidesInterrupt(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, besidesInterrupt(e)...)
		}
		return out
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return []error{err}
}

// renamed is a flag's former name: giving it is an error that says the present one.
type renamed string

func (renamed) String() string      { return "" }
func (renamed) Type() string        { return "string" }
func (to renamed) Set(string) error { return fmt.Errorf("it is --%s now", string(to)) }

func rename(c *cobra.Command, from, to string) {
	c.Flags().VarPF(renamed(to), from, "", "").Hidden = true
}
