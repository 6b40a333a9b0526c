package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/delay"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/node-agent/trial/gate"
	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/node-agent/trial/presence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	sampleInterval = 100 * time.Millisecond // 10 Hz
	// pulseInterval is the beat of the loop whose lateness shows that the agent did not run.
	pulseInterval = 50 * time.Millisecond
	// restoreTime is the most that putting the machine back may take. A node of its own takes less than a second; of
	// hundreds on one machine each waits for the others, as the kernel takes out one network device at a time.
	restoreTime  = time.Minute
	restoreAgain = 200 * time.Millisecond
	// flowGrace is what a flow may take after the window to drain its buffers and exchange iperf3's results; six
	// 64 KB windows drain in 2 s at 1.6 Mbit/s. For as long no relay goes: what is under way would be lost.
	flowGrace = 2 * time.Second
	// noGoGrace is how much longer than the initiator a peer waits for GO.
	noGoGrace = 30 * time.Second
)

// beat is the period of all that is sampled but the sockets of a flow with sample_hz.
func beat(t wire.Trial, node string) time.Duration {
	if t.RelaySampleHz == nil || !t.OnlyRelays(node) {
		return sampleInterval
	}
	return time.Second / time.Duration(*t.RelaySampleHz)
}

// watched reports whether a node tells for how long it stood still. Of hundreds of nodes most only relay, and each beat
// wakes a process: they are not watched where the plan has them sampled less often.
func watched(t wire.Trial, node string) bool { return beat(t, node) <= sampleInterval }

// attempt is one attempt at one trial, from arming to kept.
type attempt struct {
	engine *Engine
	key    wire.TrialKey
	trial  wire.Trial
	flows  []wire.Flow // those of the trial, with this attempt's client ports

	ctx    context.Context // ends when the attempt is aborted
	cancel context.CancelCauseFunc
	ready  chan struct{} // closed when armed, or when that has failed
	done   chan struct{} // closed when kept

	// guarded by engine.mu
	state   wire.State
	detail  string
	toStart bool // the car has yet to stand at its start
	heard   bool // of the run from elsewhere: who has armed this node, or a peer that has answered

	start        chan goOrder // the window's opening, decided once
	hostLife     string       // the privileged half's life in which the changes were made
	needs        []string     // those changes, in words
	transport    tcp.Profile
	servers      []Process
	sockets      Sockets
	capture      Capture           // nil when none was asked for
	routing      Routing           // nil when no daemon was started
	presence     *presence.Radio   // nil when the radio is not set by this node
	looking      sync.WaitGroup    // those who check whether routing is ready
	peersReady   bool              // all peers have said that they are
	echo         *echo             // nil when this node answers no probes
	prober       *prober           // nil when it sends none
	receivers    []*delay.Receiver // of the timed flows, as are senders
	senders      []*timedSender
	samplers     []*measure.Sampler
	pulse        *measure.Sampler // has no sources; nil on a relay that is sampled less often
	stopSampling context.CancelFunc
	sampling     chan error
	early        *early // what the sockets had shortly before the next edge

	mu      sync.Mutex
	covers  []wire.Record // records by which the initiator judges
	openNs  int64
	closeNs int64
	waiting string // what this node's routing still lacks
}

// goOrder is a GO as it reached this node.
type goOrder struct {
	openBootNs    int64
	path          string
	uncertaintyUs *float64
}

