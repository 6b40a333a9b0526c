//go:build e2e

package streets

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/streets/pmtiles"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// written is a map that testdata/town.py writes, by others' writers.
func written(t *testing.T, what string) []byte {
	t.Helper()
	const python = "../../.tools/venv/bin/python"
	testnet.Need(t, python)
	path := filepath.Join(t.TempDir(), "map.pmtiles")
	if out, err := exec.Command(python, "testdata/town.py", path, what).CombinedOutput(); err != nil {
		t.Fatalf("town.py %s: %v\n%s", what, err, out)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The town is the same by the layers' names of Protomaps and of OpenMapTiles, and as testdata has it.
func TestE2EOthersMapsAreRead(t *testing.T) {
	b := boxOf(-900, -800, 900, 1500)
	want := drawn(t, place(t, town(t)), b, 300e3)
	if len(want.Paths) != len(order) {
		t.Fatalf("%d kinds are drawn of %d", len(want.Paths), len(order))
	}
	for _, scheme := range []string{"protomaps", "openmaptiles"} {
		if got := drawn(t, place(t, written(t, scheme)), b, 300e3); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: another drawing", scheme)
		}
	}
}

func TestE2EPicturesAreServedAsTheyAre(t *testing.T) {
	run := place(t, written(t, "png"))
	d := drawn(t, run, boxOf(-100, -100, 100, 100), 300e3)
	if d.Zoom != 16 || len(d.Images) == 0 || len(d.Paths) > 0 || d.Attribution != attribution {
		t.Fatalf("%+v", d)
	}
	m, err := Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	for _, i := range d.Images {
		raw, media, err := m.Picture(i.Zoom, i.X, i.Y)
		if err != nil || media != "image/png" {
			t.Fatalf("%s, %v", media, err)
		}
		if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
			t.Error(err)
		}
		if wide, high := float64(i.Width)*d.StepDeg/eastDeg, float64(i.Height)*d.StepDeg/northDeg; wide < 370 ||
			wide > 374 || high < 370 || high > 374 { // 40075 km · cos 52.5° ÷ 2^16
			t.Errorf("it is %g m wide and %g m high", wide, high)
		}
	}
	if raw, _, err := m.Picture(16, 0, 0); raw != nil || err != nil {
		t.Errorf("where there is none: %d bytes, %v", len(raw), err)
	}
}

// With directories below the root, every tile is found.
func TestE2ELeavesAreRead(t *testing.T) {
	raw := written(t, "many")
	a, err := pmtiles.Read(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8000 {
		x, y, want := i*7919%16384, i*104729%16384, fmt.Sprintf("tile %d", i%50)
		if text, err := a.Tile(14, x, y); err != nil || string(text) != want {
			t.Fatalf("14/%d/%d: %q, %v", x, y, text, err)
		}
		if text, err := a.Tile(14, x, y^1); err != nil || text != nil {
			t.Fatalf("14/%d/%d: %q, %v; there is none", x, y^1, text, err)
		}
	}
}
