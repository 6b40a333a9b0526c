package documents

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A reader's questions over several runs get the answers that were put into them.
func TestQuestionsOverAllRunsAreAnswered(t *testing.T) {
	const venv = "../../.tools/venv/bin/python"
	testnet.Need(t, venv)
	python, err := filepath.Abs(venv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// 10 s windows: MB × 0.8 is Mbit/s. The second run lost trial 3.
	for seed, mb := range map[uint64]float64{1: 20, 2: 10} {
		a, err := synthetic.Build(filepath.Join(dir, "runs", []string{"", "one", "two"}[seed]), synthetic.Options{
			Seed: seed, Speeds: []float64{2.8, 16.7}, Repetitions: 1,
			MB: func(wire.Trial, *rand.Rand) float64 { return mb },
			Mishap: func(x wire.Trial, _ int, c *synthetic.Conditions) {
				if seed == 2 && x.Number == 3 {
					c.NoConnection, c.MB = true, 0
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		testnet.CloseAtEnd(t, a)
		if _, err := export.Run(a, filepath.Join(a.Dir(), "export"), export.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	var queries []string
	for _, s := range allSnippets(t) {
		if s.page == "duckdb.md" {
			queries = append(queries, s.text)
		}
	}
	if len(queries) != 5 {
		t.Fatalf("%d questions, want 5", len(queries))
	}
	said, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", "import duckdb, json, sys\n"+
		"print(json.dumps([duckdb.sql(q).fetchall() for q in json.loads(sys.argv[1])]))", string(said))
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got [][][]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want(t, "the runs", got[0], `[["synthetic-1",4,16],["synthetic-2",4,6]]`)
	if len(got[1]) != 4 {
		t.Errorf("by speed and section: %v", got[1])
	}
	for _, cell := range got[1] {
		if cell[2] != 2.0 || cell[3] != 2.0 || cell[4] != 12.0 && cell[4] != 8.0 {
			t.Errorf("a cell of two trials in two runs, of 16 and of 8 or 0 Mbit/s: %v", cell)
		}
	}
	want(t, "the change", got[2], `[["synthetic-1",16,null],["synthetic-2",6,-10]]`)
	if len(got[3]) != 1 || got[3][0][0] != 8.0 || got[3][0][1] == nil {
		t.Errorf("by distance: %v", got[3])
	}
	if len(got[4]) != 1 || got[4][0][0] != "synthetic-2" || got[4][0][1] != 3.0 {
		t.Errorf("without a connection: %v", got[4])
	}
}

func want(t *testing.T, what string, got [][]any, as string) {
	t.Helper()
	if b, err := json.Marshal(got); err != nil || string(b) != as {
		t.Errorf("%s: %s, want %s", what, b, as)
	}
}
