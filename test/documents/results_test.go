package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/protocols/wire"
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
		run := report.Tables{Dir: dir, Numbers: numbers}
		text, err := os.ReadFile(filepath.Join(dir, "not-compared.json"))
		if err == nil {
			err = json.Unmarshal(text, &run.Without)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: %v", dir, err)
		}
		for metric := range run.Without {
			if h := header(t, dir); !bytes.Contains(h, []byte("."+metric+",")) && // of a flow
				!bytes.Contains(h, []byte(","+metric+",")) { // of the trial
				t.Errorf("%s: not-compared.json names %q, which its results.csv does not have", dir, metric)
			}
		}
		out = append(out, run)
	}
	return out
}

// A time to connect that a run is not compared by is on no page: not as a bound either, by those that did not connect.
func TestWithheldTimesToConnectAreOnNoPage(t *testing.T) {
	runs := archived(t)
	run := runs[slices.IndexFunc(runs, func(r report.Tables) bool { return filepath.Base(r.Dir) == "fixed-rto" })]
	first := wire.TrialKey{Trial: 1, Attempt: 1}
	bounds := 0
	for i, row := range run.Numbers[first] {
		if row.Name == metrics.ConnectTimeMs {
			run.Numbers[first][i].Name = metrics.ConnectCensoredMs
			bounds++
		}
	}
	for why, drawn := range map[string]bool{"": true, "a fault": false} {
		run.Without = map[string]string{metrics.ConnectTimeMs: why}
		page, err := report.Paper("p3", []report.Tables{run}, shipped(t))
		if err != nil {
			t.Fatal(err)
		}
		if is := strings.Contains(string(page.Markdown), "| connect time |"); bounds != 1 || is != drawn {
			t.Errorf("withheld for %q, with %d bounds: the time to connect is on the page: %v", why, bounds, is)
		}
	}
}

// header is the first line of a run's numbers.
func header(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
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
