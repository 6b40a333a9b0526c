// Package process starts daemons so that they end with this process, finds them
// again after a crash, and ends them. What they are for it does not know:
// node-agent/host does, and alone uses it.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OwnProgram is the program that runs, whatever lies at its path by now: its file may
// lie where others can write.
const OwnProgram = "/proc/self/exe"

const (
	// from start to its socket's answering; one of hundreds on one machine waits for the others
	daemonReady = 15 * time.Second
	daemonStop  = 3 * time.Second // from SIGTERM to SIGKILL: it retracts its routes meanwhile
	daemonKill  = 2 * time.Second // from SIGKILL to its end
	pollEvery   = 10 * time.Millisecond
)

// Daemon is a process that a change keeps running.
type Daemon struct {
	Name      string   `json:"name"`
	Binary    string   `json:"binary"` // its path
	Dir       string   `json:"dir"`    // holds its configuration, whose path marks the process
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	Former    [][]byte `json:"former,omitempty"` // routes of the same protocol that were there before
	// RouteProtocol marks its routes in the kernel.
	RouteProtocol int `json:"route_protocol"`
}

// ConfigPath marks a daemon's process: no other carries it as an argument.
func (d Daemon) ConfigPath() string { return filepath.Join(d.Dir, d.Name+".conf") }
func (d Daemon) logPath() string    { return filepath.Join(d.Dir, d.Name+".log") }

// Start writes the configuration, and starts the process, which runs the program
// (Binary, or OwnProgram for what is ours), and a goroutine that ends with it. The
// daemon gets SIGTERM when this process dies, however it dies. The kernel sends that
// when the thread that started the daemon ends, so that thread is kept for it.
func (d Daemon) Start(program, config string, args []string) (<-chan error, error) {
	if err := os.MkdirAll(d.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", d.Name, err)
	}
	if err := os.WriteFile(d.ConfigPath(), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of %s: %w", d.Name, err)
	}
	log, err := os.OpenFile(d.logPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", d.Name, err)
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the daemon
		cmd := exec.Command(program, args...)
		cmd.Args[0] = d.Binary
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

// Await returns when the daemon answers; ended tells that it has ended.
func (d Daemon) Await(answers func() error, ended <-chan error) error {
	deadline := time.After(daemonReady)
	for {
		if answers() == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%s ended at once (%w): %s", d.Name, errors.Join(err), d.LastWords())
		case <-deadline:
			return fmt.Errorf("%s does not answer after %s: %s", d.Name, daemonReady, d.LastWords())
		case <-time.After(pollEvery):
		}
	}
}

// LastWords is the end of the daemon's log, on one line.
func (d Daemon) LastWords() string {
	data, err := os.ReadFile(d.logPath())
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

// Runs reports whether the daemon's process is there.
func (d Daemon) Runs() bool { return len(d.find()) > 0 }

// find finds the processes that an undo is about. After a crash nothing
// but the configuration's path tells which they are, and they may not even
// have been recorded: a process is started before its number is known.
func (d Daemon) find() []process {
	var out []process
	for _, pid := range All() {
		if !isDaemon(pid, d) {
			continue
		}
		if p, ok := inspect(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// isDaemon asks first what costs least: a machine has many processes.
func isDaemon(pid int, d Daemon) bool {
	if !slices.ContainsFunc(bytes.Split(commandLine(pid), []byte{0}), func(a []byte) bool {
		return string(a) == d.ConfigPath()
	}) {
		return false
	}
	return trusted(pid) && d.runsAs(pid) // not whoever else has a program and an argument of that name
}

// commandLine is a process's, its arguments ended by zeros; nil when it cannot be read.
// os.ReadFile would ask Go's poller about the file, by six system calls more.
func commandLine(pid int) []byte {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/cmdline", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var line []byte
	for buf := make([]byte, 4096); ; {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil
		case n == 0:
			return line
		default:
			line = append(line, buf[:n]...)
		}
	}
}

// runsAs reports whether a process runs the daemon's program, or ours, which may have
// been moved since it began.
func (d Daemon) runsAs(pid int) bool {
	link := fmt.Sprintf("/proc/%d/exe", pid)
	exe, err := os.Readlink(link)
	if errors.Is(err, os.ErrPermission) {
		return isCalled(pid, filepath.Base(d.Binary))
	}
	if err != nil || strings.TrimSuffix(exe, " (deleted)") == d.Binary {
		return err == nil
	}
	its, err := os.Stat(link)
	if err != nil {
		return false
	}
	own, err := os.Stat(OwnProgram)
	return err == nil && os.SameFile(its, own)
}

// isCalled reports whether a process goes by a program's name. Everybody may read that; which program it is,
// CAP_SYS_PTRACE aside, only who has all the capabilities of the process (ptrace(2)).
func isCalled(pid int, name string) bool {
	if _, alive := inspect(pid); !alive {
		return false
	}
	first, _, _ := bytes.Cut(commandLine(pid), []byte{0})
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may have ended
	return filepath.Base(string(first)) == name || strings.TrimSpace(string(comm)) == name
}

// trusted reports whether a process is this user's, or root's.
func trusted(pid int) bool {
	var st unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &st)
	return err == nil && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
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

// Named finds a process of a program in the network namespace of this one; 0: there is none.
func Named(name string) int {
	own, err := Network("thread-self")
	for _, pid := range All() {
		exe, unread := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		named := filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == name
		if errors.Is(unread, os.ErrPermission) {
			named = isCalled(pid, name)
		}
		if !named || !trusted(pid) {
			continue
		}
		// Where that cannot be told it counts as here.
		its, unknown := Network(strconv.Itoa(pid))
		if !errors.Is(unknown, os.ErrNotExist) && (err != nil || unknown != nil || its == own) {
			return pid
		}
	}
	return 0
}

// Stop ends it, if it is there.
func (d Daemon) Stop() error {
	for _, p := range d.find() {
		if err := p.stop(d); err != nil {
			return fmt.Errorf("stop %s: %w", d.Name, err)
		}
	}
	return nil
}

// stop asks a process to end, and makes it.
func (p process) stop(u Daemon) error {
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

// All lists the ids of the processes in /proc.
func All() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // without /proc nothing can be found there
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// NamespaceOf is the inode of the namespace that a path in /proc or /run/netns
// stands for.
func NamespaceOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// Network tells the network namespaces of processes that run apart, of those too that this one may not trace: it is the
// inode of a file that each namespace has (get_proc_task_net in fs/proc/proc_net.c asks for no permission).
func Network(pid string) (uint64, error) { return NamespaceOf("/proc/" + pid + "/net/dev") }
