package documents

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A reader's questions over several runs get the answers that were put into them: neither a rehearsal nor another
// campaign is pooled with a campaign's runs on the road, and a shard does not count beside its merge. Exports of former
// versions are named.
func TestQuestionsOverAllRunsAreAnswered(t *testing.T) {
	const venv = "../../.tools/venv/bin/python"
	testnet.Need(t, venv)
	python, err := filepath.Abs(venv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	speeds := []float64{2.8, 16.7}
	exported := func(a *archive.Archive) {
		t.Helper()
		if _, err := export.Run(a, filepath.Join(a.Dir(), "export"), export.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	// 10 s windows: MB × 0.8 is Mbit/s. Run 2 was driven before run 1, and lost trial 3.
	for seed, run := range map[uint64]struct {
		campaign, place string
		day             int
		mb              float64
	}{
		1: {"velocity", archive.PlaceRoad, 3, 20}, 2: {"velocity", archive.PlaceRoad, 1, 10},
		3: {"velocity", archive.PlaceRehearsal, 2, 50}, 4: {"another", archive.PlaceRoad, 2, 40},
	} {
		a, err := synthetic.Build(filepath.Join(dir, "runs", fmt.Sprint(seed)), synthetic.Options{
			Seed: seed, Speeds: speeds, Repetitions: 1, Campaign: run.campaign, Place: run.place,
			Begun: time.Date(2026, 3, run.day, 9, 0, 0, 0, time.UTC),
			MB:    func(wire.Trial, *rand.Rand) float64 { return run.mb },
			Mishap: func(x wire.Trial, _ int, c *synthetic.Conditions) {
				if seed == 2 && x.Number == 3 {
					c.NoConnection, c.MB = true, 0
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		testnet.CloseAtEnd(t, a)
		exported(a)
	}
	// Trial 1 has 1 MB, trial 2 has 2 MB and so on.
	info := synthetic.Info(synthetic.Options{Seed: 5, Speeds: speeds, Repetitions: 1, Campaign: "shared",
		Place: archive.PlaceRoad})
	merged := filepath.Join(dir, "runs", "merged")
	var shards []string
	for i := range 2 {
		shards = append(shards, synthetic.Shard(t, fmt.Sprint(merged, "-shard-", i+1), info,
			&archive.Shard{Number: i + 1, Of: 2}))
	}
	if err := archive.Merge(merged, shards, nil); err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(shards, merged) {
		a, err := archive.Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		exported(a)
	}
	var queries []string
	for _, s := range allSnippets(t) {
		if s.page == "duckdb.md" {
			queries = append(queries, s.text)
		}
	}
	if len(queries) != 7 {
		t.Fatalf("%d statements, want one and six questions", len(queries))
	}
	said, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", "import duckdb, json, os, sys\n"+
		"former = \"(SELECT * EXCLUDE (campaign, place, scale, shard, begun) FROM 'runs/1/export/results.parquet')\"\n"+
		"os.makedirs('runs/former/export')\n"+
		"duckdb.execute('COPY ' + former + \" TO 'runs/former/export/results.parquet'\")\n"+
		"print(json.dumps([duckdb.execute(q).fetchall() for q in json.loads(sys.argv[1])]))", string(said))
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got [][][]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want(t, "the exports of former versions", got[1], `[["runs/former/export/results.parquet"]]`)
	want(t, "the runs", got[2], `[["another","full","synthetic-4",4,32],["shared","full","synthetic-5",4,2],`+
		`["velocity","full","synthetic-1",4,16],["velocity","full","synthetic-2",4,6]]`)
	if len(got[3]) != 12 {
		t.Errorf("by speed and section: %v", got[3])
	}
	for _, cell := range got[3] {
		if cell[0] == "velocity" && (cell[4] != 2.0 || cell[5] != 2.0 || cell[6] != 12.0 && cell[6] != 8.0) {
			t.Errorf("a cell of two trials in two runs, of 16 and of 8 or 0 Mbit/s: %v", cell)
		}
	}
	want(t, "the change", got[4], `[["another","full","synthetic-4",32,null],["shared","full","synthetic-5",2,null],`+
		`["velocity","full","synthetic-2",6,null],["velocity","full","synthetic-1",16,10]]`)
	if len(got[5]) != 3 || got[5][2][0] != "velocity" || got[5][2][2] != 8.0 || got[5][2][3] == nil {
		t.Errorf("by distance: %v", got[5])
	}
	if len(got[6]) != 1 || got[6][0][0] != "synthetic-2" || got[6][0][1] != 3.0 {
		t.Errorf("without a connection: %v", got[6])
	}
}

func want(t *testing.T, what string, got [][]any, as string) {
	t.Helper()
	if b, err := json.Marshal(got); err != nil || string(b) != as {
		t.Errorf("%s: %s, want %s", what, b, as)
	}
}
