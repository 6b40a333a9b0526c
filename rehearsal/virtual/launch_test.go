package virtual

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// launch runs a script in the kernel's place.
func launch(t *testing.T, ctx context.Context, script string, line func([]byte) error) (Options, error) {
	t.Helper()
	dir := t.TempDir()
	o := Options{Kernel: filepath.Join(dir, "kernel"), Init: "/init", Command: []string{"/program", "an argument"},
		Writable: dir, MemoryMB: 16,
		Start: time.Unix(1, 5), Seed: 7, CallNs: 9, Log: filepath.Join(dir, "log"), Line: line}
	if err := os.WriteFile(o.Kernel, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return o, Launch(ctx, o)
}

func TestLinesComeThroughAndTheConsoleIsKept(t *testing.T) {
	var lines []string
	o, err := launch(t, t.Context(), `echo one >&3; echo "boots with $*"; echo two >&3; printf rest >&3`, func(l []byte) error {
		lines = append(lines, string(l))
		return nil
	})
	if err != nil || !slices.Equal(lines, []string{"one\n", "two\n"}) {
		t.Errorf("%v, lines %q", err, lines)
	}
	console, err := os.ReadFile(o.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mem=16M", "time-travel=inf-cpu", "time-travel-start=1000000005", "random-seed=7",
		"time_travel_call_ns=9", "thash_entries=1024", `init="/init"`} {
		if !strings.Contains(string(console), want) {
			t.Errorf("the kernel's command line has no %q: %s", want, console)
		}
	}
	words := strings.Fields(string(console))
	j, err := decodeJob(words[len(words)-1])
	if err != nil || !slices.Equal(j.Command, o.Command) || j.Writable != o.Writable {
		t.Errorf("the job is %+v, %v", j, err)
	}
}

func TestAKernelThatIsKilledIsResumed(t *testing.T) {
	for _, c := range []struct {
		script string
		cut    bool
		says   string
	}{
		{"kill -9 $$", true, "killed"},
		{"kill -TERM $$", true, "terminated"},
		{"echo 'Kernel panic - not syncing: lost'; kill -ABRT $$", false, "not syncing: lost"},
		{"echo 'Out of memory: panic'; exit 1", false, "--memory-mb"},
		{"echo 'Kernel panic: Kernel mode signal 7'; kill -ABRT $$", false, "no room left for its memory"},
		{"echo 'fieldmesh: boot: mount proc'; exit 0", false, "mount proc"},
		{"exit 3", false, "exit status 3"},
	} {
		_, err := launch(t, t.Context(), c.script, nil)
		if err == nil || errors.Is(err, ErrCut) != c.cut || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, cut %v and %q expected", c.script, err, c.cut, c.says)
		}
		if killed := c.says == "killed"; errors.Is(err, ErrKilled) != killed {
			t.Errorf("%s: %v, killed alone: %v expected", c.script, err, killed)
		}
	}
}

func TestTheKernelEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pid := 0
	_, err := launch(t, ctx, "echo $$ >&3; exec sleep 600", func(l []byte) (err error) {
		pid, err = strconv.Atoi(strings.TrimSpace(string(l)))
		cancel()
		return err
	})
	if !errors.Is(err, ErrCut) || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, it says %v", err)
	}
	if err := syscall.Kill(pid, 0); pid == 0 || !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is there still: %v", pid, err)
	}
}

func TestALineThatIsRefusedEndsTheKernel(t *testing.T) {
	refused := errors.New("no such line")
	_, err := launch(t, t.Context(), "echo x >&3; exec sleep 600", func([]byte) error { return refused })
	if !errors.Is(err, refused) || errors.Is(err, ErrCut) {
		t.Errorf("%v, want %v", err, refused)
	}
}

func TestPathsThatDoNotFitAreRefused(t *testing.T) {
	o := Options{Kernel: "/none", Command: []string{strings.Repeat("x", 4096)}, Log: filepath.Join(t.TempDir(), "log")}
	if err := Launch(t.Context(), o); err == nil || !strings.Contains(err.Error(), "shorter folders") {
		t.Errorf("a path of 4096 bytes: %v", err)
	}
}

// Kernels side by side ask for the room of all of them, which each alone would find.
func TestThereIsRoomForAllKernels(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if dir, err := MemoryFolder(16); err != nil {
		t.Errorf("16 MB in %q: %v", dir, err)
	}
	const exabyte = 1 << 40 // in MB
	if dir, err := MemoryFolder(exabyte); err == nil || !strings.Contains(err.Error(), "fewer --jobs") {
		t.Errorf("an exabyte in %q: %v", dir, err)
	}
}

// Two kernels never share a processor while another is free.
func TestProcessorsAreTakenOnce(t *testing.T) {
	a, err := takeCore()
	if err != nil {
		t.Fatal(err)
	}
	b, err := takeCore()
	if err != nil {
		t.Fatal(err)
	}
	if a.held != nil && b.held != nil && a.number == b.number {
		t.Errorf("both are on processor %d", a.number)
	}
	if err := errors.Join(a.release(), b.release()); err != nil {
		t.Fatal(err)
	}
	again, err := takeCore()
	if err != nil {
		t.Fatal(err)
	}
	defer again.release()
	if a.held != nil && again.held == nil {
		t.Errorf("processor %d was given back, and none is free", a.number)
	}
}

// Kernels that see nothing of each other, as in containers, are not all on the first
// processor. That 200 are by chance has a probability below 2^-198.
func TestKernelsOfContainersAreSpread(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread is in a network namespace of its own
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a container's network needs root: %v", err)
	}
	numbers := map[int]bool{}
	for range 200 {
		c, err := takeCore()
		if err != nil {
			t.Fatal(err)
		}
		numbers[c.number] = true
		if err := c.release(); err != nil {
			t.Fatal(err)
		}
	}
	if len(numbers) < min(2, runtime.NumCPU()) {
		t.Errorf("200 kernels, one after another, were on %d processors of %d", len(numbers), runtime.NumCPU())
	}
}

// Kernels for which there is no processor of their own are not all on one. That 200
// of them are by chance has a probability below 2^-198.
func TestKernelsBeyondTheProcessorsAreSpread(t *testing.T) {
	numbers := map[int]bool{}
	for beyond := 0; beyond < 200; {
		c, err := takeCore()
		if err != nil {
			t.Fatal(err)
		}
		defer c.release()
		if c.held == nil {
			numbers[c.number] = true
			beyond++
		}
	}
	if len(numbers) < min(2, runtime.NumCPU()) {
		t.Errorf("200 kernels are on %d processors of %d", len(numbers), runtime.NumCPU())
	}
}

func TestBootIsForTheFirstProcessOnly(t *testing.T) {
	if err := Boot(""); err == nil || !strings.Contains(err.Error(), "first process") {
		t.Errorf("%v", err)
	}
}
