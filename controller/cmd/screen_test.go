package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// onTerminal is what a command writes to a terminal of so many columns.
func onTerminal(t *testing.T, columns int, args ...string) string {
	t.Helper()
	return testnet.OnTerminal(t, columns, func(out *os.File) error {
		root := Root()
		root.SetArgs(args)
		root.SetOut(terminal.Writer(out)) // as for results
		return root.ExecuteContext(t.Context())
	})
}

// Every help page and every table fits the terminal.
func TestWhatIsPrintedFitsTheTerminal(t *testing.T) {
	runs := t.TempDir()
	if err := os.Rename(synthetic.Run(t, synthetic.Options{Seed: 19, Speeds: []float64{2.8, 8.3}}).Dir(),
		filepath.Join(runs, "velocity-20260314-093000")); err != nil {
		t.Fatal(err)
	}
	views := [][]string{{"runs", "--runs", runs}, {"explain"}, {"explain", "trial"}, {"explain", "metric"},
		{"simulate-routing", "--nodes", "5,6", "--duration", "5s"},
		{"compare", "velocity-20260314-093000", "velocity-20260314-093000", "--runs", runs}}
	for _, name := range []string{"velocity", "velocity-phones", "variants-grid", "variants-random"} {
		views = append(views, []string{"plan", "show", "../../campaigns/" + name + ".yaml"})
	}
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) { // which takes what is between backquotes for a value's name
			if name, _ := pflag.UnquoteUsage(f); strings.Contains(name, " ") {
				t.Errorf("%s: --%s wants a %q", c.CommandPath(), f.Name, name)
			}
		})
		views = append(views, append(path, "--help"))
		for _, below := range c.Commands() {
			if !below.Hidden && below.Name() != "completion" && below.Name() != "help" { // which are cobra's
				walk(below, append(path[:len(path):len(path)], below.Name()))
			}
		}
	}
	walk(Root(), nil)
	for _, columns := range []int{80, 120} {
		for _, args := range views {
			for line := range strings.Lines(onTerminal(t, columns, args...)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%q: %d of %d columns: %s", args, n, columns, line)
				}
			}
		}
	}
}
