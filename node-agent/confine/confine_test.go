package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// takenOver names the folder of a process of this program that is confined as the
// face is, and then tries what it must not.
const takenOver = "FIELDMESH_TAKEN_OVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(takenOver); dir != "" {
		if err := json.NewEncoder(os.Stdout).Encode(tries(dir)); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// tried is what came of the tries: an error's text, or nothing where it was done.
type tried struct {
	Said   []string
	Before map[string]string // of those that this user may, when it is not confined
	After  map[string]string
	Needed map[string]string // what the face needs
}

// tries runs in a process that confines itself, and then as what it goes on as.
func tries(dir string) (t tried) {
	const child = "a descriptor of its own program's"
	if configOf(dir).Unprivileged() {
		needed[child] = ofAChild
	} else {
		forbidden[child] = ofAChild
	}
	before := filepath.Join(dir, "face", "before")
	if os.Getenv(confinedBy) == "" {
		raw, err := json.Marshal(try(dir, forbidden))
		if err == nil {
			err = os.WriteFile(before, raw, 0o600)
		}
		if err != nil {
			panic(err)
		}
	}
	c, err := Face(context.Background(), configOf(dir), filepath.Join(dir, "keys", "authorized.json"))
	t.Said, t.After, t.Needed = c.Said, try(dir, forbidden), try(dir, needed)
	raw, rerr := os.ReadFile(before)
	if err = errors.Join(err, rerr, json.Unmarshal(raw, &t.Before)); err != nil {
		panic(err)
	}
	return t
}

func configOf(dir string) config.Config {
	return config.Config{StateDir: dir, KeysDir: filepath.Join(dir, "keys"), Privileges: filepath.Base(dir),
		Binaries: map[string]string{"iperf3": filepath.Join(dir, "programs", "allowed")}}
}

func try(dir string, what map[string]func(dir string) error) map[string]string {
	out := map[string]string{}
	for name, do := range what {
		out[name] = text(do(dir))
	}
	return out
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func call(number uintptr, arguments ...uintptr) error {
	var a [6]uintptr
	copy(a[:], arguments)
	result, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if number == unix.SYS_MEMFD_CREATE || number == unix.SYS_PIDFD_GETFD {
		return unix.Close(int(result))
	}
	return nil
}

func socket(family, kind, protocol int) func(string) error {
	return func(string) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

// runs starts a program, of which it is enough that it begins.
func runs(path string, args ...string) error {
	c := exec.Command(path, args...)
	c.Env = []string{}
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

func copied(from, to string) error {
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o755)
	}
	return err
}

// takes a descriptor of another process's.
func takes(pid int) error {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return errors.Join(call(unix.SYS_PIDFD_GETFD, uintptr(pidfd), 0, 0), unix.Close(pidfd))
}

// ofAChild takes one of a program that was started.
func ofAChild(dir string) error {
	c := exec.Command(filepath.Join(dir, "programs", "allowed"), "60")
	if err := c.Start(); err != nil {
		return err
	}
	err := takes(c.Process.Pid)
	_ = c.Process.Kill()
	_ = c.Wait()
	return err
}

// files of others, and of the machine.
var files = []string{"/etc/passwd", "/etc/shadow", "/etc/hostname", "/var", "/home", "/root", "/tmp"}

var forbidden = map[string]func(dir string) error{
	"a file of others": func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "others")); return err },
	"the machine's files": func(string) error {
		var none error
		for _, path := range files {
			f, err := os.Open(path)
			if err == nil {
				return f.Close()
			}
			none = err
		}
		return none
	},
	"a file by a link in its folder": func(dir string) error {
		link := filepath.Join(dir, "face", "link")
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(dir, "others"), link); err != nil {
			return err
		}
		_, err := os.ReadFile(link)
		return err
	},
	"a file by another name": func(dir string) error {
		name := filepath.Join(dir, "face", "hard")
		_ = os.Remove(name)
		return os.Link(filepath.Join(dir, "others"), name)
	},
	"a file beside its folder": func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "made"), nil, 0o600)
	},
	"its own keys, to change them": func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "keys", "authorized.json"), nil, 0o600)
	},
	"a shell": func(string) error { return runs("/bin/sh", "-c", "exit 0") },
	"a program that it wrote": func(dir string) error {
		if err := copied(filepath.Join(dir, "programs", "allowed"), filepath.Join(dir, "face", "own")); err != nil {
			return err
		}
		return runs(filepath.Join(dir, "face", "own"))
	},
	"a program in memory": func(string) error {
		name := []byte("x\x00")
		return call(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name[0])), 0)
	},
	"to be traced, and to trace": func(string) error {
		return call(unix.SYS_PTRACE, unix.PTRACE_PEEKUSR, uintptr(unix.Getppid()))
	},
	"a descriptor of another process's": func(string) error { return takes(unix.Getppid()) },
	"the memory of another process": func(string) error {
		var b [1]byte
		local := unix.Iovec{Base: &b[0], Len: 1}
		remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&b[0])), Len: 1}
		_, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		return err
	},
	"a packet socket":           socket(unix.AF_PACKET, unix.SOCK_RAW, 0),
	"the kernel's cryptography": socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	"netlink of devices":        socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
	"netlink of the filter":     socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
	"a name space of its own":   func(string) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"a child in one": func(string) error {
		return call(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_THREAD) // of which the kernel itself refuses the pair
	},
	"io_uring":         func(string) error { return call(unix.SYS_IO_URING_SETUP, 1, 0) },
	"a program of BPF": func(string) error { return call(unix.SYS_BPF, 0, 0, 0) },
	"the keyring":      func(string) error { return call(unix.SYS_KEYCTL, 0, uintptr(0xfffffffd), 0) },
	"watching a process's events": func(string) error {
		return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, ^uintptr(0), ^uintptr(0), 0)
	},
}

