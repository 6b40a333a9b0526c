//go:build e2e

package virtual

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs, open to every user.
var programs string

func TestMain(m *testing.M) {
	if isInside() {
		os.Exit(m.Run())
	}
	os.Exit(testnet.WithPrograms(m.Run, &programs))
}

// desk is a folder of an ordinary user, who has the kernel, a short campaign and
// a folder for runs.
type desk struct {
	dir    string
	kernel kernel.Kernel
	before map[string]bool // the user's files that were there before
}

// newDesk has velocity.yaml with these speeds and one repetition: two trials each.
func newDesk(t *testing.T, speeds string) *desk {
	t.Helper()
	k := theKernel(t)
	d := &desk{dir: testnet.Folder(t), kernel: k, before: map[string]bool{}}
	for _, path := range leftovers(t) {
		d.before[path] = true
	}
	d.write(t, "velocity.yaml", campaign(t, speeds))
	body, err := os.ReadFile(k.Path)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "linux", body)
	if err := os.Mkdir(d.path("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.path("runs"), testnet.Nobody, testnet.Nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.nothingLeft(t) })
	return d
}

// theKernel is the one for virtual time; without it, or without root, the test is skipped.
func theKernel(t *testing.T) kernel.Kernel {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the kernel for virtual time is for x86-64")
	}
	k, err := kernel.Find()
	if errors.Is(err, kernel.ErrNone) {
		t.Skipf("%v (%s)", err, kernel.Build)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func campaign(t *testing.T, speeds string) []byte {
	t.Helper()
	text, err := os.ReadFile(testnet.Campaign(t, "../../campaigns/velocity.yaml", "velocity",
		"levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: "+speeds, "repetitions: 2", "repetitions: 1"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(t *testing.T, name string, body []byte) {
	t.Helper()
	if err := os.WriteFile(d.path(name), body, 0o755); err != nil {
		t.Fatal(err)
	}
}

// rehearse is the command of that user, without any environment.
func (d *desk) rehearse(args ...string) *exec.Cmd {
	all := []string{"env", "-i", "PATH=/usr/bin:/bin", filepath.Join(programs, "fieldmesh"), "rehearse",
		"--runs", "runs", "--kernel", d.path("linux")}
	return d.asNobody(append(all, args...)...)
}

// asNobody is a command of that user, without any capability.
func (d *desk) asNobody(args ...string) *exec.Cmd {
	all := []string{"--reuid", fmt.Sprint(testnet.Nobody), "--regid", fmt.Sprint(testnet.Nobody), "--clear-groups",
		"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}
	cmd := exec.Command("setpriv", append(all, args...)...)
	cmd.Dir = d.dir
	return cmd
}

// processes are those of this desk's kernels: each kernel, and the stubs, which
// bear no name of the desk: those that are not another living kernel's children.
func (d *desk) processes(t *testing.T) (kernels, stubs []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err != nil {
			t.Fatal(err)
		}
		switch name, _, _ := strings.Cut(string(text), "\x00"); name {
		case d.path("linux"):
			kernels = append(kernels, pid)
		case "uml-userspace":
			if !d.another(pid) {
				stubs = append(stubs, pid)
			}
		}
	}
	return kernels, stubs
}

// another reports whether a stub's parent is a kernel of another desk.
func (d *desk) another(stub int) bool {
	parent := parentOf(stub)
	if parent == 0 {
		return true // it has ended
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
	name, rest, _ := strings.Cut(string(text), "\x00")
	return err == nil && name != d.path("linux") && strings.Contains(rest, "time-travel=")
}

// endWithin is how long the kernel's processes may take to end once it is dead.
const endWithin = 20 * time.Second

// nothingLeft waits until no process is left, and looks for files of that user
// that were not there before; the desk itself is another's.
func (d *desk) nothingLeft(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(endWithin); ; time.Sleep(50 * time.Millisecond) {
		kernels, stubs := d.processes(t)
		if len(kernels)+len(stubs) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Errorf("processes are left: kernels %v, stubs %v", kernels, stubs)
			break
		}
	}
	for _, path := range leftovers(t) {
		if !d.before[path] {
			t.Errorf("left behind: %s", path)
		}
	}
}

// leftovers are that user's files where programs leave some.
func leftovers(t *testing.T) (paths []string) {
	t.Helper()
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp", "/run"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // somebody else's, and gone
			}
			if own, ok := info.Sys().(*syscall.Stat_t); ok && own.Uid == testnet.Nobody {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths
}
