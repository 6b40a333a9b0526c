//go:build e2e

package bench

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// hostileMemoryMax is what a command may need that refuses an archive.
const hostileMemoryMax = 200e6

// hostile are archives that nobody drove, each made of an ordinary run.
var hostile = map[string]func(dir string) error{
	"990,000 files":   func(dir string) error { return emptyFiles(dir, 990) }, // fewer than a run may have
	"1,010,000 files": func(dir string) error { return emptyFiles(dir, 1010) },
	"300 folders in each other": func(dir string) error {
		return os.MkdirAll(filepath.Join(dir, "trials", strings.Repeat("a/", 300)), 0o755)
	},
	"a pipe": func(dir string) error {
		path := filepath.Join(dir, "campaign.yaml")
		return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
	},
	"a journal of 5,000,000 entries": func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "journal.ndjson"), []byte(strings.Repeat("{}\n", 5_000_000)), 0o644)
	},
	"a journal of one line of 3 GB": func(dir string) error {
		path := filepath.Join(dir, "journal.ndjson")
		return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 3e9))
	},
	"a schedule of 20,000,000 trials": func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "schedule.json"),
			[]byte(`{"trials":[`+strings.Repeat("{},", 20_000_000)+"{}]}"), 0o644)
	},
	"a manifest of 3 GB": func(dir string) error {
		path := filepath.Join(dir, "MANIFEST.sha256")
		return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 3e9))
	},
	"an attempt of 20 GB": func(dir string) error {
		return os.Truncate(filepath.Join(dir, "trials/0001-a1/records/car.ndjson"), 20e9)
	},
	"a record of 5,000,000 objects": func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "trials/0001-a1/records/car.ndjson"),
			[]byte(`{"kind":"routing","x":[`+strings.Repeat("{},", 5_000_000)+"{}]}\n"), 0o644)
	},
}

// emptyFiles makes so many thousand files among the records that came late.
func emptyFiles(dir string, thousands int) error {
	for i := range thousands {
		folder := filepath.Join(dir, "late", fmt.Sprintf("%04d-a1", i))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for j := range 1000 {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(j)), nil, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestBenchHostileArchives gives each to the commands that read archives.
func TestBenchHostileArchives(t *testing.T) {
	begin(t)
	largest, of, calls := int64(0), "", 0
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		dir, err := os.MkdirTemp("/dev/shm", "hostile-") // where many files are made quickly
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		run := filepath.Join(dir, "run")
		ordinary := synthetic.Options{Seed: 3, Speeds: []float64{8.3}, Repetitions: 1}
		if _, err = synthetic.Long(run, ordinary); err == nil {
			err = hostile[name](run)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"verify", run}, {"report", run}, {"export", run}, {"metrics", run},
			{"merge", run, run}} {
			c := exec.Command(filepath.Join(programs, "fieldmesh"), command...)
			hung := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
			out, err := c.CombinedOutput()
			hung.Stop()
			status := c.ProcessState.ExitCode() // -1: it was killed
			if status < 0 || status > 3 || status == 0 && command[0] == "verify" || len(out) > 1<<20 {
				t.Errorf("%s: %s ends with %v\n%.500s", name, command[0], err, out)
			}
			calls++
			if peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024; peak > largest {
				largest, of = peak, command[0]+" of "+name
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
	report(row{
		goal: "hostile archives", measured: fmt.Sprintf("%.0f MB of memory at most", float64(largest)/1e6),
		reference: fmt.Sprintf("%d archives, %d calls", len(hostile), calls),
		figure:    fmt.Sprintf("%.0f MB", float64(largest)/1e6), limit: "each ≤ 200 MB",
		met: largest <= hostileMemoryMax && !t.Failed(),
	}, "verify, report, export, metrics and merge of each; verify ends with an error, and none is "+
		"killed. Largest resident memory of a process: %s.", of)
}
