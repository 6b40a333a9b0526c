package archive_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
)

// run.json of archives that are there already has these bytes.
func TestRunInfoIsStoredAsEver(t *testing.T) {
	half := 1.5
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), archive.RunInfo{
		Run: "r", Campaign: "c", CreatedWall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Seed: 7, Version: "v",
		Place: archive.PlaceRoad, Site: map[string]string{"road": "straight"},
		Paper: &plan.Paper{Name: "p2", Scenario: "chain"}, Scale: &plan.Scale{Name: "smoke", Why: "short"},
		Shard: &archive.Shard{Number: 1, Of: 2}, Merged: 3,
		Enough: &plan.StopWhen{Of: "section", HalfWidthMbps: &half, MinBlocks: 3, EveryBlocks: 1, Confidence: 0.95},
	})
	must(t, err)
	defer func() { must(t, a.Close()) }()
	got, err := os.ReadFile(filepath.Join(a.Dir(), "run.json"))
	must(t, err)
	if want := `{
  "format": 1,
  "run": "r",
  "campaign": "c",
  "created_wall": "2026-03-01T12:00:00Z",
  "seed": 7,
  "version": "v",
  "place": "road",
  "site": {
    "road": "straight"
  },
  "paper": {
    "name": "p2",
    "scenario": "chain"
  },
  "scale": {
    "name": "smoke",
    "why": "short"
  },
  "shard": {
    "number": 1,
    "of": 2
  },
  "merged": 3,
  "enough": {
    "of": "section",
    "half_width_mbps": 1.5,
    "min_blocks": 3,
    "every_blocks": 1,
    "confidence": 0.95
  }
}
`; string(got) != want {
		t.Errorf("run.json is\n%s\nwant\n%s", got, want)
	}
}
