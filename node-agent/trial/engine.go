// Package trial is a node's part in a run: it holds the schedule, arms, opens
// the window, measures, puts the node back, and goes on by itself when the
// controller is away. Sockets of the API, the changes to the machine and the
// samplers' insides stay out; they are reached through Deps.
package trial

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/node-agent/trial/challenge"
	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Host changes the machine and puts it back (node-agent/host).
type Host interface {
	Apply(ctx context.Context, scope string, changes []change.Change) ([]wire.HostChange, error)
	Restore(ctx context.Context, scope string) (wire.RestoreReport, error)
	Status(ctx context.Context) (wire.HostStatus, error)
	Sever(ctx context.Context, s host.Sever) (flows.Severed, error)
	// WiFi returns the network in which Android says that an interface is.
	WiFi(ctx context.Context, w host.WiFi) (wire.Caps, error)
}

// Spool keeps records (node-agent/spool).
type Spool interface {
	Append(h wire.Header, b wire.Body) (uint64, error)
	Sync(ctx context.Context) error
	journal.Records
	CheckRoom(needBytes int64) error
	Begin(run string)
	Reopen(run string) error
}

// Receiver is the node's GPS (node-agent/gps).
type Receiver interface {
	Tick() wire.GPS
	Last() (wire.GPS, bool)
}

// Flows runs the traffic of a trial (node-agent/traffic behind a thin adapter).
type Flows interface {
	// Ready says what would keep a flow from beginning or ending here.
	Ready(f wire.Flow) error
	Server(ctx context.Context, f wire.Flow, bind netip.Addr) (Process, error)
	Client(ctx context.Context, f wire.Flow, from, to netip.Addr, variant string) (Process, error)
}

// Process is one running traffic generator. Stop ends it early; Wait returns
// how it ended.
type Process interface {
	Wait() wire.Iperf3
	Stop(reason string)
}

// Sockets samples the TCP sockets of the trial's flows (measure.TCP).
type Sockets interface {
	measure.Source
	// Before reads the data sockets shortly before an edge of the window.
	Before(edge string) ([]wire.Body, error)
	// Edge reads the data sockets at an edge of the window, and counts what it
	// could not.
	Edge(name string, tBootNs int64) (samples []wire.Body, missed measure.Missed, err error)
	Close() error
}

// Capture is a packet capture under way (node-agent/capture). Stop ends it and
// says what it came to.
type Capture interface{ Stop() wire.Capture }

// Routing is a trial's routing daemon under watch (node-agent/routing).
type Routing interface {
	measure.Source
	// Missing returns in words which routes to nodes the daemon lacks, and whether
	// it lacks a neighbour that hears this node; "" for nothing.
	Missing(ctx context.Context, routes []netip.Addr, neighbor bool) (string, error)
	Close() error
}

// Deps is everything that an Engine reaches beyond itself.
type Deps struct {
	Clock clock.Clock
	Wall  func() wire.WallClock // where the wall clock stands; nil: not known
	Host  Host
	Spool Spool
	GPS   Receiver
	Flows Flows
	// Sockets makes what samples the flows' sockets, between the addresses of
	// their nodes; traced are the kernel's own events, which become the sampler's,
	// or nil.
	Sockets func(node string, flows []wire.Flow, addresses map[string]netip.Addr,
		traced measure.Events) (Sockets, error)
	// Events opens the events that the host process has the kernel tell; nil:
	// they are told from samples.
	Events  func(ctx context.Context) (measure.Events, error)
	Sources []measure.Source // beside GPS and sockets: interface counters, radio feedback
	// Capture begins to capture the packets of an attempt's flows and of routing;
	// flows are those of the trial as this attempt has them.
	Capture func(ctx context.Context, run string, k wire.TrialKey, t wire.Trial, flows []wire.Flow) (Capture, error)
	// Routing watches the daemon of a protocol, which has been started; gone is
	// called when it goes before the watch is closed.
	Routing func(ctx context.Context, protocol string, gone func(error)) (Routing, error)
	// Radio reads the radio under test: nil when the interface is not a radio's, an error
	// when it could not be read.
	Radio func() (*wire.Caps, error)
	// Transport returns what making a transport profile depends on; nil: nothing
	// is known, and variants are taken for the kernel's own.
	Transport func() (tcp.Machine, error)
	// Way returns the interface by which packets to an address leave; nil: it is not
	// looked at.
	Way func(to netip.Addr) (iface string, err error)
	// Link reads the state of an interface with its own address; not nil where Way is not.
	Link func(iface string, own netip.Addr) (link.State, error)
	// Fit returns why no trial can run on the machine as it is; nil, or returning nil: it can.
	Fit        func() error
	Provenance func(ctx context.Context) wire.Provenance
	Log        *slog.Logger
}

// Config is what is the node's own.
type Config struct {
	Node      string
	Interface string // under test
	Beside    string // on whose radio Interface is made for a run; empty: it is there
	StateDir  string // the run's plan and the attempts' journal live here
	GoPort    int
	// ControlPort is the TCP port on which the node listens for its controller.
	ControlPort int
	Bound       string // the interface that sockets of trials keep to; empty: packets go as the routes have it
}

