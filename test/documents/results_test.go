package documents

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report"
)

const resultsFolder = "../../field-guides/results"

// The pages of results are those that the runs' tables make, and no drawing is left
// of an earlier one.
func TestPapersPagesAreCurrent(t *testing.T) {
	runs, campaigns := archived(t), shipped(t)
	for _, id := range papers.IDs() {
		page, err := report.Paper(id, runs, campaigns)
		if err != nil {
			t.Fatal(err)
		}
		made := map[string][]byte{id + ".md": page.Markdown}
		for path, svg := range page.Drawings {
			made[path] = svg
		}
		drawn, err := filepath.Glob(filepath.Join(resultsFolder, id, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range drawn {
			if made[filepath.Join(id, filepath.Base(path))] != nil {
				continue
			}
			if !*update {
				t.Errorf("%s is of no page: go generate ./test/documents", path)
			} else if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range made {
			sameFile(t, filepath.Join(resultsFolder, name), text)
		}
	}
}

// archived are the runs whose tables are kept.
func archived(t *testing.T) []report.Tables {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(resultsFolder, "runs", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no runs' tables: %v", err)
	}
	var out []report.Tables
	for _, dir := range folders {
		f, err := os.Open(filepath.Join(dir, "results.csv"))
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := export.ReadResults(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		out = append(out, report.Tables{Dir: dir, Numbers: numbers})
	}
	return out
}

// sameFile holds a file to what it should be, or writes it.
func sameFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, text) {
		t.Errorf("%s is not current (%v): go generate ./test/documents", path, err)
	}
}

// shipped are the campaigns that ship, each at each of its scales, the whole one first.
func shipped(t *testing.T) []*plan.Campaign {
	t.Helper()
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no campaigns: %v", err)
	}
	var out []*plan.Campaign
	for _, file := range files {
		whole, err := plan.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, scale := range slices.Concat([]string{plan.FullScale}, whole.Scales) {
			c, err := plan.LoadAt(file, scale)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
	}
	return out
}
