package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestSessions runs the folders of testdata: what a user types and sees. What is
// wrong before any node is asked is in badinput; what needs nodes is in
// test/refusals, or in fleet with stand-ins for agents behind real keys. Commands
// run inside the test, so that it needs no binary.
func TestSessions(t *testing.T) {
	campaigns, err := filepath.Abs(filepath.Join("..", "..", "campaigns"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"badinput", "field", "fleet", "plan", "simulate"} {
		t.Run(folder, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", folder),
				Setup: func(env *testscript.Env) error {
					env.Setenv("CAMPAIGNS", campaigns)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"fieldmesh": fieldmeshInside,
					"agent": standIn},
			})
		})
	}
}

func fieldmeshInside(ts *testscript.TestScript, neg bool, args []string) {
	args = slices.Clone(args)
	for i, a := range args {
		if slices.Contains([]string{".yaml", ".svg", ".pcap"}, filepath.Ext(a)) {
			args[i] = ts.MkAbs(a) // the script's folder is not the test's
		}
	}
	root := Root()
	root.SetArgs(args)
	root.SetOut(ts.Stdout())
	root.SetErr(ts.Stderr())
	err := root.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(ts.Stderr(), "fieldmesh:", err)
	}
	if (err != nil) != neg {
		ts.Fatalf("fieldmesh %v: error %v", args, err)
	}
}
