package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bootLimit is how long a guest may take to its first word: it is there in 5
// to 8 s on a machine that does nothing else. graceLimit is what it has to end
// after the test's own time is over.
const (
	bootLimit  = 4 * time.Minute
	graceLimit = time.Minute
)

// execute boots a guest, runs the test in it and returns its exit status. An
// error says that the test did not come to its end.
func execute(binary string, args []string) (int, error) {
	if runtime.GOARCH != "amd64" {
		return 1, fmt.Errorf("guests are built for amd64 hosts, this is %s", runtime.GOARCH)
	}
	kernel, release, err := findKernel()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "fieldmesh-guest-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // only a temporary folder stays
	req, err := newRequest(binary, args, kernel, release)
	if err != nil {
		return 1, err
	}
	if err := makeDisk(dir); err != nil {
		return 1, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGHUP)
	defer stop()
	for boot, died := 1, 0; boot <= bootsMax; {
		next := req
		next.Env = append(slices.Clone(req.Env), fmt.Sprintf("FIELDMESH_GUEST_BOOT=%d", boot))
		if err := packInitramfs(filepath.Join(dir, "initramfs"), filepath.Join(kernel, "lib/modules", release),
			next); err != nil {
			return 1, fmt.Errorf("make the initramfs: %w", err)
		}
		m := &machine{kernel: kernel, dir: dir, token: req.Token, limit: testLimit(args)}
		code, err := m.run(ctx)
		if errors.Is(err, errReset) {
			boot++
			continue
		}
		if errors.Is(err, errNotUp) && died < diedMax {
			died++
			fmt.Fprintf(os.Stderr, "guest: %v; booting again\n%s\n", err, m.tail())
			continue
		}
		if err != nil {
			return 1, fmt.Errorf("%w\n%s", err, m.tail())
		}
		return code, nil
	}
	return 1, fmt.Errorf("the test reset the guest %d times", bootsMax)
}

// bootsMax bounds how often a test may have its guest reset; diskBytes is the
// size of the disk that outlives that, of which only what is written takes room.
const (
	bootsMax  = 32
	diskBytes = 256 << 20
)

// errNotUp says that the kernel ended before init was there, so that nothing of
// the test had run. QEMU's threads let one processor run into an instruction that
// another is just patching (text_poke_bp): Linux 6.12 was seen to oops in
// sched_clock_cpu at "int3".
var errNotUp = errors.New("the kernel died while it booted")

// diedMax bounds how often it is booted again for that.
const diedMax = 2

// errReset says that the test had the guest reset, as a loss of power would.
var errReset = errors.New("the guest was reset")

func diskOf(dir string) string { return filepath.Join(dir, "disk") }

func makeDisk(dir string) error {
	f, err := os.Create(diskOf(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(diskBytes), f.Close())
}

// findKernel is the folder of the kernel that FIELDMESH_GUEST_KERNEL names,
// and the kernel's release.
func findKernel() (dir, release string, err error) {
	flavour := os.Getenv("FIELDMESH_GUEST_KERNEL")
	if flavour == "" {
		flavour = flavours[0].name
	}
	root, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == "/" {
			return "", "", errors.New("no go.mod above this folder: run it inside the repository")
		}
		root = filepath.Dir(root)
	}
	dir = filepath.Join(root, ".tools/guest", flavour)
	releases, _ := filepath.Glob(filepath.Join(dir, "lib/modules/*")) // only a bad pattern is an error
	if _, err := os.Stat(filepath.Join(dir, "vmlinux")); err != nil || len(releases) != 1 {
		return "", "", fmt.Errorf("kernel %s is not in %s: `scripts/setup test` fetches it from Debian", flavour, dir)
	}
	// The guest finds it by this path from outside its own root.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	return dir, filepath.Base(releases[0]), nil
}

func newRequest(binary string, args []string, kernel, release string) (request, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return request{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return request{}, err
	}
	files, err := moduleFiles(filepath.Join(kernel, "lib/modules", release), early)
	if err != nil {
		return request{}, err
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return request{Token: fmt.Sprintf("guest-%x", random), Args: append([]string{binary}, args...), Env: environment(),
		Dir: dir, Modules: files, ModulesDir: filepath.Join(kernel, "lib/modules")}, nil
}

// environment is what a test sees: what is about tests and the language, not
// the host's services.
func environment() []string {
	out := []string{"HOME=/root", "USER=root", "FIELDMESH_GUEST=1", "PATH=" + os.Getenv("PATH") +
		":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range os.Environ() {
		for _, prefix := range []string{"FIELDMESH_", "LANG=", "LC_ALL=", "GOTRACEBACK=", "GODEBUG=", "GOROOT="} {
			if strings.HasPrefix(e, prefix) {
				out = append(out, e)
			}
		}
	}
	return out
}

func packInitramfs(path, modulesDir string, req request) error {
	text, err := json.Marshal(req)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeInitramfs(f, modulesDir, text, req.Modules), f.Close())
}

// testLimit is how long the test may run by its own flag, 10 minutes as
// `go test` has it when there is none.
func testLimit(args []string) time.Duration {
	for _, a := range args {
		for _, name := range []string{"-test.timeout=", "--test.timeout="} {
			if value, ok := strings.CutPrefix(a, name); ok {
				if d, err := time.ParseDuration(value); err == nil && d > 0 {
					return d
				}
			}
		}
	}
	return 10 * time.Minute
}

