package scene

import (
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
)

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
	if err := Rehearsed(&p, c); err != nil {
		t.Fatal(err)
	}
	if len(p.Nodes) != 2 || p.Nodes[0].Name != "alpha" || p.Nodes[1].Name != "delta" || p.Trials[0].Course.SiteLatDeg ==
		nil {
		t.Errorf("the plan has nodes %v", p.Nodes)
	}
	cfg, err := Config(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range cfg.Nodes {
		if taking := n.Name == "alpha" || n.Name == "delta"; n.Bare == taking || n.MeshAddress == "" {
			t.Errorf("%+v", n)
		}
	}
}

// What a rehearsal would refuse is known beforehand.
func TestWhatNoRehearsalDrivesIsRefused(t *testing.T) {
	for name, want := range map[string]string{"velocity": "", "variants-random": "",
		"stationary-check": "nobody moves it", "velocity-phones": ""} {
		c, err := plan.Load(filepath.Join("..", "..", "..", "campaigns", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		err = Rehearsal(c).Refused
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A gate that waits for a speed which nobody drives would wait for ever.
func TestADeskCheckIsNotRehearsed(t *testing.T) {
	for name, refused := range map[string]bool{"stationary-check": true, "velocity": false, "variants-random": false} {
		c, err := plan.Load(filepath.Join("..", "..", "..", "campaigns", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.RunPlan("r", make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		err = Rehearsed(&p, c)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "until alpha has ") {
			t.Errorf("%s: %v, want a refusal: %t", name, err, refused)
		}
	}
}
