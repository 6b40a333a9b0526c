package export

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func TestWhatIsSharedIsAsInAWholeExport(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{2.8}, Repetitions: 1})
	whole, shared := t.TempDir(), t.TempDir()
	if _, err := Run(a, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Shared(a, shared); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(shared)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, name := range []string{"results.csv", "tracks.gpx"} {
		want, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(shared, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is another, %v", name, err)
		}
	}
}
