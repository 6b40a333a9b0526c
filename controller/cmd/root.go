// Package cmd is the command line `fieldmesh`: it reads flags, puts the parts
// together and words their results. Whatever does the work is elsewhere.
package cmd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fieldmesh.dev/fieldmesh/controller/cmd/simulate"
	"fieldmesh.dev/fieldmesh/controller/cmd/study"
	"fieldmesh.dev/fieldmesh/controller/nodes"
	"fieldmesh.dev/fieldmesh/controller/reference"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// help has what the help of each command says.
//
//go:embed help
var help embed.FS

// results is the title of the commands that read archives.
const results = "Results"

// Root is the whole command.
func Root() *cobra.Command {
	root := &cobra.Command{Use: "fieldmesh"}
	flags.Root(root)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Plan and rehearse", []*cobra.Command{study.Command(), PlanCommand(), ExplainCommand(), RehearseCommand(),
			FieldCommand(), simulate.Command()}},
		{"Nodes", []*cobra.Command{KeysCommand(), NodesCommand(), PreflightCommand()}},
		{"Drive", []*cobra.Command{RunCommand(), ServeCommand(), LiveCommand(), PullCommand(), CollectCommand(),
			MergeCommand()}},
		{results, []*cobra.Command{RunsCommand(), ReportCommand(), ExportCommand(), PublishCommand(),
			MetricsCommand(), TopologyCommand(), CompareCommand(), CalibrateCommand(), VerifyCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(versionCommand())
	flags.Describe(root, help)
	root.Long += "\n\n" + exitStatuses()
	return root
}

// helpColumns is how wide a terminal is taken to be.
const helpColumns = 80

// versionCommand is `fieldmesh version`, which many type before they think of the flag.
func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(c.OutOrStdout(), c.Root().Name(), "version", version.Build())
		return err
	}}
}

// group is a command that does nothing by itself: it has others below it.
func group(use string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Args: flags.Below,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// errUnmet is in the errors of commands that did what they were to do, and found what is not well.
var errUnmet = errors.New("not all is well")

// unmet marks an error as one of those, and leaves its text.
type unmet struct{ error }

func (u unmet) Unwrap() error { return u.error }

// Is reports whether target is errUnmet.
func (unmet) Is(target error) bool { return target == errUnmet }

// errMisused is in the errors of commands whose flags cannot be meant as they are given.
var errMisused = errors.New("the command line is wrong")

// misuse marks an error as one of those, and leaves its text.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Is reports whether target is errMisused.
func (misuse) Is(target error) bool { return target == errMisused }

// misused is a misuse; see fmt.Errorf for its arguments.
func misused(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// exitStatuses tells them in the command's help.
func exitStatuses() string {
	out := "Exit status:"
	for _, s := range reference.Statuses() {
		line := fmt.Sprintf("\n  %-4d", s.Code)
		for _, word := range strings.Fields(s.Meaning) {
			if len(line)+1+len(word) > helpColumns {
				out, line = out+line, "\n      "
			}
			line += " " + word
		}
		out += line
	}
	return out
}

// endsSoon is for how long a command that is interrupted may go on before it is said how to end it at once.
const endsSoon = time.Second

// Main runs the command line and returns its exit status; see Root.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		stop() // a second Ctrl-C does not wait for an end in order
		if time.Sleep(endsSoon); term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprintln(os.Stderr, "fieldmesh: still at work; Ctrl-C again ends it at once")
		}
	})
	root := Root()
	root.SetArgs(args)
	for _, c := range root.Commands() {
		if c.GroupID == results || c.Name() == "plan" {
			c.SetOut(terminal.Writer(os.Stdout)) // an archive may be anybody's, and so may a campaign
		}
	}
	begun := false // which is after the command line was understood
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, virtual.ErrCut):
		fail(err)
		return reference.StatusResume
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "fieldmesh: interrupted; what was recorded is kept")
		for _, e := range besidesInterrupt(err) {
			fail(e)
		}
		return 130
	}
	fail(err)
	switch {
	case !begun, errors.Is(err, errMisused):
		return reference.StatusUsage
	case errors.Is(err, errUnmet), errors.Is(err, ErrPreflight), errors.Is(err, nodes.ErrNotWell):
		return reference.StatusUnmet
	}
	return 1
}

// fail says what went wrong, in which a text of others may stand.
func fail(err error) { fmt.Fprintln(os.Stderr, "fieldmesh:", terminal.Lines(err.Error())) }

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

func rename(c *cobra.Command, from, to string) {
	c.Flags().VarPF(flags.Former(to), from, "", "").Hidden = true
}
