package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initMain is the guest's first process. It never returns: the machine ends
// with it.
func initMain() {
	var req request
	text, err := os.ReadFile("/request.json")
	if err == nil {
		err = json.Unmarshal(text, &req)
	}
	var port *os.File
	if err == nil {
		port, err = openPort(req.Modules)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "init: %v\n", err) // the console is all that is there
		halt(1)
	}
	code := 1
	fmt.Fprintf(port, "%s up\n", req.Token)
	if err := prepareRoot(req.ModulesDir); err != nil {
		fmt.Fprintf(port, "%s cannot prepare the guest: %v\n", req.Token, err)
	} else if code, err = runTest(req, port); err != nil {
		fmt.Fprintf(port, "%s cannot run the test: %v\n", req.Token, err)
	}
	fmt.Fprintf(port, "%s exit %d\n", req.Token, code)
	_, _ = port.Read(make([]byte, 8)) // the host has read everything
	halt(code)
}

// halt ends QEMU with a status that only this can give.
func halt(code int) {
	if f, err := os.OpenFile("/dev/port", os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteAt([]byte{byte(debugExit(code))}, 0xf4) // does not return
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// openPort loads the early modules and opens the way to the host. The port
// stays in blocking mode: the test inherits it as its standard output.
func openPort(modules []string) (*os.File, error) {
	if err := unix.Mount("dev", "/dev", "devtmpfs", 0, ""); err != nil {
		return nil, fmt.Errorf("mount /dev: %w", err)
	}
	for _, m := range modules {
		if err := loadModule("/modules/" + filepath.Base(m)); err != nil {
			return nil, err
		}
	}
	for range 600 {
		ports, _ := filepath.Glob("/dev/vport*p1") // only a bad pattern is an error
		if len(ports) == 1 {
			fd, err := unix.Open(ports[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, fmt.Errorf("open %s: %w", ports[0], err)
			}
			return os.NewFile(uintptr(fd), ports[0]), nil
		}
		time.Sleep(50 * time.Millisecond) // the device is found in the background
	}
	return nil, errors.New("no virtio port appeared within 30 s")
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	flags := 0
	if strings.HasSuffix(path, ".xz") {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	if err := unix.FinitModule(int(f.Fd()), "", flags); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// mounts are made in this order below the new root. Those that a kernel does
// not have may fail.
var mounts = []struct {
	source, target, kind, data string
	optional                   bool
}{
	{"proc", "/proc", "proc", "", false},
	{"sys", "/sys", "sysfs", "", false},
	{"dev", "/dev", "devtmpfs", "", false},
	{"pts", "/dev/pts", "devpts", "mode=620,ptmxmode=666", false},
	{"shm", "/dev/shm", "tmpfs", "mode=1777", false},
	{"run", "/run", "tmpfs", "mode=755", false},
	{"debug", "/sys/kernel/debug", "debugfs", "", true},
	{"trace", "/sys/kernel/tracing", "tracefs", "", true},
	{"bpf", "/sys/fs/bpf", "bpf", "", true},
	{"cgroup", "/sys/fs/cgroup", "cgroup2", "", true},
}

// prepareRoot makes the host's root, under a layer in memory, the root of this
// process.
func prepareRoot(modulesDir string) error {
	for _, dir := range []string{"/lower", "/layer", "/new"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("root", "/lower", "9p", unix.MS_RDONLY,
		"trans=virtio,version=9p2000.L,msize=524288,cache=loose"); err != nil {
		return fmt.Errorf("mount the host's root: %w", err)
	}
	if err := unix.Mount("layer", "/layer", "tmpfs", 0, "size=90%,mode=755"); err != nil {
		return fmt.Errorf("mount the layer in memory: %w", err)
	}
	if err := errors.Join(os.Mkdir("/layer/upper", 0o755), os.Mkdir("/layer/work", 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("root", "/new", "overlay", 0,
		"lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	for _, m := range mounts {
		target := "/new" + m.target
		err := os.MkdirAll(target, 0o755)
		if err == nil {
			err = unix.Mount(m.source, target, m.kind, 0, m.data)
		}
		if err != nil && !m.optional {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := errors.Join(os.MkdirAll("/new/lib/modules", 0o755), unix.Mount("/new"+modulesDir, "/new/lib/modules", "",
		unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("bind the modules: %w", err)
	}
	if err := errors.Join(unix.Chroot("/new"), os.Chdir("/")); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	return settle()
}

// settle sets what an ordinary boot would have set.
func settle() error {
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("set the host's name: %w", err)
	}
	out, err := exec.Command("/sbin/ip", "link", "set", "lo", "up").CombinedOutput()
	if err != nil {
		return fmt.Errorf("set lo up: %w: %s", err, out)
	}
	return nil
}

// awaitReset resets the machine when the test asks for it, as a loss of power
// would: nothing is synced, nobody is told to end. It lives as long as the
// machine.
func awaitReset(token string, port *os.File) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	<-asked
	fmt.Fprintf(port, "%s reset\n", token)
	_, _ = port.Read(make([]byte, 8)) // the host knows
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("b"), 0); err != nil {
		fmt.Fprintf(port, "%s cannot reset the guest: %v\n", token, err)
	}
}

// runTest starts the test and, as the first process of a machine must, takes
// in every process that loses its parent.
func runTest(req request, port *os.File) (int, error) {
	path, err := exec.LookPath(req.Args[0])
	if err != nil {
		return 1, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 1, err
	}
	p, err := os.StartProcess(path, req.Args, &os.ProcAttr{Dir: req.Dir, Env: req.Env,
		Files: []*os.File{null, port, port}})
	if err != nil {
		return 1, err
	}
	go awaitReset(req.Token, port)
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the test: %w", err)
		case pid == p.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == p.Pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
