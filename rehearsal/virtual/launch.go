package virtual

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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

// Options are a launch.
type Options struct {
	Kernel   string   // path of the kernel
	Init     string   // path of a program that calls Boot for its last argument
	InitArgs []string // its arguments before that
	Command  []string // what Boot runs
	Writable string   // folder of this machine that Command may write to; absolute
	Readable []string // folders that Command must see, wherever they are; absolute
	MemoryMB int      // what the kernel may take of this machine's memory
	// MemoryDir is where that is kept, a folder of MemoryFolder; empty: one is chosen.
	MemoryDir string
	Start     time.Time // its wall clock at the start
	Seed      uint64    // of its entropy
	CallNs    int       // virtual time that a system call takes
	Log       string    // file for the console, truncated at the start
	// Line takes each line that Command writes to its standard output.
	Line func([]byte) error
}

// ErrCut is returned when the kernel was ended from outside before its command
// was done. What was written is kept.
var ErrCut = errors.New("the kernel in virtual time was ended from outside")

// ErrKilled is the ErrCut of a kernel that was killed while its launcher lived. Whoever lacks
// memory outside does that, too, again and again.
var ErrKilled = fmt.Errorf("%w, which killed it alone", ErrCut)

// Launch runs the command in a kernel in virtual time, to its end. When ctx
// ends, the kernel is killed.
func Launch(ctx context.Context, o Options) error {
	c, err := takeCore()
	if err != nil {
		return err
	}
	err = o.on(ctx, c)
	return errors.Join(err, c.release())
}

func (o Options) on(ctx context.Context, c core) error {
	args, err := o.arguments()
	if err != nil {
		return err
	}
	dir := o.MemoryDir
	if dir == "" {
		if dir, err = MemoryFolder(o.MemoryMB); err != nil {
			return err
		}
	}
	log, err := os.Create(o.Log)
	if err != nil {
		return fmt.Errorf("open the console's log: %w", err)
	}
	defer log.Close()
	lines, told, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open the kernel's channel: %w", err)
	}
	defer lines.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := exec.CommandContext(ctx, o.Kernel, args...) //nolint:gosec // the user's
	k.Env = []string{"TMPDIR=" + dir}
	k.Stdout, k.Stderr = log, log
	k.ExtraFiles = []*os.File{told}
	// A process group of its own: a ^C reaches the launcher, which ends it.
	k.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		// Never unlocked: the kernel's parent-death signal is the thread's, which
		// is bound to one processor besides, and must live until it has ended.
		runtime.LockOSThread()
		err := errors.Join(c.pin(), withoutCore())
		if err == nil {
			err = k.Start()
		}
		close(started)
		if err == nil {
			err = k.Wait()
		}
		ended <- err
	}()
	<-started
	read := told.Close()
	ran, err := o.follow(lines)
	if read = errors.Join(read, err); read != nil {
		cancel()
	}
	err = <-ended
	if read != nil {
		return read
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrCut, context.Cause(ctx))
	}
	return o.judge(dir, ran, err)
}

// follow passes the command's lines on until the kernel has ended. It reports whether
// there was one.
func (o Options) follow(lines io.Reader) (ran bool, err error) {
	r := bufio.NewReader(lines)
	for ; ; ran = true {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return ran, nil // the rest of a line is nobody's
		}
		if err := o.Line(line); err != nil {
			return ran, err
		}
	}
}

// judge words how the kernel ended in which the command ran; one that was turned off
// ends well.
func (o Options) judge(dir string, ran bool, err error) error {
	end := o.logEnd()
	switch {
	case strings.Contains(end, "Out of memory"):
		return fmt.Errorf("run the kernel in virtual time: its %d MB of memory were not enough; give it "+
			"more with --memory-mb", o.MemoryMB)
	case strings.Contains(end, "Kernel mode signal 7"): // SIGBUS: a page of the file has no room
		return fmt.Errorf("run the kernel in virtual time: there is no room left for its memory in %s; free some, "+
			"drive fewer --jobs, or set TMPDIR to a folder with %d MB for each", dir, o.MemoryMB)
	case signalOf(err) == syscall.SIGKILL, ran && terminated(err) && !strings.Contains(end, "Kernel panic"):
		return fmt.Errorf("%w: %w", ErrKilled, err)
	case Killed(err):
		return fmt.Errorf("%w: %w", ErrCut, err)
	case err != nil || strings.Contains(end, "fieldmesh: boot: "):
		return errors.Join(fmt.Errorf("run the kernel in virtual time: its console %s ends:\n%s", o.Log, end), err)
	}
	return nil
}

// Killed reports whether the kernel was ended by a signal that came from
// elsewhere; one that fails ends itself by others.
func Killed(err error) bool {
	return slices.Contains([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP},
		signalOf(err))
}

// terminated reports whether a kernel ended as it does by SIGTERM and SIGINT, which it
// takes for an order to exit, with status 1.
func terminated(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// signalOf is the signal that ended a program; below 0 when none did.
func signalOf(err error) syscall.Signal {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return -1
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	if !is || !status.Signaled() {
		return -1
	}
	return status.Signal()
}

// logEnd is the end of the console's log.
func (o Options) logEnd() string {
	const most = 1500
	text, err := os.ReadFile(o.Log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text[max(0, len(text)-most):]), ""))
}

// withoutCore keeps a kernel that fails from leaving its whole memory as a file.
func withoutCore() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// arguments are the kernel's command line.
func (o Options) arguments() ([]string, error) {
	text, err := job{Command: o.Command, Writable: o.Writable, Readable: o.Readable}.encode()
	if err != nil {
		return nil, err
	}
	init, err := filepath.Abs(o.Init)
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{
		"mem=" + strconv.Itoa(o.MemoryMB) + "M",
		// Without a root of its own this kernel adds one behind the init's arguments.
		"root=98:0", "rootfstype=hostfs", "rootflags=/", "ro",
		"time-travel=inf-cpu", "time-travel-start=" + strconv.FormatInt(o.Start.UnixNano(), 10),
		"time_travel_call_ns=" + strconv.Itoa(o.CallNs),
		"random-seed=" + strconv.FormatUint(o.Seed, 10),
		// Each look at the sockets of TCP, of which a node has ten a second, goes through the whole table: by the
		// memory it would have 32,768 entries, of which a few hundred are used.
		"thash_entries=1024",
		"seccomp=auto",            // where the kernel has it
		"mac80211_hwsim.radios=0", // a field makes its own
		// No folder is made for a management console, which this kernel lacks.
		"uml_dir=/proc/self/", "umid=none",
		"con=null", "con0=null,fd:1", "con1=null,fd:3", "console=tty0", "quiet", "loglevel=4", "panic=-1",
		`init="` + init + `"`, "--",
	}
	return append(append(args, o.InitArgs...), text), nil
}
