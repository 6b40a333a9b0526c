package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// from start to its socket's answering; one of hundreds on one machine waits for the others
	daemonReady = 15 * time.Second
	daemonStop  = 3 * time.Second // from SIGTERM to SIGKILL: it retracts its routes meanwhile
	daemonKill  = 2 * time.Second // from SIGKILL to its end
	pollEvery   = 10 * time.Millisecond
)

// daemonProcess is a process that a change keeps running.
type daemonProcess struct {
	Name      string   `json:"name"`
	Binary    string   `json:"binary"`
	Dir       string   `json:"dir"` // holds its configuration, whose path marks the process
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	Former    [][]byte `json:"former,omitempty"` // routes of the same protocol that were there before
	// RouteProtocol marks its routes in the kernel.
	RouteProtocol int `json:"route_protocol"`
}

// configPath marks a daemon's process: no other carries it as an argument.
func (d daemonProcess) configPath() string { return filepath.Join(d.Dir, d.Name+".conf") }
func (d daemonProcess) socketPath() string {
	return DaemonSocket(filepath.Dir(filepath.Dir(d.Dir)), d.Name)
}
func (d daemonProcess) logPath() string { return filepath.Join(d.Dir, d.Name+".log") }

// start writes the configuration, and starts the process and a goroutine that
// ends with it. The daemon gets SIGTERM when this process dies, however it dies.
// The kernel sends that when the thread that started the daemon ends, so that
// thread is kept for it.
func (d daemonProcess) start(config string, args []string) (<-chan error, error) {
	if err := os.MkdirAll(d.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", d.Name, err)
	}
	if err := os.WriteFile(d.configPath(), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of %s: %w", d.Name, err)
	}
	log, err := os.OpenFile(d.logPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", d.Name, err)
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the daemon
		cmd := exec.Command(d.Binary, args...)
		cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = log, log, "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmd.Wait()
		}
		ended <- errors.Join(err, log.Close())
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", d.Name, err)
	}
	return ended, nil
}

// awaitDaemon returns when the daemon answers.
func (k *kernel) awaitDaemon(kind daemonKind, u daemonProcess, ended <-chan error) error {
	deadline := time.After(daemonReady)
	for {
		if kind.answers(u) == nil {
			return k.share(u)
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%s ended at once (%w): %s", u.Name, errors.Join(err), lastWords(u.logPath()))
		case <-deadline:
			return fmt.Errorf("%s does not answer after %s: %s", u.Name, daemonReady, lastWords(u.logPath()))
		case <-time.After(pollEvery):
		}
	}
}

// share makes a daemon's socket readable for the network face; no daemon is
// configured to take changes over it.
func (k *kernel) share(u daemonProcess) error {
	err := os.Chown(u.socketPath(), k.socketUID, -1)
	if errors.Is(err, os.ErrNotExist) { // it answers elsewhere
		return nil
	}
	return err
}

// lastWords is the end of a daemon's log, on one line.
func lastWords(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = data[max(0, len(data)-500):]
	return strings.Join(strings.Fields(string(data)), " ")
}

// process is one process, told from a later one with the same number by the
// time at which it started.
type process struct {
	pid   int
	start string // in clock ticks after boot, as /proc tells it
}

// findDaemon finds the processes that an undo is about. After a crash nothing
// but the configuration's path tells which they are, and they may not even
// have been recorded: a process is started before its number is known.
func findDaemon(u daemonProcess) []process {
	var out []process
	for _, pid := range processes() {
		if !isDaemon(pid, u) { // first, because it costs less than to inspect a process
			continue
		}
		if p, ok := inspect(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

func isDaemon(pid int, u daemonProcess) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || strings.TrimSuffix(exe, " (deleted)") != u.Binary {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := bytes.Split(line, []byte{0})
	return err == nil && slices.ContainsFunc(args, func(a []byte) bool { return string(a) == u.configPath() })
}

// inspect reads when a process started; ok is false for one that has ended.
func inspect(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold anything; what follows the last one is
	// fields 3 (state) and on; the start is field 22 (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	return process{pid: pid, start: fields[19]}, true
}

// sameDaemonElsewhere finds a daemon of this name in this network namespace
// that the host process has not started.
func (k *kernel) sameDaemonElsewhere(name string) int {
	for _, pid := range processes() {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || filepath.Base(exe) != name {
			continue
		}
		ino, err := namespaceOf(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil && ino == k.netns.Namespace {
			return pid
		}
	}
	return 0
}

func stopDaemon(u daemonProcess) error {
	for _, p := range findDaemon(u) {
		if err := p.stop(u); err != nil {
			return fmt.Errorf("stop %s: %w", u.Name, err)
		}
	}
	return nil
}

// stop asks a process to end, and makes it.
func (p process) stop(u daemonProcess) error {
	// The handle holds on to the process where the kernel can (pidfd), so
	// that what is inspected after it was opened is what gets the signal.
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.pid, err)
	}
	if now, ok := inspect(p.pid); !ok || now != p || !isDaemon(p.pid, u) {
		return handle.Release()
	}
	for _, step := range []struct {
		signal os.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, daemonStop}, {syscall.SIGKILL, daemonKill}} {
		if err := handle.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return errors.Join(fmt.Errorf("signal process %d: %w", p.pid, err), handle.Release())
		}
		if p.ends(step.wait) {
			return handle.Release()
		}
	}
	return errors.Join(fmt.Errorf("process %d does not end", p.pid), handle.Release())
}

func (p process) ends(within time.Duration) bool {
	for start := time.Now(); time.Since(start) < within; time.Sleep(pollEvery) {
		if now, ok := inspect(p.pid); !ok || now != p {
			return true
		}
	}
	return false
}

// removeDaemonDir is the end of a daemon's undo.
func removeDaemonDir(u daemonProcess) error {
	err := os.Remove(u.socketPath())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, os.RemoveAll(u.Dir)); err != nil {
		return fmt.Errorf("remove files of %s: %w", u.Name, err)
	}
	return nil
}