// Arm makes the node ready for an attempt: the changes are made, the servers
// listen, the samplers run. It returns when the node is ready, or says why not.
func (e *Engine) Arm(ctx context.Context, holder, run string, k wire.TrialKey) (wire.CampaignView, error) {
	if err := e.drives(holder, run); err != nil {
		return wire.CampaignView{}, err
	}
	_ = e.endIfRestoredByHand(ctx) // the controller takes the run up
	if err := e.arm(ctx, k); err != nil {
		return wire.CampaignView{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view(), nil
}

// arm is Arm for callers that need no lease: a controller's, a peer's GO, and the node itself when it goes on alone.
func (e *Engine) arm(ctx context.Context, k wire.TrialKey) error {
	a, err := e.admit(ctx, k)
	if err != nil {
		return err
	}
	if a == nil {
		e.awaitArmed(ctx, k)
		return nil
	}
	return a.begin(ctx)
}

// awaitArmed waits for an attempt that is being armed already: a call that is
// repeated must not return before the node is ready either.
func (e *Engine) awaitArmed(ctx context.Context, k wire.TrialKey) {
	e.mu.Lock()
	a := e.current
	e.mu.Unlock()
	if a == nil || a.key != k {
		return
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
	}
}

// begin makes an admitted attempt ready, and lets it take its course.
func (a *attempt) begin(ctx context.Context) error {
	e := a.engine
	defer close(a.ready)
	if err := a.prepare(ctx); err != nil {
		switch {
		case a.ctx.Err() != nil:
			err = context.Cause(a.ctx)
		case ctx.Err() != nil: // the controller went away, a peer waits no longer, or this agent is ending
			err = verdict.Interruption{Code: wire.ReasonAborted,
				Text: "who armed the node did not wait for the end of that"}
		}
		go func() { defer e.work.Done(); a.finish(fault{wire.ReasonArmFailed, err}) }()
		a.wait(ctx)
		return refuse(wire.CodeNotReady, fmt.Sprintf("node %s cannot arm trial %d: %v", e.cfg.Node, a.key.Trial, err),
			cureOf(err))
	}
	a.setState(wire.StateArmed, "waiting for GO")
	go func() { defer e.work.Done(); a.run() }()
	return nil
}

// cureOf is what a person can do about a node that cannot arm.
func cureOf(err error) string {
	if errors.Is(err, errRoutingNotReady) {
		return "see how far the nodes are apart, or have the plan wait for less (routing.ready) or longer " +
			"(routing.ready_s)"
	}
	return "see the node's preflight: fieldmesh nodes"
}

// admit makes k the attempt under way. The caller has to begin it. It counts as work until it is kept. Of an attempt
// that is under way or done, admit returns nil, nil, so that arming twice is arming once.
func (e *Engine) admit(ctx context.Context, k wire.TrialKey) (*attempt, error) {
	leave, err := e.awaitPutBack(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended && !e.leased() { // since the caller looked
		return nil, e.over()
	}
	t, ok := e.trial(k.Trial)
	next, more := verdict.Next(e.plan.AttemptsMax, e.verdicts[k.Trial])
	asked := more && k.Attempt <= next // a person may have asked for one beyond the plan's
	// This node need not know which attempts were interrupted on another.
	if !ok || k.Attempt < 1 || k.Attempt > max(e.plan.AttemptsMax, 1)+verdict.InterruptionsMax && !asked {
		return nil, refuse(wire.CodeBadRequest,
			fmt.Sprintf("no attempt %d of trial %d in this run", k.Attempt, k.Trial), "")
	}
	if a := e.current; a != nil {
		if a.key == k {
			return nil, nil
		}
		return nil, refuse(wire.CodeBusy,
			fmt.Sprintf("node %s is at trial %d attempt %d", e.cfg.Node, a.key.Trial, a.key.Attempt),
			"wait for its end, or abort it")
	}
	for _, v := range e.verdicts[k.Trial] {
		if v.Attempt == k.Attempt {
			return nil, nil
		}
	}
	if e.stopped {
		return nil, refuse(wire.CodeStopping, "node "+e.cfg.Node+" is being stopped", "start the agent again")
	}
	if err := e.fit(); err != nil {
		return nil, err
	}
	if err := e.roomFor(t); err != nil {
		return nil, err
	}
	if err := e.bury(ctx, e.lastHeard()); err != nil { // the journal keeps one
		return nil, err
	}
	if !e.started {
		if err := e.journal.Begun(e.byHand); err != nil {
			return nil, err
		}
		e.started, e.ended = true, false
	}
	a := newAttempt(e, k, t)
	if a.heard = e.leased() || t.Initiator != e.cfg.Node; a.heard {
		e.heardNs = e.deps.Clock.BootNs()
	}
	armed := journal.Attempt{TrialKey: k, After: e.deps.Spool.Position().Seq}
	if err := e.journal.Armed(armed, e.lastHeard()); err != nil {
		return nil, err
	}
	e.current = a
	e.work.Add(1)
	e.bump()
	return e.current, nil
}

func newAttempt(e *Engine, k wire.TrialKey, t wire.Trial) *attempt {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &attempt{engine: e, key: k, trial: t, ctx: ctx, cancel: cancel, done: make(chan struct{}),
		ready: make(chan struct{}), state: wire.StateLoaded, detail: "arming", start: make(chan goOrder, 1)}
	for _, f := range t.Traffic {
		// Other client ports at every attempt: those of the last one may still be in TIME_WAIT.
		f.ClientPort += (k.Attempt - 1) * max(f.Streams, 1)
		a.flows = append(a.flows, f)
	}
	return a
}

// prepare changes the machine, starts servers and samplers. An abort ends it.
func (a *attempt) prepare(ctx context.Context) error {
	e := a.engine
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	caps, err := e.findRadio(ctx, a.trial.Radio)
	if err != nil {
		return err
	}
	back := a.comesBack()
	set := func(context.Context, bool) error { return a.change(ctx, setsRadio(caps)) } // no change is left half made
	if err := back.Do(ctx, reach.Is, set); err != nil {
		return err
	}
	if caps, err = e.radioInForce(ctx, a.trial.Radio); err != nil {
		return err
	}
	if !setByPlan(a.trial.Radio) {
		caps, _ = e.deps.Radio() // what cannot be read is left as it is, and not recorded
	}
	if setsRadio(caps) {
		for _, note := range needs.RadioNotes(e.cfg.Interface, a.trial.Radio, *caps) {
			if err := e.record(a.key, &wire.Event{Level: "warning", Text: note}); err != nil {
				return err
			}
		}
	}
	traced, err := a.traceEvents(ctx)
	if err != nil {
		return err
	}
	if err := a.watchPresence(caps); err != nil {
		return err
	}
	addresses, err := e.flowAddresses(a.flows)
	if err != nil {
		return err
	}
	sockets, err := e.deps.Sockets(e.cfg.Node, a.flows, addresses, traced)
	if err != nil {
		return err
	}
	a.sockets = sockets
	e.live.reset()
	if err := a.watchRouting(ctx); err != nil {
		return err
	}
	if err := a.startCapture(ctx); err != nil {
		return err
	}
	if err := a.clear(ctx); err != nil {
		return err
	}
	if err := a.guard(ctx); err != nil {
		return err
	}
	if err := errors.Join(a.startServers(), a.startEcho(), a.openTimed()); err != nil {
		return err
	}
	p := e.deps.Provenance(ctx)
	if a.trial.EndsTCP(e.cfg.Node) {
		p.TCP = tcp.InForce(a.transport, p)
	}
	if isReal(caps) {
		p.Radio = caps
	}
	if err := e.record(a.key, &p); err != nil {
		return err
	}
	a.startSampling()
	return back.Do(ctx, isNotReady, a.awaitRouting)
}

// watchRouting watches the trial's routing daemon: one that goes ends the attempt, as failed.
func (a *attempt) watchRouting(ctx context.Context) error {
	if !needs.HasDaemon(a.trial.Routing) || a.engine.deps.Routing == nil {
		return nil
	}
	w, err := a.engine.deps.Routing(ctx, a.trial.Routing.Protocol, func(err error) {
		a.cancel(fault{wire.ReasonRoutingDaemon, err})
	})
	if err != nil {
		return err
	}
	a.routing = w
	return a.followReadiness()
}

// startCapture begins the capture, if the trial wants one, before the first packet of a flow can come.
func (a *attempt) startCapture(ctx context.Context) error {
	if a.trial.Capture == nil {
		return nil
	}
	e := a.engine
	c, err := e.deps.Capture(ctx, e.plan.Run, a.key, a.trial, a.flows)
	if err != nil {
		return err
	}
	a.capture = c
	return nil
}

// change makes the changes that the run and the trial need, and records those that were not in force already.
func (a *attempt) change(ctx context.Context, radio bool) error {
	e := a.engine
	if err := a.resolveTransport(); err != nil {
		return err
	}
	run, trial, err := needs.Changes(*e.plan, a.trial, a.transport, e.cfg.Node, e.cfg.Interface)
	if err != nil {
		return err
	}
	if a.trial.Radio.Mode == wire.ModeHotspot {
		run = withHotspot(*e.plan, a.trial, e.cfg, run)
	} else if radio {
		run, trial = withRadio(*e.plan, a.trial, e.cfg, run, trial)
	}
	st, err := e.deps.Host.Status(ctx)
	if err != nil {
		return err
	}
	a.hostLife = st.Instance
	for _, s := range []struct {
		scope   string
		changes []change.Change
	}{{"run", run}, {"trial", trial}} {
		applied, err := e.deps.Host.Apply(ctx, s.scope, s.changes)
		if err != nil {
			return err
		}
		for i := range applied {
			if err := e.record(a.key, &applied[i]); err != nil {
				return err
			}
		}
		for _, c := range s.changes {
			a.needs = append(a.needs, c.String())
		}
		if s.scope == "run" { // before a routing daemon of the trial's makes ways of its own
			if err := a.closeControl(ctx); err != nil {
				return err
			}
			if err := a.checkWays(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startSampling starts the samplers' beat. Sockets that are to be sampled more
// often than the rest have a beat of their own.
func (a *attempt) startSampling() {
	e := a.engine
	restUntilNs := gate.RestUntil(a.trial, e.deps.Clock.BootNs())
	positions := &gpsSource{r: e.deps.GPS, restUntilNs: restUntilNs}
	sources := append([]measure.Source{positions}, e.deps.Sources...)
	if a.routing != nil {
		sources = append(sources, a.routing)
	}
	if a.presence != nil {
		sources = append(sources, a.presence)
	}
	if a.trial.Ends(e.cfg.Node) && e.deps.Way != nil { // of hundreds of relays each would ask ten times a second
		sources = append(sources, wayWatch{a})
	}
	if hz := a.trial.SampleHz; hz == nil || *hz == wire.SampleHzMin {
		sources = slices.Insert(sources, 1, measure.Source(a.sockets))
	} else {
		a.samplers = append(a.samplers, measure.NewSampler(e.deps.Clock, time.Second/time.Duration(*hz),
			[]measure.Source{a.sockets}, a.emit))
	}
	a.samplers = append(a.samplers, measure.NewSampler(e.deps.Clock, beat(a.trial, e.cfg.Node), sources, a.emit))
	if restUntilNs > 0 {
		for i, s := range a.samplers {
			busy := 0
			if i == len(a.samplers)-1 {
				busy = 1 // the positions
			}
			s.Rest(restUntilNs, restInterval, busy)
		}
	}
	for _, s := range sources {
		if b, ok := s.(measure.Beginner); ok {
			b.Begin()
		}
	}
	all := slices.Clone(a.samplers)
	if watched(a.trial, e.cfg.Node) {
		a.pulse = measure.NewSampler(e.deps.Clock, pulseInterval, nil, nil)
		if restUntilNs > 0 {
			a.pulse.Rest(restUntilNs, restInterval, 0)
		}
		all = append(all, a.pulse)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stopSampling, a.sampling = cancel, make(chan error, len(all))
	for _, s := range all {
		go func() { a.sampling <- s.Run(ctx) }()
	}
}

// emit takes one sample: to the spool, to the live view, and, when it is a covariate, to what the initiator judges by.
func (a *attempt) emit(tBootNs int64, b wire.Body) error {
	if err := a.engine.recordAt(tBootNs, a.key, b); err != nil {
		return err
	}
	a.keepCovariate(tBootNs, b)
	a.engine.live.see(tBootNs, b)
	a.mishap(b)
	return nil
}

func (a *attempt) keepCovariate(tBootNs int64, b wire.Body) {
	switch b := b.(type) {
	case *wire.GPS, *wire.Window, *wire.TrialState, *wire.Iperf3, *wire.Edge, *wire.Lateness:
	case *wire.TCPSample:
		if !b.Stranger && b.StillMs == nil && b.Edge == "" {
			return
		}
	default:
		return
	}
	e := a.engine
	a.mu.Lock()
	defer a.mu.Unlock()
	a.covers = append(a.covers, wire.Record{Header: wire.Header{Kind: b.Kind(), Node: e.cfg.Node, TBootNs: tBootNs,
		Trial: a.key.Trial, Attempt: a.key.Attempt}, Body: b})
}

// patience is for how long a peer waits for GO: the initiator gives up by itself, and a peer that hears nothing later.
func (a *attempt) patience() time.Duration {
	g, most := a.trial.Gate, a.trial.Routing.ReadyLimit()+noGoGrace
	if !a.engine.leaseHeld() { // other peers may arm after this one
		most += max(lateJoin, a.trial.Routing.ReadyLimit())
	}
	return most + time.Duration((a.trial.ReturnArmingS()+g.ReturnS()+g.TimeoutS+g.LeadS)*float64(time.Second))
}

// run is the attempt's life from armed to kept.
func (a *attempt) run() {
	patience := time.NewTimer(a.patience())
	defer patience.Stop()
	if a.trial.Initiator == a.engine.cfg.Node {
		patience.Stop() // it sends GO, or gives up
		a.engine.work.Add(1)
		go func() { defer a.engine.work.Done(); a.initiate() }()
	}
	var order goOrder
	select {
	case order = <-a.start:
	case <-patience.C:
		a.finish(wire.Reason{Code: wire.ReasonNoGo, Text: "the initiator " + a.trial.Initiator + " sent no GO"})
		return
	case <-a.ctx.Done():
		a.finish(context.Cause(a.ctx))
		return
	}
	a.finish(a.measure(order))
}

// measure opens the window, runs the clients, closes it, and waits for what
// still runs. An error says why the attempt failed.
func (a *attempt) measure(order goOrder) error {
	e := a.engine
	a.opensAt(order.openBootNs)
	a.wake()
	a.setState(wire.StateRunning, "waiting for the window to open")
	clients := a.startClients(warming)
	a.startTimed(warming)
	order, err := a.awaitOpening(order)
	if err != nil {
		a.cancel(err)
		return errors.Join(err, a.endFlows(clients))
	}
	a.startTimed(measuring) // first: each datagram has its time
	w := &wire.Window{OpenBootNs: a.openNs, CloseBootNs: a.closeNs, GoPath: order.path,
		GoUncertaintyUs: order.uncertaintyUs}
	if err := errors.Join(a.edge("open", a.openNs), a.emit(e.deps.Clock.BootNs(), w), a.checkFlowsWays()); err != nil {
		a.cancel(err)
		return errors.Join(err, a.endFlows(clients))
	}
	a.setState(wire.StateRunning, "measuring")
	err = a.startProbes()
	clients = append(clients, a.startClients(measuring)...)
	if err == nil {
		err = a.awaitClose()
	}
	if err == nil {
		err = errors.Join(a.edge("close", a.closeNs), a.checkFlowsWays())
	}
	if err != nil {
		a.cancel(err) // ends the flows too
	}
	a.setState(wire.StateRunning, "flows are ending")
	servers := a.servers
	a.servers = nil
	if err = errors.Join(err, a.endFlows(append(clients, servers...))); err != nil {
		return err
	}
	if err := a.awaitOthers(); err != nil {
		return err
	}
	return a.checkRadio()
}

// awaitClose waits for the window to close, and samples the sockets before.
func (a *attempt) awaitClose() error {
	for left := time.Duration(1); left > 0; {
		left = a.approach("close", a.closeNs)
		if err := a.sleepUntil(a.engine.deps.Clock.BootNs() + left.Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}

// sleepUntil waits for a moment of the boot clock; it returns the cause when the attempt is aborted before.
func (a *attempt) sleepUntil(bootNs int64) error {
	for {
		left := time.Duration(bootNs - a.engine.deps.Clock.BootNs())
		if left <= 0 {
			return nil
		}
		if err := pause.For(a.ctx, left); err != nil {
			return err
		}
	}
}

func (a *attempt) setState(state wire.State, detail string) {
	e := a.engine
	e.mu.Lock()
	changed := a.state != state
	a.state, a.detail = state, detail
	e.bump()
	e.mu.Unlock()
	if !changed {
		return
	}
	b := &wire.TrialState{State: state}
	if err := e.record(a.key, b); err != nil {
		a.cancel(err)
	}
}

// interrupt ends the attempt for something that is not of the trial.
func (a *attempt) interrupt(code wire.ReasonCode, text string) {
	a.cancel(verdict.Interruption{Code: code, Text: text})
}

func (a *attempt) wait(ctx context.Context) {
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}
