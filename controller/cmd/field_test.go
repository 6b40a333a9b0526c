package cmd

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fieldmesh.dev/fieldmesh/controller/plan"
)

// TestFieldSessions runs testdata/field: what a user types and sees.
func TestFieldSessions(t *testing.T) {
	campaigns, err := filepath.Abs(filepath.Join("..", "..", "campaigns"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "field"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("CAMPAIGNS", campaigns)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fieldmesh-field": fieldInside,
			"fieldmesh-plan": planInside},
	})
}

func fieldInside(ts *testscript.TestScript, neg bool, args []string) {
	args = slices.Clone(args)
	for i, a := range args {
		if ext := filepath.Ext(a); ext == ".yaml" || ext == ".svg" {
			args[i] = ts.MkAbs(a) // the script's folder is not the test's
		}
	}
	c := FieldCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(ts.Stdout())
	c.SetErr(ts.Stderr())
	err := c.Execute()
	if err != nil {
		if _, err := ts.Stderr().Write([]byte(err.Error() + "\n")); err != nil {
			ts.Fatalf("%v", err)
		}
	}
	if (err != nil) != neg {
		ts.Fatalf("fieldmesh field %q: %v", args, err)
	}
}

// In a rehearsal with agents for participants only, the plan that nodes hold
// has no other node, and the field makes the others without an agent.
func TestOnlyParticipantsHaveAgents(t *testing.T) {
	c, err := plan.Load(filepath.Join("testdata", "many.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.RunPlan("r", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := rehearsed(&p, c); err != nil {
		t.Fatal(err)
	}
	if len(p.Nodes) != 2 || p.Nodes[0].Name != "alpha" || p.Nodes[1].Name != "delta" || p.Trials[0].Course.SiteLatDeg ==
		nil {
		t.Errorf("the plan has nodes %v", p.Nodes)
	}
	cfg, err := sceneConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range cfg.Nodes {
		if taking := n.Name == "alpha" || n.Name == "delta"; n.Bare == taking || n.MeshAddress == "" {
			t.Errorf("%+v", n)
		}
	}
}
