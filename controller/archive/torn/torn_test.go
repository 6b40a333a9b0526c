package torn_test

import (
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive/torn"
)

func TestMend(t *testing.T) {
	const zeros = "\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		text, tail, whole string // as written, with its tail mended, and without zeros too
		holes             int64
	}{
		"whole":               {"a\nb\n", "a\nb\n", "a\nb\n", 0},
		"empty":               {"", "", "", 0},
		"a torn line":         {"a\nb\nhalf", "a\nb\n", "a\nb\n", 0},
		"nothing but a half":  {"half", "", "", 0},
		"zeros at the end":    {"a\nb\n" + zeros, "a\nb\n", "a\nb\n", 0},
		"zeros before a line": {"a\n" + zeros + "b\nc\n", "a\n" + zeros + "b\nc\n", "a\nc\n", 6},
		"zeros in two lines":  {"a\x00\nb\n\x00c\nd\nhalf", "a\x00\nb\n\x00c\nd\n", "b\nd\n", 6},
	} {
		path := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := torn.Tail(path)
		if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != c.tail {
			t.Errorf("%s: the tail alone: %q, %v, %v; want %q", name, got, err, readErr, c.tail)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time there is nothing to mend
			holes, err := torn.Mend(path, path+".tmp")
			got, readErr := os.ReadFile(path)
			if err != nil || readErr != nil || string(got) != c.whole || holes != c.holes {
				t.Errorf("%s: %q, %d bytes of holes, %v, %v; want %q, %d", name, got, holes, err, readErr, c.whole,
					c.holes)
			}
			c.holes = 0
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v is left, %v", name, entries, err)
		}
	}
}
