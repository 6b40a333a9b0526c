//go:build e2e

package live

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Streets lie where they belong under the tracks; without a map the page is as it was, and a broken one is told in
// words. testdata/streets.cjs says what must be seen. With FIELDMESH_PICTURES it is drawn into that folder.
func TestE2EStreetsLieUnderTheTracks(t *testing.T) {
	run := synthetic.Run(t, synthetic.Options{Seed: 43, Speeds: []float64{8.3}, Repetitions: 1}).Dir()
	town, err := os.ReadFile("../streets/testdata/town.pmtiles")
	if err != nil {
		t.Fatal(err)
	}
	seen := func(t *testing.T, what string) {
		if err := looked(t, run, "testdata/streets.cjs", what, os.Getenv("FIELDMESH_PICTURES")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(run, "map.pmtiles")
	t.Run("no map", func(t *testing.T) { seen(t, "none") })
	for _, m := range []struct {
		name, what string
		raw        []byte
	}{
		{"a map", "drawn", town}, {"half a map", "broken", town[:len(town)/2]},
		{"no map at all", "broken", []byte("<b>x")},
	} {
		if err := os.WriteFile(path, m.raw, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Run(m.name, func(t *testing.T) { seen(t, m.what) })
	}
	t.Run("a map of pictures", func(t *testing.T) {
		const python = "../../.tools/venv/bin/python"
		testnet.Need(t, python)
		if out, err := exec.Command(python, "../streets/testdata/town.py", path, "png").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		seen(t, "pictured")
	})
}
