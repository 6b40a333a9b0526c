package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func TestAnInterruptHidesNoOtherError(t *testing.T) {
	left := errors.New("end field: namespace is left")
	err := errors.Join(fmt.Errorf("field 1: %w", context.Canceled), errors.Join(left, nil), context.Canceled)
	if got := besidesInterrupt(err); len(got) != 1 || got[0] != left {
		t.Errorf("besides the interrupt: %v", got)
	}
	if got := besidesInterrupt(nil); len(got) != 0 {
		t.Errorf("besides nothing: %v", got)
	}
}

func TestExitStatuses(t *testing.T) {
	damaged := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1}).Dir()
	if err := os.Remove(filepath.Join(damaged, "trials", "0001-a1", "verdict.json")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{"version"}},
		{1, []string{"report", filepath.Join(damaged, "none")}},
		{2, []string{"report"}},
		{2, []string{"report", "--no-such-flag"}},
		{2, []string{"no-such-command"}},
		{2, []string{"plan", "chekc"}},
		{3, []string{"verify", damaged}},
	} {
		if got := Main(c.args); got != c.status {
			t.Errorf("%v: status %d, want %d", c.args, got, c.status)
		}
	}
	if err := error(unmet{context.Canceled}); !errors.Is(err, errUnmet) || len(besidesInterrupt(err)) != 0 {
		t.Errorf("%v is not unmet, or hides what it is", err)
	}
}

// Every command is in a group of the help, so that none is overlooked.
func TestEveryCommandIsInAGroup(t *testing.T) {
	for _, c := range Root().Commands() {
		if c.GroupID == "" && c.Name() != "version" {
			t.Errorf("%s is in no group", c.Name())
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		for line := range strings.Lines(c.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpColumns {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(Root())
}

// Whoever looks for one of these commands in the other program is shown here.
func TestTheCommandsThatTheOtherProgramNamesAreHere(t *testing.T) {
	for _, name := range flags.Programs()["fieldmesh"] {
		if c, _, err := Root().Find([]string{name}); err != nil || c.Name() != name {
			t.Errorf("there is no command %q: %v", name, err)
		}
	}
}
