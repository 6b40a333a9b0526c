package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

const (
	// interruptGrace is how long iperf3 has, once interrupted, to print what it has.
	interruptGrace = 2 * time.Second
	maxOutputBytes = 8 << 20
	maxErrorBytes  = 4 << 10
)

// Process is one iperf3 that was started. It ends by itself, by its
// deadline, by Stop or with its context, whichever comes first.
type Process struct {
	pid    int
	stop   chan string        // reasons to end it
	within chan time.Duration // new deadlines, from now
	done   chan struct{}
	result wire.Iperf3 // set before done is closed

	mu     sync.Mutex
	exited bool // it has ended; its pid must not be signalled any more
}

// start runs iperf3 and sees to its end.
func start(ctx context.Context, bin string, args []string, flow, side string, within time.Duration) (*Process, error) {
	if err := checkBinary(bin); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start iperf3 %s for flow %q: %w", side, flow, err)
	}
	p := &Process{
		stop: make(chan string, 1), within: make(chan time.Duration), done: make(chan struct{}),
		result: wire.Iperf3{Flow: flow, Side: side},
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	stdout, stderr := &limited{max: maxOutputBytes}, &limited{max: maxErrorBytes}
	go p.run(exec.Command(bin, args...), stdout, stderr, started, ended)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start iperf3 %s for flow %q: %w", side, flow, err)
	}
	go p.supervise(ctx, within, ended, stdout, stderr)
	return p, nil
}

// run starts the program and reaps it. iperf3 must not outlive an agent that
// was killed, or it would hold its port; but the kernel sends the
// parent-death signal when the *thread* that started it ends, so that thread
// is held until then.
func (p *Process) run(cmd *exec.Cmd, stdout, stderr *limited, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = []string{"LC_ALL=C", "TMPDIR=" + os.TempDir()} // each stream has a file there
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	// It is reaped only after signals to it have been ruled out: until then
	// its pid and its process group cannot be another's.
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	p.exited = true
	p.mu.Unlock()
	ended <- cmd.Wait()
}

// supervise ends the process when it must end, and keeps the result.
func (p *Process) supervise(ctx context.Context, within time.Duration, ended <-chan error, stdout, stderr *limited) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	stop, cancelled, killed := p.stop, ctx.Done(), ""
	// The first reason interrupts, so that iperf3 prints what it has; the
	// timer's next round kills.
	interrupt := func(reason string) {
		killed, stop, cancelled = reason, nil, nil
		p.signal(syscall.SIGINT)
		deadline.Reset(interruptGrace)
	}
	for {
		select {
		case err := <-ended:
			p.finish(err, killed, stdout, stderr)
			return
		case reason := <-stop:
			interrupt(reason)
		case <-cancelled:
			interrupt(fmt.Sprintf("its trial ended: %v", context.Cause(ctx)))
		case d := <-p.within:
			if killed == "" {
				deadline.Reset(d)
			}
		case <-deadline.C:
			if killed == "" {
				interrupt("time-out: it did not end by itself")
				continue
			}
			p.signal(syscall.SIGKILL)
		}
	}
}

// signal reaches the whole process group.
func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		// It can only have ended just now, which is what is wanted.
		_ = syscall.Kill(-p.pid, s)
	}
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.pid }

// EndWithin sets the time from now by which the process has to end by itself.
// A server's is to be set when its test's start is known.
func (p *Process) EndWithin(d time.Duration) {
	select {
	case p.within <- d:
	case <-p.done:
	}
}

// Stop ends the process early; Wait then tells the reason as Killed. It does
// not wait for the end. The first reason counts.
func (p *Process) Stop(reason string) {
	select {
	case p.stop <- reason:
	default: // one is under way already
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the process has ended: at its deadline plus a few
// seconds at the latest. A test failed when the result has an Error or was
// Killed; the exit code does not tell, as iperf3 3.12 exits with 0 whenever it
// could print its error as JSON.
func (p *Process) Wait() wire.Iperf3 {
	<-p.done
	return p.result
}

// finish keeps what the process left.
func (p *Process) finish(err error, killed string, stdout, stderr *limited) {
	defer close(p.done)
	p.result.Killed = killed
	var exit *exec.ExitError
	switch {
	case err == nil:
		p.result.ExitCode = new(int)
	case errors.As(err, &exit) && exit.Exited():
		code := exit.ExitCode()
		p.result.ExitCode = &code
	case errors.As(err, &exit):
		if killed == "" {
			p.result.Killed = exit.String() // by somebody else
		}
	default:
		p.result.Error = err.Error()
	}
	keepOutput(&p.result, stdout, stderr)
}

// keepOutput keeps iperf3's JSON when it is whole, else the text as it came.
func keepOutput(r *wire.Iperf3, stdout, stderr *limited) {
	text := bytes.TrimSpace(stdout.kept)
	var compact bytes.Buffer
	if len(text) > 0 && text[0] == '{' && stdout.cut == 0 && json.Compact(&compact, text) == nil {
		r.Output = compact.Bytes()
		var said struct {
			Error string `json:"error"`
		}
		// Valid JSON of another shape has no error to tell.
		if json.Unmarshal(r.Output, &said) == nil && r.Error == "" {
			r.Error = said.Error
		}
	} else {
		r.RawText = strings.ToValidUTF8(string(text), "\uFFFD")
	}
	if complaint := strings.ToValidUTF8(string(bytes.TrimSpace(stderr.kept)), "\uFFFD"); complaint != "" && r.Error == "" {
		r.Error = complaint
	}
	if stdout.cut > 0 {
		r.Error = strings.TrimPrefix(fmt.Sprintf("%s; its output was cut at %d bytes, %d are lost", r.Error, maxOutputBytes, stdout.cut), "; ")
	}
}

// limited keeps the first max bytes and counts the others. It takes them all:
// a full pipe would stall iperf3.
type limited struct {
	kept []byte
	max  int
	cut  int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.max-len(l.kept))
	l.kept = append(l.kept, p[:n]...)
	l.cut += len(p) - n
	return len(p), nil
}
