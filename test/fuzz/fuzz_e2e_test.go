//go:build e2e

package fuzz

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
				"-fuzzminimizetime=1x", // else it spends the minute on making what it found smaller
				"-parallel=1", "./"+pkg)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			// At the end of its time Go's fuzzer may call that a failure, of no input (go.dev/issue/75804).
			ended := strings.Contains(string(out), "context deadline exceeded") &&
				!strings.Contains(string(out), "Failing input")
			if err != nil && !ended {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(last(string(out)))
		})
	}
	if len(found) < 40 {
		t.Errorf("%d fuzz targets were found: %q", len(found), found)
	}
}

// billion is how many inputs the soak tries in all, and soakTime how long it tries each
// parser before it begins again. rounds bounds it on a slow machine.
const (
	billion  = 1_000_000_000
	soakTime = time.Minute
	rounds   = 8
)

// TestSoakABillionInputs tries all parsers with a billion inputs: what Go's fuzzer has
// kept, and the seeds, changed at random. Run says how.
func TestSoakABillionInputs(t *testing.T) {
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("takes an hour; set FIELDMESH_SOAK=1 (make soak)")
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	corpora := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", "fieldmesh.dev", "fieldmesh")
	built := map[string]string{} // each package's test program
	counts := map[string]*atomic.Int64{}
	found := targets(t)
	for _, one := range found {
		pkg, _, _ := strings.Cut(one, " ")
		if counts[one] = new(atomic.Int64); built[pkg] != "" {
			continue
		}
		built[pkg] = filepath.Join(t.TempDir(), "tests")
		cmd := exec.Command("go", "test", "-c", "-o", built[pkg], "./"+pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", pkg, err, out)
		}
	}
	for round := range rounds {
		t.Run(fmt.Sprintf("seed %d", round), func(t *testing.T) {
			for _, one := range found {
				pkg, name, _ := strings.Cut(one, " ")
				t.Run(name+" of "+pkg, func(t *testing.T) {
					t.Parallel()
					n := try(t, built[pkg], pkg, name, corpora, round)
					t.Logf("%d inputs", n)
					counts[one].Add(n)
				})
			}
		})
		if t.Failed() {
			return
		}
		total := int64(0)
		for _, n := range counts {
			total += n.Load()
		}
		t.Logf("%d inputs after %d rounds", total, round+1)
		if total >= billion {
			for _, one := range found {
				t.Logf("%11d %s", counts[one].Load(), one)
			}
			return
		}
	}
	t.Errorf("%d rounds were not enough for %d inputs", rounds, billion)
}

var passed, inputs = regexp.MustCompile(`(?m)^    --- PASS: `), regexp.MustCompile(`(?m) (\d+) inputs$`)

// try runs a target for soakTime and returns the number of inputs.
func try(t *testing.T, program, pkg, name, corpora string, seed int) (total int64) {
	t.Helper()
	run := func(env ...string) string {
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+name+"$", "-test.v")
		cmd.Dir = filepath.Join(root, pkg)
		cmd.Env = append(append(os.Environ(), "GOMAXPROCS=1", "GOGC=400"), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	seeds := len(passed.FindAllString(run(), -1))
	if seeds == 0 {
		t.Fatal("it has no seed")
	}
	out := run("FIELDMESH_FUZZ_TIME="+(soakTime/time.Duration(seeds)).String(),
		"FIELDMESH_FUZZ_CORPUS="+filepath.Join(corpora, pkg),
		"FIELDMESH_FUZZ_SEED="+strconv.Itoa(seed))
	for _, m := range inputs.FindAllStringSubmatch(out, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
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
