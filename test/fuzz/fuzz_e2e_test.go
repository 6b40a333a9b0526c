//go:build e2e

package fuzz

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// fuzzTime is how long each parser is tried. What is found to be of interest stays
// in Go's cache, and the next time begins with it.
const fuzzTime = "60s"

var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// TestEveryParserIsFuzzed tries each fuzz target of the repository. An
// input that fails is left in the package's testdata, and fails its unit tests.
func TestEveryParserIsFuzzed(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: " + err.Error())
	}
	found := targets(t)
	for _, one := range found {
		pkg, name, _ := strings.Cut(one, " ")
		t.Run(name+" of "+pkg, func(t *testing.T) {
			t.Parallel() // as many at a time as there are processors, each on one
			cmd := exec.CommandContext(t.Context(), tool, "test", "-run=^$", "-fuzz=^"+name+"$", "-fuzztime="+fuzzTime,
				"-parallel=1", "./"+pkg)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(last(string(out)))
		})
	}
	if len(found) < 40 {
		t.Errorf("%d fuzz targets were found: %q", len(found), found)
	}
}

// targets lists the fuzz targets: package, space, name.
func targets(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && (e.Name() == ".tools" || e.Name() == ".git" || e.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range target.FindAllSubmatch(text, -1) {
			out = append(out, pkg+" "+string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// last is the last line in which the fuzzer says how far it came.
func last(out string) (line string) {
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if strings.Contains(s.Text(), "execs:") {
			line = s.Text()
		}
	}
	return line
}