var needed = map[string]func(dir string) error{
	"files in its folder": func(dir string) error {
		from, to := filepath.Join(dir, "face", "spool", "a"), filepath.Join(dir, "face", "a")
		err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o700), os.WriteFile(from, []byte("a"), 0o600),
			os.Rename(from, to), os.Truncate(to, 0), os.Remove(to))
		return err
	},
	"its keys": func(dir string) error {
		_, err := os.ReadFile(filepath.Join(dir, "keys", "authorized.json"))
		return err
	},
	"what the kernel tells": func(string) error {
		_, err := os.ReadFile("/proc/net/tcp")
		_, serr := os.ReadDir("/sys/class/net")
		return errors.Join(err, serr)
	},
	"the generator": func(dir string) error { return runs(filepath.Join(dir, "programs", "allowed"), "--version") },
	"what a program of its own has open, by another thread": func(dir string) error {
		c := exec.Command(filepath.Join(dir, "programs", "allowed"), "60")
		if err := c.Start(); err != nil {
			return err
		}
		looked := make(chan error)
		runtime.LockOSThread() // so that another one looks
		go func() {
			_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", c.Process.Pid))
			looked <- err
		}()
		err := <-looked
		runtime.UnlockOSThread()
		_ = c.Process.Kill()
		_ = c.Wait()
		return err
	},
	"netlink of interfaces": socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
	"netlink of sockets":    socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_INET_DIAG),
	"netlink of the radio":  socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC),
	"a unix socket":         socket(unix.AF_UNIX, unix.SOCK_STREAM, 0),
	"a socket of IPv6":      socket(unix.AF_INET6, unix.SOCK_DGRAM, 0),
	"to be listened to": func(string) error {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return l.Close()
	},
	"no output": func(string) error {
		f, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, "x")
		return errors.Join(err, f.Close())
	},
	"the size of a ring buffer": func(string) error {
		if err := call(unix.SYS_BPF, objectInfo, 0, 0); errors.Is(err, unix.EPERM) {
			return err
		}
		return nil
	},
}

// Whoever has taken the face over tries what it must not, in a process that is
// confined by the same function.
//
//attack:face whoever has taken it over opens files that are not its own, by links or by other names | Landlock: its
//attack:and own folder, its keys to read, and what programs need to begin
//attack:face whoever has taken it over starts a shell, a program that it wrote, by its name, or one in memory |
//attack:and Landlock: what the configuration names may be started; seccomp
//attack:face whoever has taken it over traces, reads or watches other processes | seccomp
//attack:face whoever has taken it over opens packet sockets, and netlinks that it does not need | seccomp
//attack:face whoever has taken it over reaches for more of the kernel: name spaces, io_uring, BPF, keys | seccomp
//attack:face whoever has taken over that of a node without root takes descriptors of its user's other
//attack:and programs | Landlock leaves it its own programs'
func TestATakenOverFaceIsConfined(t *testing.T) {
	for _, privileges := range []string{"root", config.NoPrivileges} {
		t.Run(privileges, func(t *testing.T) { takenOverFace(t, filepath.Join(t.TempDir(), privileges)) })
	}
}

