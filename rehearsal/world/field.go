package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/drops"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"golang.org/x/sync/errgroup"
)

// Info says where things are in a created field.
type Info struct {
	ID      int               `json:"id"`
	Fleet   string            `json:"fleet"`   // path of fleet.yaml
	Control string            `json:"control"` // namespace from which the nodes' API is reached
	Netns   map[string]string `json:"netns"`   // node → namespace
	LatDeg  float64           `json:"site_lat_deg"`
	LonDeg  float64           `json:"site_lon_deg"`
}

// node is one node of a field.
type node struct {
	Node
	index    int
	netns    string
	port     string // its end of the control network, in the control namespace
	dir      string
	feedback string // path of the radio-feedback socket
	control  *net.IPNet
	mac      net.HardwareAddr
	tap      *os.File
	pty      *pty
	counter  *drops.Counter
	feed     *feed
	agent    *process
	gpsd     *process
}

func (n *node) stateDir() string  { return filepath.Join(n.dir, "state") }
func (n *node) agentFile() string { return filepath.Join(n.dir, "agent.yaml") }
func (n *node) listen() string    { return fmt.Sprintf("%s:%d", n.control.IP, apiPort) }

// Field is a created field. Its methods but Close are for one caller at a time.
type Field struct {
	cfg    Config
	ledger ledger
	inUse  *os.File // lock of the folder
	lock   *os.File // lock of the number
	thread *thread
	stage  *stage
	nodes  []*node
	ctlNS  string
	uid    int // of gpsd
	gid    int

	agents     *errgroup.Group // ended first: they put things back
	stopAgents context.CancelFunc
	rest       *errgroup.Group // gpsd, feeds, faults
	restCtx    context.Context
	stopRest   context.CancelFunc

	scene       atomic.Pointer[scene]
	openChannel func(medium.Config) (channel, error)
	air         atomic.Pointer[air]
	hosts       hostDrops
	dead        atomic.Bool // the radio is to be
	trial       wire.Trial
	attempt     int
	placed      time.Duration // boot clock at the last Place

	mu     sync.Mutex
	events []wire.Record
}

// Create makes a field: it claims a number, writes down what it is about to
// make, and makes it. On an error nothing is left behind.
func Create(ctx context.Context, cfg Config) (f *Field, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f = &Field{cfg: cfg}
	f.openChannel = f.live
	if f.stage, err = newStage(cfg.Field, namesOf(cfg.Nodes), cfg.Seed, cfg.FilesDir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
			f = nil
		}
	}()
	if err := f.claim(ctx); err != nil {
		return f, err
	}
	if err := f.build(); err != nil {
		return f, err
	}
	return f, f.start(ctx)
}

func (f *Field) claim(ctx context.Context) (err error) {
	if err := os.MkdirAll(f.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("create field: %w", err)
	}
	if err := reachable(f.cfg.Dir); err != nil {
		return err
	}
	if f.inUse, err = lockFolder(ctx, f.cfg.Dir); err != nil {
		return err
	}
	if _, err := Sweep(f.cfg.RunDir); err != nil {
		return err
	}
	id, lock, err := claim(f.cfg.RunDir)
	if err != nil {
		return err
	}
	f.lock = lock
	f.ledger = ledger{ID: id, OwnerPID: os.Getpid(), Dir: f.cfg.Dir}
	f.ctlNS = fmt.Sprintf("fm%d-ctl", id)
	f.ledger.Namespaces = []string{f.ctlNS}
	for i, n := range f.cfg.Nodes {
		nd := &node{
			Node: n, index: i, netns: fmt.Sprintf("fm%d-%s", id, n.Name), port: fmt.Sprintf("node%d", i+1),
			dir: filepath.Join(f.cfg.Dir, "nodes", n.Name),
			// Short, whatever Dir is: a socket's path has at most 107 bytes.
			feedback: filepath.Join(f.cfg.RunDir, fmt.Sprintf("world-%d-%s.sock", id, n.Name)),
			control:  controlAddr(id, 11+i),
			// Locally administered; the same on every rehearsal of a field.
			mac: net.HardwareAddr{0x02, 'F', 'M', byte(id), 0, byte(i + 1)},
		}
		f.nodes = append(f.nodes, nd)
		f.ledger.Namespaces = append(f.ledger.Namespaces, nd.netns)
	}
	for _, name := range f.ledger.Namespaces {
		if _, err := os.Stat(filepath.Join(namesDir, name)); err == nil {
			return fmt.Errorf("create field: namespace %q exists and no field owns it; run: ip netns del %s", name, name)
		}
	}
	return f.ledger.save(f.cfg.RunDir)
}

// controlAddr is a host's address in a field's control network.
func controlAddr(id, host int) *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, 213, byte(id), byte(host)).To4(), Mask: net.CIDRMask(24, 32)}
}

// start runs a GPS receiver, a gpsd and an agent per node.
func (f *Field) start(ctx context.Context) error {
	ip, err := exec.LookPath("ip")
	if err != nil {
		return fmt.Errorf("find ip (package iproute2): %w", err)
	}
	gpsd, err := findGPSD()
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
	if err := f.watchHosts(); err != nil {
		return err
	}
	for _, n := range f.manned() {
		if err := f.startReceiver(gpsd, n); err != nil {
			return err
		}
		f.startAgent(agentsCtx, ip, n)
	}
	return f.awaitStart(ctx)
}

