package archive

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A finished run that was damaged is not opened for writing, which would end in a manifest of the damage. With the file
// from its copy it is.
func TestADamagedFinishedRunIsNotSignedAgain(t *testing.T) {
	dir, second := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "second")
	a, err := Create(dir, crashPlan())
	must(t, err)
	durable := map[string]uint64{}
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("sun"), 0o644))
	must(t, story(a, &durable))
	must(t, a.Close())
	must(t, Copy(dir, second))
	replaced := func(from, to string) func([]byte) []byte {
		return func(raw []byte) []byte { return bytes.Replace(raw, []byte(from), []byte(to), 1) }
	}
	cut := func(raw []byte) []byte { return raw[:bytes.IndexByte(raw, '\n')+1] }
	for _, c := range []struct {
		rel    string
		damage func([]byte) []byte
	}{
		{"between/car.ndjson", cut},
		{"between/car.ndjson", replaced(`"text":"3"`, `"text":"9"`)},
		{"between/car.ndjson", func(raw []byte) []byte { return raw[:len(raw)-3] }}, // which would be mended
		{JournalFile, replaced(`"accepted"`, `"rejected"`)},
		{cursorFile, cut},
		{"trials/0001-a1/MANIFEST.sha256", cut},
		{manifestFile, cut},
		{manifestFile, func([]byte) []byte { return nil }},
	} {
		path := filepath.Join(dir, c.rel)
		whole, err := os.ReadFile(path)
		must(t, err)
		damaged := c.damage(bytes.Clone(whole))
		if bytes.Equal(whole, damaged) {
			t.Fatalf("%s is as it was:\n%s", c.rel, whole)
		}
		must(t, os.WriteFile(path, damaged, 0o644))
		before := everyFile(t, dir)
		if a, err := Open(dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: opened (%t): %v", c.rel, a != nil, err)
		}
		if after := everyFile(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: Open changed the run", c.rel)
		}
		whole, err = os.ReadFile(filepath.Join(second, c.rel))
		must(t, err)
		must(t, os.WriteFile(path, whole, 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("rain"), 0o644))
	a, err = Open(dir)
	must(t, err)
	must(t, a.Note("a late word"))
	must(t, a.Finish())
	checkWhole(t, a, "at the end")
	must(t, a.Close())
}

func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := disk{root: dir}.walk(".")
	must(t, err)
	out := map[string]string{}
	for _, rel := range files {
		raw, err := os.ReadFile(filepath.Join(dir, rel))
		must(t, err)
		out[rel] = string(raw)
	}
	return out
}
