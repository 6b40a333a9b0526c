//go:build e2e

package virtual

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// clockChild has TestE2EClockChild run, in virtual time.
const clockChild = "FIELDMESH_VIRTUAL_CLOCK"

// Programs read the clock without a system call where they can. What Go's runtime,
// a shell, date and iperf3 read in virtual time is never behind what the kernel
// answers to a call, nor ahead of it.
func TestE2EProgramsSeeTheKernelsClock(t *testing.T) {
	testnet.Need(t, "bash", "iperf3")
	d := newDesk(t, "[8.3]")
	const name = "TestE2EClockChild"
	environment := []string{clockChild + "=1", "PATH=/usr/bin:/bin", "FIELDMESH_PROGRAMS=" + programs}
	out := d.inVirtualTime(t, "self", environment, "-test.v", "-test.run", "^"+name+"$")
	if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "--- PASS: "+name+" ") }) {
		t.Errorf("in virtual time:\n%s", strings.Join(out, "\n"))
	}
}

// TestE2EClockChild is the half of it that runs in virtual time.
func TestE2EClockChild(t *testing.T) {
	testnet.NeedSet(t, clockChild, "is run in virtual time by another test")
	if up := kernelClock(t, unix.CLOCK_REALTIME).Sub(virtualStart); up < 0 || up > time.Hour {
		t.Fatalf("the kernel's clock is %v after its start", up)
	}
	t.Run("Go", goSeesTheClock)
	t.Run("spin", spinningMovesTheClock)
	t.Run("bash", bashSeesTheClock)
	t.Run("date", dateSeesTheClock)
	t.Run("iperf3", iperf3SeesTheClock)
}

// kernelClock is a clock as a system call gives it: package unix does not use the
// vDSO.
func kernelClock(t *testing.T, clock int32) time.Time {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ts.Nano())
}

// between fails the test unless a program's reading lies between two of the
// kernel's. The reading has digits to that unit only.
func between(t *testing.T, what string, before, reading, after time.Time, unit time.Duration) {
	t.Helper()
	if reading.Before(before.Truncate(unit)) || reading.After(after) {
		t.Errorf("%s reads %d ns, and the kernel's clock went from %d to %d ns", what, reading.UnixNano(),
			before.UnixNano(), after.UnixNano())
	}
}

// goSeesTheClock reads both clocks of Go's runtime, with and without a wait in
// between.
func goSeesTheClock(t *testing.T) {
	monotonicAt := kernelClock(t, unix.CLOCK_MONOTONIC)
	base := time.Now() // its monotonic reading lies between the two of the kernel
	monotonicBy := kernelClock(t, unix.CLOCK_MONOTONIC)
	const together = time.Microsecond // some system calls: the agent reads the boot clock once, and Go's then
	for i := range 2000 {
		if i%20 == 0 {
			time.Sleep(time.Millisecond)
		}
		bootBefore := kernelClock(t, unix.CLOCK_BOOTTIME)
		agents := time.Unix(0, clock.System{}.BootNs())
		between(t, "the agent's boot clock", bootBefore.Add(-together), agents, kernelClock(t, unix.CLOCK_BOOTTIME), 1)
		wall, monotonic := kernelClock(t, unix.CLOCK_REALTIME), kernelClock(t, unix.CLOCK_MONOTONIC)
		now := time.Now()
		monotonicAfter, wallAfter := kernelClock(t, unix.CLOCK_MONOTONIC), kernelClock(t, unix.CLOCK_REALTIME)
		between(t, "Go's wall clock", wall, now.Round(0), wallAfter, 1)
		since := now.Sub(base)
		if since < monotonic.Sub(monotonicBy) || since > monotonicAfter.Sub(monotonicAt) {
			t.Errorf("Go's monotonic clock has moved by %v, the kernel's by %v to %v", since,
				monotonic.Sub(monotonicBy), monotonicAfter.Sub(monotonicAt))
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
}

// spinningMovesTheClock waits by nothing but looks at the clock.
func spinningMovesTheClock(t *testing.T) {
	const looksMost = 50_000_000 // each takes 0.1 ns of virtual time, or the clock stands still
	began, last := time.Now(), time.Duration(0)
	for range looksMost {
		since := time.Since(began)
		if since < last {
			t.Fatalf("the clock went back from %v to %v", last, since)
		}
		if last = since; last > 5*time.Millisecond {
			return
		}
	}
	t.Errorf("after %d looks the clock has moved by %v", looksMost, last)
}

// bashSeesTheClock: one process of C reads by gettimeofday, again and again, and
// before and after waits.
func bashSeesTheClock(t *testing.T) {
	const waits, looks = 5, 100
	const waitMicros = 10_000
	script := fmt.Sprintf("for i in {1..%d}; do for j in {1..%d}; do echo $EPOCHREALTIME; done; sleep 0.01; done",
		waits, looks)
	before := kernelClock(t, unix.CLOCK_REALTIME)
	lines := said(t, "bash", "-c", script)
	after := kernelClock(t, unix.CLOCK_REALTIME)
	if len(lines) != waits*looks {
		t.Fatalf("%d readings, want %d", len(lines), waits*looks)
	}
	last := before.Truncate(time.Microsecond)
	for i, line := range lines {
		reading := seconds(t, line)
		between(t, "bash", before, reading, after, time.Microsecond)
		if least := last.Add(waitMicros * time.Microsecond); i > 0 && i%looks == 0 && reading.Before(least) {
			t.Errorf("after a sleep of 10 ms the clock has moved by %v", reading.Sub(last))
		}
		if reading.Before(last) {
			t.Errorf("the clock went back by %v", last.Sub(reading))
		}
		last = reading
	}
}

func dateSeesTheClock(t *testing.T) {
	for range 10 {
		time.Sleep(3 * time.Millisecond)
		before := kernelClock(t, unix.CLOCK_REALTIME)
		lines := said(t, "date", "+%s.%N")
		after := kernelClock(t, unix.CLOCK_REALTIME)
		between(t, "date", before, seconds(t, lines[0]), after, 1)
	}
}

// iperf3SeesTheClock: it says when it started, to the second, and how long it sent.
func iperf3SeesTheClock(t *testing.T) {
	server := exec.Command("iperf3", "-s", "-1")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // of virtual time, in which nothing is late: it listens
	before := kernelClock(t, unix.CLOCK_REALTIME)
	out := said(t, "iperf3", "-J", "-c", "127.0.0.1", "-t", "1", "-b", "1M")
	after := kernelClock(t, unix.CLOCK_REALTIME)
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	var report struct {
		Start struct {
			Timestamp struct {
				Timesecs int64 `json:"timesecs"`
			} `json:"timestamp"`
		} `json:"start"`
		End struct {
			Sent struct {
				Seconds float64 `json:"seconds"`
			} `json:"sum_sent"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(strings.Join(out, "\n")), &report); err != nil {
		t.Fatal(err)
	}
	between(t, "iperf3", before, time.Unix(report.Start.Timestamp.Timesecs, 0), after, time.Second)
	if sent := report.End.Sent.Seconds; sent < 1 || sent > after.Sub(before).Seconds() {
		t.Errorf("iperf3 sent for %g s in %v, want at least 1 s", sent, after.Sub(before))
	}
}

// said are the lines that a program prints.
func said(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, &faults)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// seconds is a time of the form 1234567890.123456, of any number of digits.
func seconds(t *testing.T, text string) time.Time {
	t.Helper()
	whole, part, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(s, ns)
}
