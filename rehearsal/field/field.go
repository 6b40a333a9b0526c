package field

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/drops"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
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
	line     *gps.Line
	counter  *drops.Counter
	receiver *gps.Receiver
	agent    *process
	gpsd     *process
}

func (n *node) stateDir() string  { return filepath.Join(n.dir, "state") }
func (n *node) agentFile() string { return filepath.Join(n.dir, "agent.yaml") }
func (n *node) listen() string    { return fmt.Sprintf("%s:%d", n.control.IP, apiPort) }

// Field is a created field. Its methods but Close are for one caller at a time.
type Field struct {
	cfg    Config
	ledger ledger.Ledger
	inUse  *os.File // lock of the folder
	lock   *os.File // lock of the number
	thread *thread
	radios *hwsim.Air // of the nodes' own radios; nil: they have TAP devices
	stage  *stage
	nodes  []*node
	ctlNS  string
	uid    int // of gpsd
	gid    int

	agents     *errgroup.Group // ended first: they put things back
	stopAgents context.CancelFunc
	rest       *errgroup.Group // gpsd, receivers, faults
	restCtx    context.Context
	stopRest   context.CancelFunc

	scene       atomic.Pointer[scene]
	openChannel func(medium.Config) (channel, error)
	air         atomic.Pointer[air]
	hosts       hostDrops
	dead        atomic.Bool // the radio is to be
	trial       wire.Trial
	attempt     int

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
	if f.inUse, err = ledger.LockFolder(ctx, f.cfg.Dir); err != nil {
		return err
	}
	if _, err := ledger.Sweep(f.cfg.RunDir); err != nil {
		return err
	}
	id, lock, err := ledger.Claim(f.cfg.RunDir)
	if err != nil {
		return err
	}
	f.lock = lock
	f.ledger = ledger.Ledger{ID: id, OwnerPID: os.Getpid(), Dir: f.cfg.Dir}
	f.ctlNS = fmt.Sprintf("fm%d-ctl", id)
	f.ledger.Namespaces = []string{f.ctlNS}
	for i, n := range f.cfg.Nodes {
		nd := &node{
			Node: n, index: i, netns: fmt.Sprintf("fm%d-%s", id, n.Name), port: fmt.Sprintf("node%d", i+1),
			dir: nodeFolder(f.cfg.Dir, n.Name),
			// Short, whatever Dir is: a socket's path has at most 107 bytes.
			feedback: filepath.Join(f.cfg.RunDir, fmt.Sprintf("field-%d-%s.sock", id, n.Name)),
			control:  controlAddr(id, 11+i),
			// Locally administered; the same on every rehearsal of a field.
			mac: net.HardwareAddr{0x02, 'F', 'M', byte(id), 0, byte(i + 1)},
		}
		f.nodes = append(f.nodes, nd)
		f.ledger.Namespaces = append(f.ledger.Namespaces, nd.netns)
	}
	for _, name := range f.ledger.Namespaces {
		if _, err := os.Stat(filepath.Join(namesDir, name)); err == nil {
			return fmt.Errorf("create field: namespace %q exists and no field owns it; run: ip netns del %s", name,
				name)
		}
	}
	return f.ledger.Save(f.cfg.RunDir)
}

// controlAddr is a host's address in a field's control network.
func controlAddr(id, host int) *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, 213, byte(id), byte(host)).To4(), Mask: net.CIDRMask(24, 32)}
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
			if n.line != nil {
				errs = append(errs, n.line.Close())
			}
			if err := os.Remove(n.feedback); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
			errs = append(errs, n.counter.Close()) // it keeps the namespace alive
			n.tap, n.line, n.counter = nil, nil, nil
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
	if f.radios != nil {
		errs = append(errs, f.radios.Close())
		f.radios = nil
	}
	if f.thread != nil {
		f.thread.close()
		f.thread = nil
	}
	if f.lock != nil {
		_, err := ledger.SweepOne(f.cfg.RunDir, f.ledger.ID)
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