// Engine is one node's part in a run. Its methods may be called from any
// goroutine; at most one attempt is under way at a time.
type Engine struct {
	cfg  Config
	deps Deps

	putBack chan struct{} // full while a restore is looked for or made; taken before mu

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever the view changes
	version  uint64
	plan     *wire.RunPlan
	started  bool // a trial of this run was armed, and the run has not ended
	ended    bool // nothing but its controller takes it up again
	verdicts map[int][]wire.Verdict
	current  *attempt
	lastKey  *wire.TrialKey
	unburied *journal.Attempt // a former life left it unfinished, and its end is not recorded
	lease    lease
	byHand   string // the newest restore by hand that is known of
	heardNs  int64  // when the run was last heard of from elsewhere: its controller, or a peer in an attempt
	endedAt  string // a peer whose run has ended, and which no controller has taken up since; "": none is known of
	stopped  bool
	journal  *journal.Journal
	live     liveView
	others   heardPlaces

	challenge challenge.Challenge // of GO

	work sync.WaitGroup // the attempts' goroutines
}

type lease struct {
	holder string // the peer, by its pinned key
	label  string // what the peer calls itself
	until  time.Time
}

// New opens a node's state. An attempt that a former life of the agent left
// unfinished is recorded as interrupted, unless its end is, and the machine is put back.
func New(ctx context.Context, cfg Config, deps Deps) (*Engine, error) {
	e := &Engine{cfg: cfg, deps: deps, version: 1, changed: make(chan struct{}),
		putBack: make(chan struct{}, 1), verdicts: map[int][]wire.Verdict{}}
	j, state, err := journal.Open(filepath.Join(cfg.StateDir, "run"))
	if err != nil {
		return nil, err
	}
	e.journal, e.plan, e.started, e.ended, e.verdicts = j, state.Plan, state.Started, state.Ended, state.Verdicts
	e.byHand = state.ByHand
	e.heardNs = state.Heard.Ns(deps.Clock)
	if k := state.Unfinished; k != nil && e.plan != nil {
		if _, err := e.deps.Host.Restore(ctx, "trial"); err != nil {
			e.deps.Log.Error("restore after restart", "error", err)
		}
		e.unburied, e.lastKey = k, &k.TrialKey
		_ = e.bury(ctx, state.Heard) // no node is kept from its start; it tells the log
	}
	return e, nil
}

// bury records the end of what a former life left unfinished. What cannot be recorded, as on a full disk, is tried
// again when a verdict comes, before another attempt is armed, and at the next start.
func (e *Engine) bury(ctx context.Context, heard journal.Heard) error {
	if e.unburied == nil {
		return nil
	}
	k := *e.unburied
	v, err := journal.KeptIn(e.deps.Spool, e.plan.Run, k)
	if v.Outcome == "" {
		v.Outcome = wire.Interrupted
		v.Reason = wire.Reason{Code: wire.ReasonAgentRestarted, Text: "the agent was restarted during the attempt"}
		if err == nil {
			end := &wire.TrialState{State: wire.StateKept, Outcome: v.Outcome, Reason: v.Reason}
			err = e.record(k.TrialKey, end)
		}
	}
	if err == nil {
		err = e.deps.Spool.Sync(ctx)
	}
	if err == nil {
		err = e.journal.Kept(v, heard)
	}
	if err == nil {
		e.unburied = nil
	} else {
		e.deps.Log.Error("record unfinished trial", "trial", k.Trial, "attempt", k.Attempt, "error", err)
	}
	e.verdicts[k.Trial] = journal.SetVerdict(e.verdicts[k.Trial], v)
	return err
}

// record appends a record of an attempt at the present time.
func (e *Engine) record(k wire.TrialKey, b wire.Body) error {
	return e.recordAt(e.deps.Clock.BootNs(), k, b)
}

func (e *Engine) recordAt(tBootNs int64, k wire.TrialKey, b wire.Body) error {
	h := wire.Header{TBootNs: tBootNs, Trial: k.Trial, Attempt: k.Attempt}
	if e.plan != nil {
		h.Run = e.plan.Run
	}
	if _, err := e.deps.Spool.Append(h, b); err != nil {
		code := wire.ReasonUnrecorded
		if e.deps.Spool.CheckRoom(1) != nil {
			code = wire.ReasonDiskFull
		}
		return faultf(code, "record %s of trial %d attempt %d: %w", b.Kind(), k.Trial, k.Attempt, err)
	}
	return nil
}

// bump tells everyone who waits that the view has changed; e.mu is held.
func (e *Engine) bump() {
	e.version++
	close(e.changed)
	e.changed = make(chan struct{})
}

// Run serves GO and goes on alone when the controller is away, until ctx ends.
// Then it aborts the attempt under way and restores the machine.
func (e *Engine) Run(ctx context.Context) error {
	conn, err := e.listenGo(ctx)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.serveGo(ctx, conn) })
	wg.Go(func() { e.autopilot(ctx) })
	<-ctx.Done()
	conn.Close()
	wg.Wait()
	e.stop()
	return nil
}

// stop ends the attempt under way and waits for it to have put its changes back.
func (e *Engine) stop() {
	e.mu.Lock()
	e.stopped = true
	a := e.current
	e.mu.Unlock()
	if a != nil {
		a.interrupt(wire.ReasonAgentStopped, "the agent was told to stop")
	}
	e.work.Wait()
}

func (e *Engine) trial(number int) (wire.Trial, bool) {
	if e.plan == nil || number < 1 || number > len(e.plan.Trials) {
		return wire.Trial{}, false
	}
	return e.plan.Trials[number-1], true
}

func (e *Engine) planNode(name string) (wire.PlanNode, bool) {
	for _, n := range e.plan.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return wire.PlanNode{}, false
}

// refuse returns a refusal that a caller can act on.
func refuse(code, message, cure string) *wire.Error {
	return &wire.Error{Code: code, Message: message, Cure: cure}
}
