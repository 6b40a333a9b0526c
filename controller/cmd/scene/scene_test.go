package scene

import (
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
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

// A drawn movement begins with the warm-up, any other with the window.
func TestLinksOfAWindowAreThoseOfItsMovement(t *testing.T) {
	warm := wire.Trial{Traffic: []wire.Flow{{StartS: -30}, {StartS: 50}}}
	for model, want := range map[string][2]float64{"random_waypoint": {80, 0}, "setdest": {80, 0},
		"chain": {50, -30}, "": {50, -30}} {
		var m *field.MobilityConfig
		if model != "" {
			m = &field.MobilityConfig{Model: model}
		}
		if got := [2]float64{movedS(m, warm, 50), movedS(m, warm, -30)}; got != want {
			t.Errorf("%q: flows that begin at 50 and -30 s see the movement at %v, want %v", model, got, want)
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
