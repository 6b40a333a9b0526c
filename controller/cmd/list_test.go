package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func TestRunsAreListed(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	runs := filepath.Dir(a.Dir())
	if err := os.Mkdir(filepath.Join(runs, "not-a-run"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := typed(t, RunsCommand(), "--runs", runs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 2 || !strings.HasPrefix(lines[1], "run  ") ||
		!strings.Contains(lines[1], "rehearsal") || !strings.HasSuffix(lines[1], "4 of 4    complete") {
		t.Errorf("runs: %v\n%s", err, out)
	}
	if out, err = typed(t, RunsCommand(), "--runs", runs, "--json"); err != nil ||
		!strings.Contains(out, `"accepted": 4`) {
		t.Errorf("runs --json: %v\n%s", err, out)
	}
	if _, err := typed(t, RunsCommand(), "--runs", filepath.Join(runs, "none")); err == nil ||
		!strings.Contains(err.Error(), "--runs names another folder") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
