//go:build e2e

package virtual

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// burners keep the processors busy until the test ends. They are the children of
// the calling thread, which they do not outlive.
func burners(t *testing.T, n int) {
	t.Helper()
	runtime.LockOSThread() // the test's goroutine ends with its thread
	for range n {
		c := exec.Command("sha256sum", "/dev/zero")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill() // it has not ended: there is no end of zeros
			_ = c.Wait()
		})
	}
}

func TestE2EBusyProcessorsMakeNothingLate(t *testing.T) {
	d := newDesk(t, "[8.3, 16.7]")
	burners(t, 4)
	out, err := d.rehearse("velocity.yaml", "--clock", "virtual", "--name", "busy").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "s of virtual time in") ||
		!strings.Contains(string(out), "4 of 4 trials accepted") {
		t.Errorf("the rehearsal says:\n%s", out)
	}
	d.whole(t, "busy")
	a := d.read(t, "busy")
	if c := a.Info().Clock; c == nil || c.Kind != archive.ClockVirtual || c.Kernel != d.kernel.Version ||
		len(c.Configuration) != 16 {
		t.Errorf("the run's clock is %+v, its kernel was %s", c, d.kernel.Version)
	}
	acceptedAtOnce(t, a, 4)
	d.alike(t, a)
}

// alike: at the same speed, over the same way, nothing but lateness could make trials differ by
// more than 2 %. A faster car is farther away on average, so speeds differ by 1 %.
func (d *desk) alike(t *testing.T, a *archive.Archive) {
	t.Helper()
	rows, err := metrics.Table(a)
	if err != nil {
		t.Fatal(err)
	}
	brought := map[float64][]float64{} // by speed, in MB
	for _, r := range rows {
		switch r.Name {
		case "transferred_mb":
			trial, _ := a.Trial(r.Trial)
			brought[*trial.SpeedMps] = append(brought[*trial.SpeedMps], r.Value)
		case metrics.LatenessShare:
			if r.Value > 0 {
				t.Errorf("trial %d: the radio was late for %g of the window, want 0", r.Trial, r.Value)
			}
		}
	}
	t.Logf("MB by speed: %v", brought)
	if len(brought) != 2 {
		t.Errorf("%d speeds were driven, want 2", len(brought))
	}
	for speed, mb := range brought {
		if least := slices.Min(mb); len(mb) != 2 || !(slices.Max(mb) < 1.02*least) {
			t.Errorf("at %g m/s trials brought %v MB, want 2 within 2 %%", speed, mb)
		}
	}
}

func (d *desk) read(t *testing.T, run string) *archive.Archive {
	t.Helper()
	a, err := archive.Read(d.path("runs/" + run))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// whole: every file of the run is as its manifests say.
func (d *desk) whole(t *testing.T, run string) {
	t.Helper()
	findings, err := archive.Verify(d.path("runs/" + run))
	if err != nil || len(findings) > 0 {
		t.Error(fmt.Errorf("run %s is not whole: %v: %w", run, findings, err))
	}
}
