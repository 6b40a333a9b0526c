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
	daemonReady = 15 * time.Second // from start to its socket's answering; one of hundreds on one machine waits for the others
	daemonStop  = 3 * time.Second  // from SIGTERM to SIGKILL: it retracts its routes meanwhile
	daemonKill  = 2 * time.Second  // from SIGKILL to its end
	pollEvery   = 10 * time.Millisecond
)

// DaemonSocket is where the daemon of a name that a host process with a state
// directory started can be asked, by root and the first of its AllowUIDs. What
// it speaks is the daemon's own.
func DaemonSocket(stateDir, name string) string {
	return filepath.Join(stateDir, "daemons", name+".sock")
}

// configPath marks a daemon's process: no other carries it as an argument.
func (d daemonUndo) configPath() string { return filepath.Join(d.Dir, d.Name+".conf") }
func (d daemonUndo) socketPath() string {
	return DaemonSocket(filepath.Dir(filepath.Dir(d.Dir)), d.Name)
}
func (d daemonUndo) logPath() string { return filepath.Join(d.Dir, d.Name+".log") }

func (k *kernel) prepareDaemon(id uint64, d Daemon) (undo, error) {
	kind, known := daemonKinds()[d.Name]
	if !known {
		return undo{}, &Refused{Reason: d.Name + " is no daemon that the host process knows"}
	}
	binary := k.binaries[kind.binary]
	if binary == "" {
		return undo{}, &Refused{Reason: "no binary is configured for " + d.Name}
	}
	link, err := findLink(d.Interface)
	if err != nil {
		return undo{}, err
	}
	if pid := k.sameDaemonElsewhere(d.Name); pid != 0 {
		return undo{}, &Refused{
			Reason: fmt.Sprintf("a %s that is not ours runs already, as process %d", d.Name, pid),
			Cure:   "stop it: two would fight over the same routes",
		}
	}
	if _, err := readSysctl("/proc/sys/net/ipv6/conf/" + d.Interface + "/disable_ipv6"); err != nil && kind.linkLocal {
		return undo{}, &Refused{
			Reason: fmt.Sprintf("%s speaks over IPv6 link-local addresses, and %s cannot have any: %v", d.Name, d.Interface, err),
			Cure:   "use a kernel with IPv6, or a plan with routing: static",
		}
	}
	u := undo{Daemon: &daemonUndo{
		Name: d.Name, Binary: binary, Interface: d.Interface, Index: link.Attrs().Index,
		Dir:           filepath.Join(k.dir, "daemons", fmt.Sprintf("%d-%s", id, d.Name)),
		RouteProtocol: kind.routeProtocol,
	}}
	if u.Daemon.Former, err = daemonRoutes(*u.Daemon); err != nil {
		return undo{}, err
	}
	if kind.mesh {
		if err := prepareMesh(link, &u); err != nil {
			return undo{}, err
		}
	}
	u.Sysctls, err = kind.settings(d.Interface)
	return u, err
}

func (k *kernel) applyDaemon(d Daemon, u undo) error {
	kind := daemonKinds()[d.Name]
	for _, s := range kind.sysctls(d.Interface) {
		if err := writeSysctl(s.path(), s.Value); err != nil {
			return err
		}
	}
	if kind.mesh {
		if err := makeMesh(d, u); err != nil {
			return err
		}
	}
	// A mesh of layer 2 has no routes of its own; those that were given move to it.
	if key := quickAckKey(d.Name); d.QuickAck && !kind.mesh && k.loaded[key] == nil {
		a, err := acknowledgeOver(kind.routeProtocol, d.Announce, k.log)
		if err != nil {
			return err
		}
		k.loaded[key] = a
	}
	if len(findDaemon(*u.Daemon)) > 0 {
		return nil
	}
	if err := os.MkdirAll(u.Daemon.Dir, 0o711); err != nil {
		return fmt.Errorf("make directory of %s: %w", d.Name, err)
	}
	text, err := kind.config(k, d, *u.Daemon)
	if err != nil {
		return fmt.Errorf("make configuration of %s: %w", d.Name, err)
	}
	if err := os.WriteFile(u.Daemon.configPath(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", d.Name, err)
	}
	ended, err := startDaemon(*u.Daemon, kind.args(*u.Daemon))
	if err != nil {
		return fmt.Errorf("start %s: %w", d.Name, err)
	}
	return k.awaitDaemon(kind, *u.Daemon, ended)
}

// startDaemon starts the process and a goroutine that ends with it. The
// daemon gets SIGTERM when this process dies, however it dies. The kernel
// sends that when the thread that started the daemon ends, so that thread is
// kept for it.
func startDaemon(u daemonUndo, args []string) (<-chan error, error) {
	log, err := os.OpenFile(u.logPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the daemon
		cmd := exec.Command(u.Binary, args...)
		cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = log, log, "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmd.Wait()
		}
		ended <- errors.Join(err, log.Close())
	}()
	return ended, <-started
}

// awaitDaemon returns when the daemon answers.
func (k *kernel) awaitDaemon(kind daemonKind, u daemonUndo, ended <-chan error) error {
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
func (k *kernel) share(u daemonUndo) error {
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
func findDaemon(u daemonUndo) []process {
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

func isDaemon(pid int, u daemonUndo) bool {
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
		if err == nil && ino == k.world.Namespace {
			return pid
		}
	}
	return 0
}

func stopDaemon(u daemonUndo) error {
	for _, p := range findDaemon(u) {
		if err := p.stop(u); err != nil {
			return fmt.Errorf("stop %s: %w", u.Name, err)
		}
	}
	return nil
}

// stop asks a process to end, and makes it.
func (p process) stop(u daemonUndo) error {
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
func removeDaemonDir(u daemonUndo) error {
	err := os.Remove(u.socketPath())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, os.RemoveAll(u.Dir)); err != nil {
		return fmt.Errorf("remove files of %s: %w", u.Name, err)
	}
	return nil
}
