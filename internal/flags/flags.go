// Package flags words what is wrong with a command line. Which commands and flags
// there are, and what they do, is their command's business.
package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fieldmesh.dev/fieldmesh/internal/nearest"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/internal/version"
)

// Root makes c the program's whole command: one that prints its help, says what is wrong
// with a command line as this package does, and leaves errors to its caller.
func Root(c *cobra.Command) {
	c.Version, c.SilenceUsage, c.SilenceErrors = version.Build(), true, true
	c.SetFlagErrorFunc(Explain)
	c.Args, c.DisableFlagsInUseLine = Below, true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		var text strings.Builder
		c.SetOut(&text)
		help(c, args)
		c.SetOut(out)
		_, _ = io.WriteString(out, screen.Fold(text.String(), screen.Columns(out))) // nobody could be told
	})
}

// expected is what a flag of a type wants, by pflag's names of types.
var expected = map[string]string{
	"float64":      "a number, without a unit",
	"float64Slice": "numbers without units, and commas between them",
	"int":          "a whole number",
	"intSlice":     "whole numbers, and commas between them",
	"duration":     "a time with its unit, such as 90s or 2h",
	"bool":         "true or false",

	"stringToString": "NAME=VALUE",
}

// Explain returns err in plain words where it is about a flag that the command has not,
// or about a value that a flag does not take.
func Explain(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		// With one dash, each letter is a flag.
		if all := unknown.GetSpecifiedShortnames(); len([]rune(all)) > 1 {
			name, _, _ = strings.Cut(all, "=")
			err = fmt.Errorf("unknown flag: -%s", name)
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := nearest.Word(name, known); near != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
		return fmt.Errorf("%w; `%s --help` lists what there is", err, c.CommandPath())
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := bad.GetFlag()
	if _, former := f.Value.(Former); former {
		return fmt.Errorf("--%s %w", f.Name, bad.Unwrap())
	}
	if expected[f.Value.Type()] == "" {
		return err
	}
	return fmt.Errorf("--%s %q: expected %s", f.Name, bad.GetValue(), expected[f.Value.Type()])
}

// Former is a flag's former name: giving it is an error that says the present one.
type Former string

func (Former) String() string { return "" }

// Type is that of a text.
func (Former) Type() string { return "string" }

// Set takes no value.
func (now Former) Set(string) error { return fmt.Errorf("is called --%s now", string(now)) }

// Address says what is wrong with a flag's value that is to be an address to listen at, such
// as example.
func Address(flag, value, example string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		if _, err := net.LookupPort("tcp", port); err == nil {
			return nil
		}
	}
	return fmt.Errorf("--%s %q: expected HOST:PORT, such as %s", flag, value, example)
}

// Exactly wants as many arguments as its command's usage names, and shows the usage otherwise.
func Exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageOf(c)
		}
		return nil
	}
}

// Some wants at least one argument.
func Some(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageOf(c)
	}
	return nil
}

func usageOf(c *cobra.Command) error {
	return fmt.Errorf("usage: %s; `%s --help` explains it", c.UseLine(), c.CommandPath())
}

// None wants no argument.
func None(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument, and %q is one; `%[1]s --help` lists its flags", c.CommandPath(), args[0])
}

// Below wants the name of a command below c, which does nothing by itself.
func Below(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
		}
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
	if there := named(c.Root(), args[0]); len(there) > 0 {
		return fmt.Errorf("%w; did you mean `%s`?", err, strings.Join(there, "` or `"))
	}
	for program, commands := range Programs() {
		if program != c.Root().Name() && slices.Contains(commands, args[0]) {
			return fmt.Errorf("%w; did you mean `%s %s`?", err, program, args[0])
		}
	}
	if near := nearest.Word(args[0], known); near != "" {
		return fmt.Errorf("%w; did you mean %q?", err, near)
	}
	return fmt.Errorf("%w; it has %s", err, strings.Join(known, ", "))
}

// named are the commands of a name below c, with the words before it.
func named(c *cobra.Command, name string) []string {
	var out []string
	for _, below := range c.Commands() {
		if below.Name() == name && below.IsAvailableCommand() {
			out = append(out, below.CommandPath())
		}
		out = append(out, named(below, name)...)
	}
	return out
}

// Programs are the programs, each with those of its commands that are easily looked for in
// the other.
func Programs() map[string][]string {
	return map[string][]string{
		"fieldmesh": {"collect", "keys", "live", "nodes", "plan", "preflight", "pull", "rehearse", "report", "run",
			"runs"},
		"fieldmesh-agent": {"log", "probe", "route", "simulate-gps", "up"},
	}
}

// Describe gives c, and every command below it, its help: the text of help/NAME.txt, with
// "-" between the names of a command below another. Its first line is the command in
// short, what follows the long text, and behind a line "Examples:" examples. A command may
// have a long text of its own. Describe panics where a text is missing.
func Describe(c *cobra.Command, texts fs.ReadFileFS) {
	name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), " ", "-")
	text, err := texts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	short, long, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	long, c.Example, _ = strings.Cut(long, "\nExamples:\n")
	c.Short, c.Long = short, cmp.Or(c.Long, strings.TrimSpace(long))
	for _, below := range c.Commands() {
		Describe(below, texts)
	}
}
