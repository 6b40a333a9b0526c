package reference_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/reference"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Whoever meets a column in a table of an export finds here what it is.
func TestEveryColumnOfAnExportIsFound(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := export.Run(a, dir, export.Options{}); err != nil {
		t.Fatal(err)
	}
	all, err := reference.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"results", "trials", "places", "timelines"} {
		text, err := os.ReadFile(filepath.Join(dir, table+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n")
		for _, column := range strings.Split(head, ",") {
			_, factor := a.Info().Plan.Trials[0].Factors[column] // a column of trials.csv has its bare name
			if reference.Find(all, column) == nil && !factor {
				t.Errorf("column %s of %s.csv is not found", column, table)
			}
		}
	}
}
