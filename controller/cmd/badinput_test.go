package cmd

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestBadInput runs testdata/badinput: what is wrong before any node is asked.
// What needs nodes is in test/refusals.
func TestBadInput(t *testing.T) {
	campaigns, err := filepath.Abs(filepath.Join("..", "..", "campaigns"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "badinput"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("CAMPAIGNS", campaigns)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fieldmesh": fieldmeshInside},
	})
}
