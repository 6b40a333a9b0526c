//go:build e2e

package export

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// exportVariable makes this program export the run that it names, so that the
// kernel tells that process's memory.
const exportVariable = "FIELDMESH_EXPORT_RUN"

func TestMain(m *testing.M) {
	dir := os.Getenv(exportVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	a, err := archive.Read(dir)
	if err == nil {
		_, err = Run(a, filepath.Join(dir, "export"), Options{MCAP: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// exportPeakBytesMax is what an export may need, however long the run is: less
// than the records of the shortest run here would need if they were held.
const exportPeakBytesMax = 128 << 20

// FIELDMESH_SOAK makes the run one of 10 GB.
func TestSoakExportInConstantMemory(t *testing.T) {
	repetitions := 40
	if os.Getenv("FIELDMESH_SOAK") != "" {
		repetitions = 7600
	}
	size, peak := exportLong(t, repetitions)
	if size < 40e6 || peak > exportPeakBytesMax {
		t.Errorf("the export of %d MB takes %d MB of memory", size/1e6, peak/1e6)
	}
}

// exportLong exports a run of so many trials of each section and tells the run's
// size and the largest memory of the process.
func exportLong(t *testing.T, repetitions int) (size, peak int64) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "fieldmesh-export-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	run := filepath.Join(dir, "run")
	size, err = synthetic.Long(run, synthetic.Options{Seed: 4, Speeds: []float64{8.3}, Repetitions: repetitions})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), exportVariable+"="+run)
	begun := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	peak = c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	t.Logf("%d trials, %.0f MB: %.0f MB of memory, %.1f s", 2*repetitions, float64(size)/1e6, float64(peak)/1e6,
		time.Since(begun).Seconds())
	return size, peak
}
