package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestSimulateSessions runs testdata/simulate: what a user types and sees.
func TestSimulateSessions(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  filepath.Join("testdata", "simulate"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"simulate-routing": simulateInside},
	})
}

func simulateInside(ts *testscript.TestScript, neg bool, args []string) {
	args = slices.Clone(args)
	for i, a := range args {
		if filepath.Ext(a) == ".pcap" {
			args[i] = ts.MkAbs(a) // the script's folder is not the test's
		}
	}
	c := SimulateRoutingCommand()
	c.SilenceErrors = true
	c.SetArgs(args)
	c.SetOut(ts.Stdout())
	c.SetErr(ts.Stderr())
	err := c.ExecuteContext(context.Background())
	if err != nil {
		_, printErr := fmt.Fprintln(ts.Stdout(), err)
		ts.Check(printErr)
	}
	if (err != nil) != neg {
		ts.Fatalf("fieldmesh simulate-routing %v: error %v", args, err)
	}
}
