package cmd

import (
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Every campaign that ships expands into a plan that nodes take.
func TestShippedCampaignsMakeValidPlans(t *testing.T) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no campaigns: %v", err)
	}
	for _, file := range files {
		c, err := plan.Load(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if c.Crosses() { // by no links: who has a flow does not matter here
			err = c.DrawAcross(func(wire.Trial, float64) (*draw.Links, error) { return &draw.Links{}, nil })
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p, err := c.RunPlan("test-1", make([]byte, wire.GoKeyBytes))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for i := range p.Nodes {
			p.Nodes[i].GoPort = wire.DefaultGoPort
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
