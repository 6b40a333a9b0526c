package serve

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// Driver has runs driven by processes that outlive this one.
type Driver interface {
	// Begin starts one, whose output goes into a file.
	Begin(args []string, output string) (Process, error)
	// Driven reports whether a process, whoever started it, drives the run in a folder.
	Driven(dir string) (bool, error)
	// Interrupt tells it to end, as Ctrl-C does.
	Interrupt(dir string) error
}

// Process drives a run.
type Process interface {
	Ended() <-chan struct{} // is closed when it has
	Interrupt() error
}

// Programs is the Driver that starts a program.
type Programs struct{ Path string }

// Begin starts the program in a session of its own: what ends the server, or its terminal,
// does not end the run.
func (p Programs) Begin(args []string, output string) (Process, error) {
	out, err := os.Create(output)
	if err != nil {
		return nil, fmt.Errorf("begin to drive: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(p.Path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("begin to drive: %w", err)
	}
	c := child{process: cmd.Process, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	return c, nil
}

type child struct {
	process *os.Process
	ended   chan struct{}
}

func (c child) Ended() <-chan struct{} { return c.ended }

func (c child) Interrupt() error {
	if err := c.process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupt the process that drives the run: %w", err)
	}
	return nil
}

// Driven tells by the run's lock.
func (Programs) Driven(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, archive.LockFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find who drives a run: %w", err)
	}
	defer f.Close() // which gives the lock back
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("find who drives a run: lock %s: %w", f.Name(), err)
	}
	return false, nil
}

// Interrupt finds the process by the run's lock, which it has open.
func (Programs) Interrupt(dir string) error {
	lock, err := os.Stat(filepath.Join(dir, archive.LockFile))
	if err != nil {
		return fmt.Errorf("find who drives a run: %w", err)
	}
	found, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return fmt.Errorf("find who drives a run: %w", err)
	}
	for _, fds := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(fds)))
		if err != nil || pid == os.Getpid() || !holds(fds, lock) {
			continue
		}
		if err := unix.Kill(pid, unix.SIGINT); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("interrupt process %d, which drives the run: %w", pid, err)
		}
		return nil
	}
	return fmt.Errorf("the process that drives the run cannot be found: it may be another user's; end it by Ctrl-C " +
		"where it was started")
}

// holds reports whether a process has a file open. One of others cannot be looked into.
func holds(fds string, file os.FileInfo) bool {
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(fds, e.Name())); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}
