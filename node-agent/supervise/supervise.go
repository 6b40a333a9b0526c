// Package supervise keeps the agent's two processes running: it starts them,
// starts them again when they end, and stops them in order. What the
// processes do, and which they are, stays out.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

// Back-off between two starts of a child: doubled from the first to the
// longest, and back to the first once the child has run for a while.
const (
	backOffFirst   = 100 * time.Millisecond
	backOffLongest = 5 * time.Second
	steady         = 10 * time.Second
)

// Child is one process to keep running.
type Child struct {
	Name       string
	Path       string
	Args       []string            // its argument zero first
	Credential *syscall.Credential // the user that it runs as; nil: this process's own
	Confined   bool                // it can never gain privileges (PR_SET_NO_NEW_PRIVS)
	StopWithin time.Duration       // from SIGTERM to SIGKILL
}

// Run keeps the children running until ctx ends, and then stops them one
// after the other, the last first. The error names those that had to be
// killed.
func Run(ctx context.Context, children []Child, log *slog.Logger) error {
	type running struct {
		stop context.CancelFunc
		done chan error
	}
	var all []running
	for _, c := range children {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		r := running{stop: stop, done: make(chan error, 1)}
		all = append(all, r)
		go func() { r.done <- c.keep(own, log) }()
	}
	<-ctx.Done()
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		all[i].stop()
		errs = append(errs, <-all[i].done)
	}
	return errors.Join(errs...)
}

// keep starts the child again and again until ctx ends.
func (c Child) keep(ctx context.Context, log *slog.Logger) error {
	wait := backOffFirst
	for {
		begun := time.Now()
		err := c.live(ctx, log)
		if ctx.Err() != nil {
			return err
		}
		if time.Since(begun) >= steady {
			wait = backOffFirst
		}
		log.Error("process ended by itself; it is started again", "process", c.Name, "error", err, "after", wait)
		if pause.For(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, backOffLongest)
	}
}

// live is one life of the child. It ends by itself, or by SIGTERM when ctx
// ends; the error is then that it had to be killed.
func (c Child) live(ctx context.Context, log *slog.Logger) error {
	started := make(chan *os.Process, 1)
	ended := make(chan error, 1)
	go func() {
		// The parent-death signal comes when the starting thread ends, and
		// no_new_privs is the thread's: it is the child's alone and ends with
		// the goroutine, being locked to it.
		runtime.LockOSThread()
		cmd := c.command()
		err := c.confine()
		if err == nil {
			err = cmd.Start()
		}
		started <- cmd.Process
		if err == nil {
			err = cmd.Wait()
		}
		ended <- err
	}()
	process := <-started
	if process != nil {
		log.Info("process is started", "process", c.Name, "pid", process.Pid)
	}
	select {
	case err := <-ended:
		return c.wrap(err)
	case <-ctx.Done():
	}
	if process == nil {
		return c.wrap(<-ended)
	}
	return c.end(process, ended)
}

func (c Child) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s ended with %w", c.Name, err)
}

// end stops a process, and makes it.
func (c Child) end(process *os.Process, ended <-chan error) error {
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.Name, err)
	}
	select {
	case err := <-ended:
		// An error of its own, as that something could not be undone, counts;
		// that it ended by the signal does not.
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Exited() {
			return c.wrap(err)
		}
		return nil
	case <-time.After(c.StopWithin):
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.Name, err)
	}
	<-ended
	return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", c.Name, c.StopWithin)
}

func (c Child) command() *exec.Cmd {
	cmd := &exec.Cmd{Path: c.Path, Args: c.Args, Stdout: os.Stdout, Stderr: os.Stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGTERM, // however this process ends
		// A terminal's Ctrl-C comes to this process, which keeps the order; and of another session none can type
		// into that terminal, which root's shell reads again afterwards.
		Setsid:     true,
		Credential: c.Credential,
	}
	if c.Credential != nil {
		cmd.Env = slices.DeleteFunc(os.Environ(), secret)
	}
	return cmd
}

// secret reports whether a variable of this process's user is not for another: all are but those by which programs
// find their files, on Android too.
func secret(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return !strings.HasPrefix(name, "ANDROID_") &&
		!slices.Contains([]string{"PATH", "LANG", "TMPDIR", "TZ", "PREFIX", "LD_LIBRARY_PATH"}, name)
}

func (c Child) confine() error {
	if !c.Confined {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine %s: %w", c.Name, err)
	}
	return nil
}
