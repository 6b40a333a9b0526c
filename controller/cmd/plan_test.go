package cmd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestPlanSessions runs testdata/plan: what a user types and sees. The command
// runs inside the test, so that it needs no binary.
func TestPlanSessions(t *testing.T) {
	campaigns, err := filepath.Abs(filepath.Join("..", "..", "campaigns"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "plan"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("CAMPAIGNS", campaigns)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fieldmesh-plan": planInside},
	})
}

func planInside(ts *testscript.TestScript, neg bool, args []string) {
	args = slices.Clone(args)
	for i, a := range args {
		if filepath.Ext(a) == ".yaml" {
			args[i] = ts.MkAbs(a) // the script's folder is not the test's
		}
	}
	c := PlanCommand()
	c.SilenceErrors = true
	c.SetArgs(args)
	c.SetOut(ts.Stdout())
	c.SetErr(ts.Stderr())
	if err := c.Execute(); (err != nil) != neg {
		ts.Fatalf("fieldmesh plan %v: error %v", args, err)
	}
}

// Every campaign that ships is shown with what it can tell, and each effect that
// it asks about has an interval.
func TestShippedCampaignsCanTellWhatTheyAsk(t *testing.T) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d campaigns, %v", len(files), err)
	}
	for _, file := range files {
		var out strings.Builder
		c := PlanCommand()
		c.SetArgs([]string{"show", file})
		c.SetOut(&out)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
		_, effects, told := strings.Cut(out.String(), "can tell, if each is accepted")
		if !told || strings.Contains(effects, "the campaign asks about") {
			t.Errorf("%s: %s", file, effects)
		}
	}
}
