package serve

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/lock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Driver has runs driven by processes that outlive this one.
type Driver interface {
	// Begin starts one, whose output goes into a file.
	Begin(args []string, output string) (Process, error)
	// Alive reports whether a process has not ended.
	Alive(p Process) bool
	// Driven reports whether a process, whoever started it, drives the run in a folder.
	Driven(dir string) (bool, error)
	// Holder is that process.
	Holder(dir string) (Process, error)
	// Interrupt tells one to end, as Ctrl-C does. A second time kills it.
	Interrupt(p Process) error
}

// Process is one of this machine. Its number may be another's later, which began at another time.
type Process struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"begun_ticks"` // of the kernel's clock, since the machine started
}

// Programs is the Driver that starts a program.
type Programs struct{ Path string }

// Begin starts the program in a session of its own: what ends the server, or its terminal,
// does not end the run.
func (p Programs) Begin(args []string, output string) (Process, error) {
	out, err := os.Create(output)
	if err != nil {
		return Process{}, fmt.Errorf("begin to drive: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(p.Path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Process{}, fmt.Errorf("begin to drive: %w", err)
	}
	begun, _ := ticks(cmd.Process.Pid) // it is not waited for yet, so that its number is its own
	go func() { _ = cmd.Wait() }()     // how it ended is in its output
	return Process{cmd.Process.Pid, begun}, nil
}

// Alive tells by the kernel's list.
func (Programs) Alive(p Process) bool {
	begun, alive := ticks(p.PID)
	return alive && begun == p.Ticks
}

// ticks is when a process began that has not ended.
func ticks(pid int) (begun uint64, alive bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, in brackets, may have any bytes; the state is the first field behind it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	begun, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return begun, err == nil && !bytes.Contains([]byte("ZX"), fields[0])
}

// Driven tells by the run's lock, whoever has it.
func (Programs) Driven(dir string) (bool, error) {
	held, err := lock.IsHeld(filepath.Join(dir, archive.LockFile))
	if err != nil {
		return false, fmt.Errorf("find who drives a run: %w", err)
	}
	return held, nil
}

// Holder finds the process by the run's lock.
func (Programs) Holder(dir string) (Process, error) {
	file, err := os.Stat(filepath.Join(dir, archive.LockFile))
	if err != nil {
		return Process{}, fmt.Errorf("find who drives a run: %w", err)
	}
	found, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return Process{}, fmt.Errorf("find who drives a run: %w", err)
	}
	for _, fds := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(fds)))
		if err != nil || !holds(fds, file) {
			continue
		}
		if begun, alive := ticks(pid); alive {
			return Process{pid, begun}, nil
		}
	}
	return Process{}, &wire.Error{Code: wire.CodeConflict, Message: "the process that drives the run cannot be " +
		"found: it may be another user's", Cure: "end it by Ctrl-C where it was started"}
}

// locked is what the kernel says of a descriptor through which a file is locked for writing.
var locked = regexp.MustCompile(`(?m)^lock:.*\bFLOCK\b.*\bWRITE\b`)

// holds reports whether a process has a file locked. One of other users cannot be looked into.
func holds(fds string, file os.FileInfo) bool {
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(fds, e.Name()))
		if err != nil || !os.SameFile(info, file) {
			continue
		}
		told, err := os.ReadFile(filepath.Join(filepath.Dir(fds), "fdinfo", e.Name()))
		if err == nil && locked.Match(told) {
			return true
		}
	}
	return false
}

// Interrupt interrupts a process that has not ended.
func (p Programs) Interrupt(of Process) error {
	if !p.Alive(of) {
		return nil
	}
	if err := unix.Kill(of.PID, unix.SIGINT); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("interrupt process %d, which drives the run: %w", of.PID, err)
	}
	return nil
}

// alone holds the folder of runs for this server; the kernel frees it at its end.
func alone(runs string) (*os.File, error) {
	dir := filepath.Join(runs, ownFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("hold the folder of runs: %w; --runs names another", err)
	}
	f, err := lock.Hold(filepath.Join(dir, archive.LockFile))
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("another `fieldmesh serve` has the folder of runs %s; end it, or name another by --runs",
			runs)
	}
	return f, err
}
