package testnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ordinary are the words before a program that runs as Nobody, without any capability and
// without a way to get one.
var ordinary = []string{"setpriv", fmt.Sprintf("--reuid=%d", Nobody), fmt.Sprintf("--regid=%d", Nobody),
	"--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}

// Ordinary is a program of an ordinary user's in the namespace.
func (n *NS) Ordinary(ctx context.Context, program string, args ...string) *exec.Cmd {
	return n.Command(ctx, ordinary[0], append(append(ordinary[1:len(ordinary):len(ordinary)], program), args...)...)
}

// What the test's own program is called where it makes itself an app.
const (
	app       = "fieldmesh-app"
	strictApp = app + "-strict"
)

// App is Ordinary, and besides the program gets no more of the kernel than an app of
// Android's does, as far as that can be made here: no netlink, nothing of /proc/net, which
// is closed to the namespace's other users, too, nothing of /sys/class/net, and calls that
// end it. The package's tests are run by WithPrograms.
func (n *NS) App(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	return n.app(t, app, program, args)
}

// StrictApp is App on a phone that lets apps bind no sockets to an interface, as GrapheneOS does.
func (n *NS) StrictApp(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	return n.app(t, strictApp, program, args)
}

func (n *NS) app(t testing.TB, as, program string, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), as)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return n.Command(t.Context(), link, append([]string{program}, args...)...)
}

// beApp goes on as the program of App; it returns only with an error.
func beApp(isStrict bool, words []string) error {
	runtime.LockOSThread() // which is the program's then, with its filter
	err := filepath.WalkDir("/proc/thread-self/net", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = os.Chmod(path, 0o440) // in this network namespace alone
		}
		return err
	})
	if err == nil {
		err = unix.Mount("none", "/sys/class/net", "tmpfs", 0, "mode=000") // `ip netns exec` has made a mount namespace
	}
	if err == nil {
		err = filterCalls(isStrict)
	}
	if err != nil {
		return fmt.Errorf("be an app: %w", err)
	}
	setpriv, err := exec.LookPath(ordinary[0])
	if err != nil {
		return err
	}
	return syscall.Exec(setpriv, append(ordinary[:len(ordinary):len(ordinary)], words...), os.Environ())
}

// deadly are calls that end an app, as far as no program here needs them to begin
// (SECCOMP_BLOCKLIST_APP.TXT of bionic).
var deadly = []uint32{unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY,
	unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_CHROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_SWAPON,
	unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_REBOOT, unix.SYS_INIT_MODULE,
	unix.SYS_DELETE_MODULE}

// filterCalls has the kernel refuse this thread, and what it starts, every socket of netlink,
// and end it by SIGSYS for what is deadly. Where it is strict, it refuses to bind sockets to an interface, too.
func filterCalls(isStrict bool) error {
	all := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}} // the call's number (struct seccomp_data)
	for _, number := range deadly {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_TRAP})
	}
	if isStrict {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SETSOCKOPT, SkipTrue: 4},
			bpf.LoadAbsolute{Off: 32, Size: 4}, // its third argument
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SO_BINDTODEVICE, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			bpf.LoadAbsolute{Off: 0, Size: 4})
	}
	raw, err := bpf.Assemble(append(all,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 16, Size: 4}, // its first argument
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	of := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&of)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errors.Join(errors.New("set a filter of system calls"), errno)
	}
	return nil
}
