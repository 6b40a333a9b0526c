package field

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// start runs a GPS receiver, a gpsd and an agent per node.
func (f *Field) start(ctx context.Context) error {
	ip, err := exec.LookPath("ip")
	if err != nil {
		return fmt.Errorf("find ip (package iproute2): %w", err)
	}
	gpsd, err := gps.CopyProgram(f.cfg.Dir)
	if err != nil {
		return err
	}
	empty, err := f.stage.empty()
	if err != nil {
		return err
	}
	f.scene.Store(empty)
	var restCtx, agentsCtx context.Context
	restCtx, f.stopRest = context.WithCancel(context.Background())
	agentsCtx, f.stopAgents = context.WithCancel(context.Background())
	f.rest, f.restCtx = errgroup.WithContext(restCtx)
	f.agents, agentsCtx = errgroup.WithContext(agentsCtx)
	if err := errors.Join(f.watchHosts(), f.watchRoutes()); err != nil {
		return err
	}
	var receivers []*gps.Receiver
	for _, n := range f.manned() {
		receivers = append(receivers, f.startReceiver(gpsd, n))
		f.startAgent(agentsCtx, ip, n)
	}
	f.rest.Go(func() error { return gps.Run(f.restCtx, f.cfg.Field.NMEAHz, receivers) })
	return f.awaitStart(ctx)
}

// startReceiver makes a node's GPS receiver and runs its gpsd.
func (f *Field) startReceiver(gpsd string, n *node) *gps.Receiver {
	n.receiver = &gps.Receiver{Line: n.line,
		Where: func(ago time.Duration) (earth.Site, mobility.State, error) {
			boot, err := bootNow()
			s := f.scene.Load()
			return s.site, s.at(n.index, boot-ago), err
		}}
	n.gpsd = f.process("gpsd of "+n.Name, filepath.Join(n.dir, "gpsd.log"),
		func() *exec.Cmd { return gpsdCommand(gpsd, n.line.Path, f.uid, f.gid) },
		func(c *exec.Cmd) error { return f.thread.in(n.netns, c.Start) })
	f.rest.Go(func() error { return n.gpsd.run(f.restCtx) })
	return n.receiver
}

// startAgent runs a node's agent until ctx ends.
func (f *Field) startAgent(ctx context.Context, ip string, n *node) {
	command := f.cfg.AgentCommand
	if len(command) == 0 {
		command = []string{f.cfg.Agent, "up", "--config", n.agentFile()}
	}
	n.agent = f.process("agent of "+n.Name, filepath.Join(n.dir, "agent.log"),
		func() *exec.Cmd { return agentCommand(ip, n.netns, command) },
		func(c *exec.Cmd) error { return f.thread.away(c.Start) })
	f.agents.Go(func() error {
		err := n.agent.run(ctx)
		if err != nil {
			f.stopRest() // the field is of no use without its agents: see Failed
		}
		return err
	})
}

func (f *Field) process(name, log string, command func() *exec.Cmd, start func(*exec.Cmd) error) *process {
	return &process{name: name, log: log, command: command, start: start, note: f.note}
}

// CheckHost refuses a machine on which no field can be made, and says what to do.
func CheckHost() error { return notHere(append(missingPrograms(), checkTun(tunDevice))) }

// CheckPrograms says which of them are missing, where a kernel of its own has the rest.
func CheckPrograms() error { return notHere(missingPrograms()) }

func notHere(missing []error) error {
	if err := errors.Join(missing...); err != nil {
		return fmt.Errorf("a rehearsal cannot be made on this machine: %w", err)
	}
	return nil
}

func missingPrograms() []error {
	_, gpsd := gps.FindProgram()
	missing := []error{gpsd}
	for program, packaged := range map[string]string{"ip": "iproute2", "iperf3": "iperf3"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Errorf("%s is not installed: sudo apt-get install %s", program, packaged))
		}
	}
	return missing
}

// startWithin and startEach bound the start of daemons on a busy machine: the
// four processes of a node take a processor a third of a second.
const (
	startWithin = 20 * time.Second
	startEach   = time.Second
)

// awaitStart waits until every node's gpsd has a fix and its agent listens.
func (f *Field) awaitStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin+time.Duration(len(f.manned()))*startEach)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range f.manned() {
		g.Go(func() error { return f.awaitFix(ctx, n) })
		if len(f.cfg.AgentCommand) == 0 {
			g.Go(func() error { return f.awaitAgent(ctx, n) })
		}
	}
	return g.Wait()
}

// dial connects from inside a namespace, again until it is answered.
func (f *Field) dial(ctx context.Context, ns, address string) (net.Conn, error) {
	for {
		var conn net.Conn
		err := f.thread.in(ns, func() (err error) {
			conn, err = net.DialTimeout("tcp4", address, time.Second)
			return err
		})
		if err == nil {
			return conn, nil
		}
		if pause.For(ctx, 20*time.Millisecond) != nil {
			return nil, err
		}
	}
}

// logEnd is the end of a log that may soon be gone, for a message.
func logEnd(path string) string {
	const most = 600
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	end := strings.TrimSpace(strings.ToValidUTF8(string(text[max(0, len(text)-most):]), ""))
	if end == "" {
		return "it wrote nothing to its log; try whether the program starts by itself"
	}
	return "its log ends:\n" + end
}

func (f *Field) awaitAgent(ctx context.Context, n *node) error {
	conn, err := f.dial(ctx, f.ctlNS, n.listen())
	if err != nil {
		return fmt.Errorf("wait for the agent of %q: %w; %s", n.Name, err,
			logEnd(filepath.Join(n.dir, "agent.log")))
	}
	return conn.Close()
}

// awaitFix waits until gpsd shows a node where it is, twice running.
func (f *Field) awaitFix(ctx context.Context, n *node) error {
	conn, err := f.dial(ctx, n.netns, "127.0.0.1:"+gps.Port)
	if err != nil {
		return fmt.Errorf("wait for gpsd of %q: %w; %s", n.Name, err,
			logEnd(filepath.Join(n.dir, "gpsd.log")))
	}
	defer conn.Close()
	good := 0
	err = gps.Watch(ctx, conn, func(r gps.Report) bool {
		now, err := bootNow()
		if err != nil {
			return false
		}
		s := f.scene.Load()
		if good++; !r.At(s.site, s.at(n.index, now)) {
			good = 0
		}
		return good >= 2
	})
	if err != nil {
		return fmt.Errorf("wait for a GPS fix of %q at its place: %w", n.Name, err)
	}
	return nil
}