func takenOverFace(t *testing.T, dir string) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"face", "keys", "programs"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"others", "keys/authorized.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	allowed, err := exec.LookPath("sleep")
	if err == nil {
		err = copied(allowed, filepath.Join(dir, "programs", "allowed"))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), takenOver+"="+dir)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got tried
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, lacks := landlockVersion(false) // what probe says
	if said := strings.HasPrefix(got.Said[0], noLandlock); said != (lacks != nil) {
		t.Errorf("%q, and Landlock is there: %v", got.Said, lacks)
	}
	if said, lacks := slices.Contains(got.Said, "seccomp"), filters(); said != (lacks == nil) {
		t.Errorf("%q, and filters are there: %v", got.Said, lacks)
	}
	if len(got.Said) != 2 || !strings.HasPrefix(got.Said[0], "Landlock ") || got.Said[1] != "seccomp" {
		t.Skipf("needs a kernel that has Landlock and seccomp: %v", got.Said)
	}
	may := 0
	for _, name := range slices.Sorted(maps.Keys(got.After)) {
		if got.Before[name] == "" {
			may++
		}
		if why := got.After[name]; !strings.Contains(why, "permission denied") &&
			!strings.Contains(why, "operation not permitted") && !strings.Contains(why, "cross-device link") {
			t.Errorf("%s: refused with %q, want that it is not permitted; before: %q", name, why, got.Before[name])
		}
	}
	if may < 12 {
		t.Errorf("not confined, it may do %d of them only: %v", may, got.Before)
	}
	for name, why := range got.Needed {
		if why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// A program that has come, or was replaced, is not started: it is said.
func TestWhatMayBeStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "iperf3")
	put := func(text string) {
		t.Helper()
		err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o755), os.Rename(path+".new", path))
		if err != nil {
			t.Fatal(err)
		}
	}
	if c := (Confined{}); !c.Startable(path) {
		t.Error("where nothing is confined, a program may not be started")
	}
	c := Confined{programs: map[string]program{}}
	if !c.Startable(path) {
		t.Error("of a program that is not there another fault is to be said")
	}
	put("one")
	if c.Startable(path) {
		t.Error("one that has come may be started")
	}
	now, _ := fileOf(path)
	loader := filepath.Join(t.TempDir(), "ld.so")
	for range 2 {
		if err := errors.Join(os.WriteFile(loader+".new", nil, 0o755), os.Link(loader+".new", loader)); err != nil {
			t.Fatal(err)
		}
		c.programs[path] = programOf(now, loader)
		if !c.Startable(path) || c.Newcomer(map[string]string{"iperf3": path}) != "" {
			t.Error("one that was there may not be started")
		}
		old, err := os.Open(loader)
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if err := errors.Join(os.Remove(loader), os.Remove(loader+".new")); err != nil {
			t.Fatal(err)
		}
		if c.Startable(path) || c.Newcomer(map[string]string{"iperf3": path}) != path {
			t.Error("one whose loader was replaced may be started")
		}
	}
	c.programs[path] = programOf(now, "")
	keep, err := os.Open(path) // so that the next is another file
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	put("two")
	if c.Startable(path) {
		t.Error("one that was replaced may be started")
	}
}

// The loader of a program is what the kernel starts in its place.
func TestLoaderOfAProgram(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, is, err := loaderOf(script); err != nil || !is {
		t.Errorf("a script: %v, %v", is, err)
	}
	if loader, is, err := loaderOf("/proc/self/exe"); err != nil || is || loader != "" {
		t.Errorf("this program, which is static, has loader %q, %v, %v", loader, is, err)
	}
	if err := os.WriteFile(script, []byte("neither"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loaderOf(script); err == nil {
		t.Error("what is no program has a loader")
	}
	broken := map[string]string{"iperf3": script}
	if c := (Confined{programs: placesOf(config.Config{StateDir: dir, Binaries: broken}).programs}); c.Newcomer(
		broken) != "" {
		t.Error("for a program that nobody can start the face begins again")
	}
	p := placesOf(config.Config{StateDir: dir, Binaries: map[string]string{"iperf3": fmt.Sprint(dir, "/none")}})
	if len(p.start) != 0 || len(p.programs) != 0 {
		t.Errorf("a program that is not there: %+v", p)
	}
}

// Only an app of Android's does without Landlock: not the face that root's agent starts on a phone.
func TestOnlyAnAppDoesWithoutLandlock(t *testing.T) {
	for _, c := range []struct {
		system, privileges string
		want               bool
	}{{"android", config.NoPrivileges, true}, {"android", "root", false}, {"linux", config.NoPrivileges, false}} {
		if got := isApp(c.system, config.Config{Privileges: c.privileges}); got != c.want {
			t.Errorf("%s, privileges %s: %v", c.system, c.privileges, got)
		}
	}
}
