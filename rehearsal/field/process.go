package field

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
)

// restartAfter is how long a process that ended by itself stays down, as
// a service manager would leave it.
const restartAfter = time.Second

// process is a program that the field keeps running in a namespace.
type process struct {
	name    string // for messages and its log
	log     string // path of a file that stdout and stderr are appended to
	command func() *exec.Cmd
	start   func(*exec.Cmd) error // on the field's thread
	note    func(level, format string, args ...any)

	mu      sync.Mutex
	running *os.Process // nil while it is down
}

// run keeps the program running until ctx ends, then ends it: first kindly.
func (p *process) run(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.name, err)
	}
	defer log.Close()
	for {
		err := p.once(ctx, log)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
		p.note("warning", "%s ended (%v) and is started again", p.name, err)
		if pause.For(ctx, restartAfter) != nil {
			return nil
		}
	}
}

func (p *process) once(ctx context.Context, log *os.File) error {
	c := p.command()
	c.Stdout, c.Stderr = log, log
	if err := p.start(c); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.set(c.Process)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		p.set(nil)
		return err
	case <-ctx.Done():
	}
	defer p.set(nil)
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(ledger.StopWithin):
		p.note("warning", "%s did not end within %v and was killed", p.name, ledger.StopWithin)
		return errors.Join(c.Process.Kill(), <-ended)
	}
}

func (p *process) set(running *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = running
}

// signal reaches the process if it runs.
func (p *process) signal(s os.Signal) error {
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// pause stops the process where it is, or lets it go on.
func (p *process) pause(on bool) error {
	if on {
		return p.signal(syscall.SIGSTOP)
	}
	return p.signal(syscall.SIGCONT)
}

// environment is all that the field's processes get to see of the caller's.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
}

// agentCommand enters a namespace as a person would, so that the agent sees
// the namespace's own /sys too; ip then becomes the agent. A node has one
// processor: the many agents of a field share a few, and with two each they wake
// the second again and again to see whether there is more to do.
func agentCommand(ip, ns string, command []string) *exec.Cmd {
	c := exec.Command(ip, append([]string{"netns", "exec", ns}, command...)...)
	c.Env = append(environment(), "GOMAXPROCS=1")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// gpsdCommand runs gpsd as an ordinary user from the beginning: a process that
// gives its privileges up itself loses its parent-death signal. Its own IPC
// namespace keeps the shared memory that it exports away from the machine's.
func gpsdCommand(gpsd, device string, uid, gid int) *exec.Cmd {
	c := exec.Command(gpsd, "-N", "-n", "-b", "-S", gps.Port, device)
	c.Env = environment()
	c.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWIPC,
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false},
	}
	return c
}
