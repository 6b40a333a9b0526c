package imports

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostLines is what a package may have at most, without its tests: more is not read
// in a sitting, and has parts that want a name of their own.
const mostLines = 4000

// linesByPackage counts the lines of Go, without tests, in every folder below root.
func linesByPackage(root string) (map[string]int, error) {
	lines := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		lines[filepath.ToSlash(folder)] += bytes.Count(text, []byte("\n"))
		return err
	})
	return lines, err
}

func TestNoPackageIsTooLarge(t *testing.T) {
	lines, err := linesByPackage(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 50 {
		t.Fatalf("found %d packages; the rule was not applied to anything", len(lines))
	}
	for folder, n := range lines {
		if n >= mostLines {
			t.Errorf("%s has %d lines without its tests; move a part of it that has a name into a package of its own "+
				"until it has fewer than %d", folder, n, mostLines)
		}
	}
}

// What is counted: Go without tests, folder by folder.
func TestLinesAreCounted(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{"a/a.go": "1\n2\n", "a/b.go": "3\n", "a/a_test.go": "no\n",
		"a/testdata/x.go": "no\n", ".tools/y.go": "no\n", "a/c/c.go": "1\n"} {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := linesByPackage(root)
	if err != nil || len(lines) != 2 || lines["a"] != 3 || lines["a/c"] != 1 {
		t.Errorf("counted %v, %v", lines, err)
	}
}
