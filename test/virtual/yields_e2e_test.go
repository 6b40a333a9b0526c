//go:build e2e

package virtual

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// yieldChild is set for TestE2EYieldChild, in virtual time.
const yieldChild = "FIELDMESH_VIRTUAL_YIELD"

// A thread that works is charged the time that it takes, or the scheduler would not take the
// processor from it: after threads had yielded and timers expired its clock stood still, and
// an agent beside a client of iperf3 that spun was half a minute late.
func TestE2ETheSchedulersClockGoesOn(t *testing.T) {
	d := newDesk(t, "[8.3]")
	environment := []string{yieldChild + "=1", "PATH=/usr/bin:/bin", "FIELDMESH_PROGRAMS=" + programs}
	out := strings.Join(d.inVirtualTime(t, "self", environment, "-test.v", "-test.run", "^TestE2EYieldChild$"), "\n")
	if !strings.Contains(out, "--- PASS: TestE2EYieldChild") {
		t.Error(out)
	}
}

// TestE2EYieldChild is the half of it that runs in virtual time.
func TestE2EYieldChild(t *testing.T) {
	testnet.NeedSet(t, yieldChild, "is run in virtual time by another test")
	const (
		yields = 1000 // a jiffy is charged for each
		worked = 200 * time.Millisecond
	)
	runtime.LockOSThread()
	for range yields {
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	for range 2 * yields {
		rest := unix.NsecToTimespec(100_000)
		_ = unix.Nanosleep(&rest, nil)
	}
	began, before := time.Now(), threadTime(t)
	for time.Since(began) < worked {
	}
	charged := threadTime(t) - before
	t.Logf("charged %v", charged)
	if charged < worked*9/10 { // one that does not wait is charged more
		t.Errorf("a thread worked for %v, and %v were charged", worked, charged)
	}
}

func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}