// startReceiver runs a node's GPS receiver and its gpsd.
func (f *Field) startReceiver(gpsd string, n *node) error {
	n.feed = &feed{hz: f.cfg.Field.NMEAHz, where: func(boot time.Duration) (mobility.Site, mobility.State) {
		s := f.scene.Load()
		return s.site, s.at(n.index, boot)
	}}
	line, err := n.pty.Master.SyscallConn()
	if err != nil {
		return fmt.Errorf("open GPS line of %q: %w", n.Name, err)
	}
	f.rest.Go(func() error { return n.feed.run(f.restCtx, lossyLine{line}) })
	n.gpsd = f.process("gpsd of "+n.Name, filepath.Join(n.dir, "gpsd.log"),
		func() *exec.Cmd { return gpsdCommand(gpsd, n.pty.SlavePath, f.uid, f.gid) },
		func(c *exec.Cmd) error { return f.thread.in(n.netns, c.Start) })
	f.rest.Go(func() error { return n.gpsd.run(f.restCtx) })
	return nil
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

// findGPSD looks where distributions put it: an ordinary user's PATH may lack
// the directory.
func findGPSD() (string, error) {
	for _, p := range []string{"/usr/sbin/gpsd", "/usr/local/sbin/gpsd", "/usr/bin/gpsd"} {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", errors.New("find gpsd: it is not installed (package gpsd)")
}

// startWithin bounds the start of daemons on a busy machine.
const startWithin = 20 * time.Second

// awaitStart waits until every node's gpsd has a fix and its agent listens.
func (f *Field) awaitStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
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
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
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
	return strings.TrimSpace(strings.ToValidUTF8(string(text[max(0, len(text)-most):]), ""))
}

func (f *Field) awaitAgent(ctx context.Context, n *node) error {
	conn, err := f.dial(ctx, f.ctlNS, n.listen())
	if err != nil {
		return fmt.Errorf("wait for the agent of %q: %w; its log ends:\n%s", n.Name, err, logEnd(filepath.Join(n.dir, "agent.log")))
	}
	return conn.Close()
}

// awaitFix waits until gpsd shows a node where it is, twice running.
func (f *Field) awaitFix(ctx context.Context, n *node) error {
	conn, err := f.dial(ctx, n.netns, "127.0.0.1:"+gpsdPort)
	if err != nil {
		return fmt.Errorf("wait for gpsd of %q: %w; its log ends:\n%s", n.Name, err, logEnd(filepath.Join(n.dir, "gpsd.log")))
	}
	defer conn.Close()
	good := 0
	err = watch(ctx, conn, func(r report) bool {
		now, err := bootNow()
		if err != nil {
			return false
		}
		s := f.scene.Load()
		if good++; !r.at(s.site, s.at(n.index, now)) {
			good = 0
		}
		return good >= 2
	})
	if err != nil {
		return fmt.Errorf("wait for a GPS fix of %q at its place: %w", n.Name, err)
	}
	return nil
}

// Info says where things are.
func (f *Field) Info() Info {
	site := f.cfg.Field.Site()
	i := Info{ID: f.ledger.ID, Fleet: filepath.Join(f.cfg.Dir, "fleet.yaml"), Control: f.ctlNS,
		Netns: map[string]string{}, LatDeg: site.LatDeg, LonDeg: site.LonDeg}
	for _, n := range f.nodes {
		i.Netns[n.Name] = n.netns
	}
	return i
}

// find is a node's index, -1 when there is none of the name.
func (f *Field) find(name string) int { return f.stage.find(name) }

// manned are the nodes that have an agent.
func (f *Field) manned() []*node {
	return slices.DeleteFunc(slices.Clone(f.nodes), func(n *node) bool { return n.Bare })
}

func namesOf(nodes []Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Name
	}
	return out
}

// closeNodes takes the nodes' devices and sockets away, many at a time: the
// kernel waits for a grace period with each network device.
func (f *Field) closeNodes() error {
	var g errgroup.Group
	g.SetLimit(32)
	for _, n := range f.nodes {
		g.Go(func() error {
			var errs []error
			if n.tap != nil {
				errs = append(errs, n.tap.Close())
			}
			if n.pty != nil {
				errs = append(errs, n.pty.Close())
			}
			if err := os.Remove(n.feedback); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
			errs = append(errs, n.counter.Close()) // it keeps the namespace alive
			n.tap, n.pty, n.counter = nil, nil, nil
			return errors.Join(errs...)
		})
	}
	return g.Wait()
}

// Failed is closed when a part of the field has broken down for good; Close
// then tells why.
func (f *Field) Failed() <-chan struct{} { return f.restCtx.Done() }

// Close destroys the field: agents first, so that they put back what they
// changed, then gpsd and the radio, then the namespaces. It may be called
// twice.
func (f *Field) Close() error {
	var errs []error
	if f.stopAgents != nil {
		f.stopAgents()
		errs = append(errs, f.agents.Wait())
	}
	if f.stopRest != nil {
		f.stopRest()
		errs = append(errs, f.rest.Wait())
	}
	f.stopAgents, f.stopRest = nil, nil
	errs = append(errs, f.air.Swap(nil).close(), f.hosts.close())
	errs = append(errs, f.closeNodes())
	if f.thread != nil {
		f.thread.close()
		f.thread = nil
	}
	if f.lock != nil {
		_, err := sweepOne(f.cfg.RunDir, f.ledger.ID)
		errs = append(errs, err, f.lock.Close())
		f.lock = nil
	}
	if f.inUse != nil {
		errs = append(errs, f.inUse.Close())
		f.inUse = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("destroy field %d: %w", f.ledger.ID, err)
	}
	return nil
}
