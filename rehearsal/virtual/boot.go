package virtual

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// channel is the terminal whose output goes to the launcher.
const channel = "/dev/tty1"

// own are the folders that a program in virtual time has for itself: empty,
// writable, and in memory.
func own() []string { return []string{"/run", "/tmp", "/var/tmp", "/var/lib"} }

// Boot is the first process of the kernel: it makes the machine ready, runs the
// job's command, and turns the machine off. The command's standard output goes
// to the launcher, what it says on standard error to the log. Boot does not
// return unless the machine is no machine of ours.
func Boot(text string) error {
	if os.Getpid() != 1 {
		return errors.New("boot: this is for the first process of a kernel in virtual time; run `fieldmesh rehearse " +
			"FILE --clock virtual`")
	}
	j, err := decodeJob(text)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fieldmesh:", err)
	}
	unix.Sync()
	// The output of a terminal is still on its way.
	if tty, err := os.OpenFile(channel, os.O_WRONLY|unix.O_NOCTTY, 0); err == nil {
		_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCSBRK, 1)
	}
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func (j job) run() error {
	if err := j.mountAll(); err != nil {
		return err
	}
	if err := settings(); err != nil {
		return err
	}
	out, err := rawTerminal(channel)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.start(j.Command); err != nil {
		return err
	}
	return nil
}

// mount is one file system of the machine.
type mount struct {
	source, target, kind, data string
	flags                      uintptr
}

func (j job) mountAll() error {
	all := []mount{
		{"proc", "/proc", "proc", "", 0},
		{"sys", "/sys", "sysfs", "", 0},
		{"dev", "/dev", "devtmpfs", "", 0},
		{"devpts", "/dev/pts", "devpts", "ptmxmode=666,newinstance", 0},
		{"shm", "/dev/shm", "tmpfs", "mode=1777", 0},
		{"cgroup", "/sys/fs/cgroup", "cgroup2", "", 0},
	}
	for _, dir := range own() {
		all = append(all, mount{"own", dir, "tmpfs", "mode=1777", 0})
	}
	for _, dir := range j.Readable {
		if hidden(dir) {
			all = append(all, mount{"host", dir, "hostfs", dir, unix.MS_RDONLY})
		}
	}
	all = append(all, mount{"host", j.Writable, "hostfs", j.Writable, 0})
	for _, m := range all {
		if err := os.MkdirAll(m.target, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("boot: make %s: %w", m.target, err)
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("boot: mount %s at %s: %w", m.kind, m.target, err)
		}
	}
	return nil
}

// hidden reports whether a folder of the program's own lies over this one.
func hidden(dir string) bool {
	return slices.ContainsFunc(own(), func(o string) bool { return dir == o || strings.HasPrefix(dir, o+"/") })
}

// settings are what a machine has that has come up: the loopback device, its
// name, and every TCP variant allowed to everybody, as a module's loading does
// it elsewhere.
func settings() error {
	if err := unix.Sethostname([]byte("virtual")); err != nil {
		return fmt.Errorf("boot: name the machine: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("boot: bring up lo: %w", err)
	}
	const variants = "/proc/sys/net/ipv4/tcp_%s_congestion_control"
	known, err := os.ReadFile(fmt.Sprintf(variants, "available"))
	if err != nil {
		return fmt.Errorf("boot: read TCP's variants: %w", err)
	}
	for path, value := range map[string]string{
		fmt.Sprintf(variants, "allowed"): string(known),
		// Out of memory is an end that is told, not a process that is missing.
		"/proc/sys/vm/panic_on_oom": "1\n",
	} {
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("boot: set %s: %w", filepath.Base(path), err)
		}
	}
	most := unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return fmt.Errorf("boot: allow open files: %w", err)
	}
	return nil
}

// terminal is a terminal that passes bytes on as they are.
type terminal struct{ *os.File }

func rawTerminal(path string) (terminal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return terminal{}, fmt.Errorf("boot: open the launcher's channel: %w", err)
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return terminal{}, errors.Join(fmt.Errorf("boot: set the launcher's channel: %w", err), f.Close())
	}
	return terminal{f}, nil
}

// start runs the command to its end, and buries the processes that others leave
// behind: that is the first process's duty.
func (t terminal) start(command []string) error {
	c := exec.Command(command[0], command[1:]...) //nolint:gosec // the launcher's
	c.Stdout, c.Stderr = t.File, os.Stderr
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8",
		// The host allows a program 65,530 pieces of memory, of a page each in the worst case.
		"GOMEMLIMIT=192MiB",
		// A collector that works beside the program has one thread wait for another by yielding again and again.
		// Under SCHED_FIFO, and with one processor, that other thread may never run.
		"GODEBUG=gcstoptheworld=2"}
	if err := c.Start(); err != nil {
		return fmt.Errorf("boot: start %s: %w", command[0], err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("boot: wait for %s: %w", command[0], err)
		case pid == c.Process.Pid && status.Signaled():
			return fmt.Errorf("boot: %s was ended by signal %v", command[0], status.Signal())
		case pid == c.Process.Pid:
			return nil // what went wrong, it has said itself
		}
	}
}

// Uptime is how long the machine has been up, by its own clock.
func Uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