// machine is one boot.
type machine struct {
	kernel, dir, token string
	limit              time.Duration
	stderr             bytes.Buffer // what QEMU itself said
	reset              bool         // the test had the guest reset
}

func (m *machine) console() string { return filepath.Join(m.dir, "console") }

// commandLine is the kernel's: quiet, no self-tests, nothing that costs time
// under emulation, and a panic ends the machine instead of hanging it. The test
// of the timer panics where the emulator gets no processor for some ticks.
const commandLine = "no_timer_check console=ttyS0 quiet loglevel=4 panic=-1 cryptomgr.notests init_on_alloc=0 " +
	"lsm=none mitigations=off nokaslr"

// processors is how many the guest has: FIELDMESH_GUEST_PROCESSORS. Emulated, two of
// them take a fifth more of this machine's time than one for the same work.
func processors() string { return cmp.Or(os.Getenv("FIELDMESH_GUEST_PROCESSORS"), "2") }

func (m *machine) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", processors(), "-m",
		"1536",
		"-kernel", filepath.Join(m.kernel, "vmlinux"), "-initrd", filepath.Join(m.dir, "initramfs"), "-append",
		commandLine,
		"-serial", "file:"+m.console(),
		"-device", "virtio-serial-pci,max_ports=2", "-chardev", "stdio,id=out,signal=off", "-device",
		"virtserialport,nr=1,chardev=out",
		"-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap", "-device",
		"virtio-9p-pci,fsdev=root,mount_tag=root",
		"-drive", "file="+diskOf(m.dir)+",format=raw,if=none,id=disk", "-device", "virtio-blk-pci,drive=disk",
		"-device", "virtio-rng-pci", "-device", "isa-debug-exit,iobase=0xf4,iosize=1")
	cmd.Stderr = &m.stderr
	// Killed with this process, whatever ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run boots and waits for the end. The status counts only if init named it
// and QEMU's own exit status, which init sets by the debug device, agrees:
// a QEMU that fails, a guest that panics and output that is cut are errors.
func (m *machine) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runtime.LockOSThread() // the parent-death signal follows the thread
	defer runtime.UnlockOSThread()
	cmd := m.command(ctx)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start QEMU: %w (scripts/setup test installs it)", err)
	}
	watchdog := time.AfterFunc(bootLimit, func() {
		cancel(fmt.Errorf("the guest did not come up within %s", bootLimit))
	})
	defer watchdog.Stop()
	isUp := false
	code, said := m.follow(out, in, func() {
		isUp = true
		watchdog.Stop()
		watchdog = time.AfterFunc(m.limit+graceLimit, func() {
			cancel(fmt.Errorf("the guest was still running %s after its start", m.limit+graceLimit))
		})
	})
	err = cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return 1, fmt.Errorf("killed: %w", cause)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("wait for QEMU: %w", err)
	}
	if m.reset && !said {
		return 1, errReset
	}
	if !isUp {
		return 1, errNotUp
	}
	if !said {
		return 1, fmt.Errorf("the guest ended without the test's exit status (QEMU: %s)", cmd.ProcessState)
	}
	if got, want := cmd.ProcessState.ExitCode(), debugExit(code)<<1|1; got != want {
		return 1, fmt.Errorf("the guest said that the test's exit status is %d, but QEMU ended with %d where that "+
			"gives %d", code, got, want)
	}
	return code, nil
}

// follow copies what the test prints until init says how it ended, and then
// acknowledges, so that nothing is lost when the machine goes.
func (m *machine) follow(out io.Reader, in io.Writer, up func()) (code int, said bool) {
	lines := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		before, after, marked := bytes.Cut(line, []byte(m.token))
		_, _ = os.Stdout.Write(before) // when nobody reads, the status still counts
		if marked {
			switch words := strings.Fields(string(after)); {
			case len(words) == 1 && words[0] == "up":
				up()
			case len(words) == 1 && words[0] == "reset":
				m.reset = true
				_, _ = io.WriteString(in, "ok\n")
			case len(words) == 2 && words[0] == "exit":
				if _, err := fmt.Sscan(words[1], &code); err == nil {
					said = true
					_, _ = io.WriteString(in, "ok\n")
				}
			default:
				fmt.Fprintf(os.Stderr, "guest: %s\n", strings.TrimSpace(string(after)))
			}
		}
		if err != nil {
			return code, said
		}
	}
}

// debugExit is the byte written to isa-debug-exit for a status; QEMU then ends
// with twice that plus one. Never 0, so that QEMU's own failure, which is 1, is
// not a status of ours.
func debugExit(code int) int { return min(max(code, 0), 126) + 1 }

// tail is what the kernel and QEMU said last.
func (m *machine) tail() string {
	text, err := os.ReadFile(m.console())
	if err != nil {
		text = []byte(err.Error())
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-80):]
	return fmt.Sprintf("the guest's console ended with:\n%s\nQEMU said: %q", strings.Join(lines, "\n"),
		m.stderr.String())
}
