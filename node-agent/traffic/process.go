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

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
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
	result wire.Iperf3 // whole when done is closed
	folder string      // iperf3's own, for the time it runs
	clk    clock.Clock

	stdout, stderr limited

	mu     sync.Mutex
	exited bool // it has ended; its pid must not be signalled any more

	frozenNs *int64 // when it was first seen frozen

	reach     bool                // its sockets, by descriptors
	program   *descriptor.Program // by which they are
	unreached error               // why not
}

// start runs iperf3 and sees to its end, not longer than within; 0: as long as ctx
// lets it.
func (g Generator) start(ctx context.Context, args []string, f wire.Flow, side string,
	within time.Duration) (*Process, error) {
	flow := f.Name
	if err := checkBinary(g.Bin); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start iperf3 %s for flow %q: %w", side, flow, err)
	}
	folder, err := g.folder()
	if err != nil {
		return nil, err
	}
	p := &Process{
		clk: g.Clock, stop: make(chan string, 1), within: make(chan time.Duration), done: make(chan struct{}),
		result: wire.Iperf3{Flow: flow, Side: side}, stdout: limited{max: maxOutputBytes},
		stderr: limited{max: maxErrorBytes}, folder: folder, reach: g.Descriptors,
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go p.run(exec.Command(g.Bin, args...), started, ended)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start iperf3 %s for flow %q: %w", side, flow, err), os.RemoveAll(folder))
	}
	go p.supervise(ctx, within, ended)
	if p.unreached != nil {
		p.Stop("its sockets cannot be reached")
		p.Wait()
		return nil, fmt.Errorf("start iperf3 %s for flow %q: %w", side, flow, p.unreached)
	}
	go p.watchFrozen()
	if p.program != nil {
		go p.leaveNothing(f)
	}
	return p, nil
}

// run starts the program and reaps it. iperf3 must not outlive an agent that
// was killed, or it would hold its port; but the kernel sends the
// parent-death signal when the *thread* that started it ends, so that thread
// is held until then.
func (p *Process) run(cmd *exec.Cmd, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	cmd.Env = []string{"LC_ALL=C", "TMPDIR=" + p.folder} // each stream has a file there
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.result.StartedBootNs = new(p.clk.BootNs())
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	if p.reach { // before it is reaped: until then its number is its own
		p.program, p.unreached = descriptor.Of(p.pid)
	}
	started <- nil
	p.awaitEnd()
	p.mu.Lock()
	p.exited = true
	p.mu.Unlock()
	ended <- cmd.Wait()
}

// awaitEnd returns when the process has ended, and notes when, and when it was
// first stopped. It is reaped only after signals to it have been ruled out:
// until then its pid and its process group cannot be another's.
func (p *Process) awaitEnd() {
	const stopped = 5 // CLD_STOPPED, sigaction(2)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && info.Code == stopped:
			if p.result.StoppedBootNs == nil {
				p.result.StoppedBootNs = new(p.clk.BootNs())
			}
			// Taken, so that the next round waits. It may have gone on since, or ended.
			_ = unix.Waitid(unix.P_PID, p.pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
		default:
			p.result.EndedBootNs = new(p.clk.BootNs())
			return
		}
	}
}

// supervise ends the process when it must end, and keeps the result.
func (p *Process) supervise(ctx context.Context, within time.Duration, ended <-chan error) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	if within == 0 { // until EndWithin
		deadline.Stop()
	}
	stop, cancelled, killed := p.stop, ctx.Done(), false
	// The first reason interrupts, so that iperf3 prints what it has; the
	// timer's next round kills.
	interrupt := func(how, reason string) {
		killed, stop, cancelled = true, nil, nil
		p.result.Ended, p.result.Killed = how, reason
		p.signal(syscall.SIGINT)
		deadline.Reset(interruptGrace)
	}
	for {
		select {
		case err := <-ended:
			p.finish(err)
			return
		case reason := <-stop:
			interrupt(wire.EndedDeadline, reason)
		case <-cancelled:
			interrupt(wire.EndedTrial, fmt.Sprintf("its trial ended: %v", context.Cause(ctx)))
		case d := <-p.within:
			if !killed {
				deadline.Reset(d)
			}
		case <-deadline.C:
			if !killed {
				interrupt(wire.EndedDeadline, "time-out: it did not end by itself")
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

// Program reaches the process's sockets; nil where the generator does not have that done.
func (p *Process) Program() *descriptor.Program { return p.program }

// EndWithin sets the time from now by which the process has to end by itself.
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
func (p *Process) finish(err error) {
	defer close(p.done)
	r := &p.result
	p.mu.Lock()
	r.FrozenBootNs = p.frozenNs
	p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case err == nil:
		r.ExitCode = new(int)
	case errors.As(err, &exit) && exit.Exited():
		r.ExitCode = new(exit.ExitCode())
	case errors.As(err, &exit):
		if r.Killed == "" { // by somebody else
			r.Killed, r.Ended = exit.String(), wire.EndedSignal
			if status, ok := exit.Sys().(syscall.WaitStatus); ok {
				r.Signal = unix.SignalName(status.Signal())
			}
		}
	default:
		r.Error = err.Error()
	}
	keepOutput(r, &p.stdout, &p.stderr)
	p.explain()
	err = os.RemoveAll(p.folder)
	if p.program != nil {
		err = errors.Join(err, p.program.Close())
	}
	if err != nil && r.Error == "" {
		r.Error = err.Error()
	}
}

// explain types how the process ended, and what its error comes from.
func (p *Process) explain() {
	r := &p.result
	if r.Ended != "" {
		return // by a signal, ours or another's: what it says of that is no cause
	}
	r.Ended = wire.EndedItself
	said := struct {
		Error string `json:"error"`
	}{complaint(string(p.stderr.kept))}
	if r.Output != nil {
		_ = json.Unmarshal(r.Output, &said) // of another shape it says nothing
	}
	switch {
	case strings.HasPrefix(said.Error, interrupted):
		r.Ended = wire.EndedSignal // of those that iperf3 catches
	case said.Error != "":
		r.Cause = causeOf(said.Error)
	case r.ExitCode == nil || *r.ExitCode != 0:
		r.Cause = wire.CauseTool
	}
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
	if complaint := strings.ToValidUTF8(string(bytes.TrimSpace(stderr.kept)), "\uFFFD"); complaint != "" && r.Error ==
		"" {
		r.Error = complaint
	}
	if stdout.cut > 0 {
		r.Error = strings.TrimPrefix(fmt.Sprintf("%s; its output was cut at %d bytes, %d are lost", r.Error,
			maxOutputBytes, stdout.cut), "; ")
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
