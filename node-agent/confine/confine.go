// Package confine takes from the network face what it does not need: by Landlock the
// files and programs of others, by a filter of system calls the rest. Whoever takes
// the face over has no more than it had. What a kernel lacks is said, and the face
// goes on without it.
package confine

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// Confined is what a process that was confined may do.
type Confined struct {
	// Said is by what it is confined, and what this kernel lacks.
	Said []string
	// programs are those that were there then, with what loads them; nil: any may be
	// started.
	programs map[string]program
}

// file tells a file from one that has taken its name.
type file struct{ device, inode uint64 }

// program is a program's file, and that of what loads it, which a new libc replaces.
type program struct {
	own        file
	loader     string
	loaderFile file
}

func programOf(own file, loader string) program {
	p := program{own: own, loader: loader}
	if loader != "" {
		p.loaderFile, _ = fileOf(loader)
	}
	return p
}

// confinedBy is the variable by which a process says to the program that it goes on as
// by what it is confined.
const confinedBy = "FIELDMESH_CONFINED"

// Face confines this process, and whatever it starts, for good, and has it begin again
// as the same program: Landlock confines each thread by itself, and threads of before
// could not look at what others start. configuration is the file that it then reads
// again. The second time it returns what the process may do.
func Face(ctx context.Context, cfg config.Config, configuration string) (c Confined, err error) {
	p := placesOf(cfg)
	if said := os.Getenv(confinedBy); said != "" {
		c.Said = strings.Split(said, "; ")
		if p.wrapped == "" && !strings.HasPrefix(said, noLandlock) {
			c.programs = p.programs
		}
		return c, os.Unsetenv(confinedBy)
	}
	p.start = append(p.start, ownProgram)
	p.read = append(p.read, configuration)
	runtime.LockOSThread() // whose domain all threads of the program have then
	version, err := landlocked(p, isApp(runtime.GOOS, cfg))
	switch {
	case err != nil:
		c.Said = append(c.Said, noLandlock+err.Error())
	case p.wrapped != "":
		c.Said = append(c.Said, fmt.Sprintf("Landlock %d, but the machine's programs may be started: %s is a script",
			version, p.wrapped))
	default:
		c.Said = append(c.Said, fmt.Sprintf("Landlock %d", version))
	}
	lacks := filtered(cfg.Unprivileged())
	if lacks != nil {
		c.Said = append(c.Said, "no seccomp: "+lacks.Error())
	} else {
		c.Said = append(c.Said, "seccomp")
	}
	if err != nil && lacks != nil { // nothing confines it
		return c, nil
	}
	// A signal to end, as at the death of whoever started it, would be the former
	// program's, and lost.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	if unix.Gettid() != os.Getpid() { // whoever is to die with its parent has asked for it on the first thread
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0); err != nil {
			return c, fmt.Errorf("ask for a signal at the parent's death: %w", err)
		}
	}
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	err = syscall.Exec(ownProgram, os.Args, append(os.Environ(), confinedBy+"="+strings.Join(c.Said, "; ")))
	return c, fmt.Errorf("begin again, confined: %w", err)
}

const (
	noLandlock = "no Landlock: "
	// ownProgram is the program that runs, wherever its file lies.
	ownProgram = "/proc/self/exe"
)

// Startable reports whether a program may be started: one that has come, or was
// replaced, since the process was confined may not.
func (c Confined) Startable(path string) bool {
	now, there := fileOf(path)
	was := c.programs[path]
	return c.programs == nil || !there || was == programOf(now, was.loader)
}

// Newcomer returns a program of those named that has come, or was replaced, since the
// process was confined, and may therefore not be started; "" where there is none.
func (c Confined) Newcomer(programs map[string]string) string {
	for _, path := range slices.Sorted(maps.Values(programs)) {
		if !c.Startable(path) {
			return path
		}
	}
	return ""
}

func fileOf(path string) (file, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return file{}, false
	}
	return file{uint64(st.Dev), st.Ino}, true
}

// places are the files that the face and what it starts need.
type places struct {
	write    []string // folders
	read     []string // folders and files
	start    []string // programs, and what loads them
	programs map[string]program
	wrapped  string // a program that is a script: what it starts is not known
}

// readable are files that programs, their libraries and Go's own read, on Linux and
// on Android. Those that a machine lacks are passed over.
var readable = []string{"/proc", "/sys", "/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/libexec",
	"/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime",
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/gai.conf",
	"/etc/ssl/openssl.cnf", "/dev/urandom", "/dev/random", "/dev/tcpcc",
	"/system", "/vendor", "/apex", "/linkerconfig", "/dev/__properties__"}

func placesOf(cfg config.Config) places {
	p := places{write: []string{cfg.FaceDir()}, programs: map[string]program{},
		read: append(slices.Clone(readable), cfg.KeysDir, cfg.SysfsDir)}
	if cfg.ClockFile != "" {
		p.read = append(p.read, filepath.Dir(cfg.ClockFile)) // another takes its name now and then
	}
	for _, path := range slices.Sorted(maps.Values(cfg.Binaries)) {
		now, there := fileOf(path)
		if !there {
			continue
		}
		loader, script, err := loaderOf(path)
		p.programs[path] = programOf(now, loader)
		if err != nil {
			continue // it cannot be started, by another face neither
		}
		if script {
			p.wrapped = path
			p.start = append(p.start, slices.DeleteFunc([]string{"/bin", "/sbin", "/usr", "/system",
				filepath.Dir(path)}, missing)...)
		}
		p.start = append(p.start, path)
		if loader != "" {
			p.start = append(p.start, loader)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil { // as Termux has its libraries
			p.read = append(p.read, filepath.Join(filepath.Dir(filepath.Dir(real)), "lib"))
		}
	}
	p.read = slices.DeleteFunc(p.read, missing)
	return p
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return path == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// loaderOf is the program that the kernel starts in a program's place; "" where it
// starts itself.
func loaderOf(path string) (loader string, script bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	begins := make([]byte, 2)
	if _, err := io.ReadFull(f, begins); err != nil {
		return "", false, err
	}
	if string(begins) == "#!" {
		return "", true, nil
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return "", false, err
	}
	for _, s := range program.Progs {
		if s.Type == elf.PT_INTERP {
			text, err := io.ReadAll(io.LimitReader(s.Open(), syscall.PathMax))
			return strings.TrimRight(string(text), "\x00"), false, err
		}
	}
	return "", false, nil
}
