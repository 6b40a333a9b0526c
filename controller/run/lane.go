package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// openLane is a lane at work. Its nodes' records are collected in the background.
type openLane struct {
	*Lane
	s      *shell
	index  int
	plan   wire.RunPlan // the run's, with its shard and the addresses of this lane's control link
	fresh  bool         // the archive held nothing when the run began
	asking chan struct{}
	pace   pace
	quiet  quiet
	places places
}

// askedAtOnce bounds how many nodes are asked at once: in a rehearsal all share
// one machine, and two hundred that armed together kept each other's daemons from
// answering in time.
const askedAtOnce = 16

func newOpenLane(s *shell, index int, lane *Lane, fresh bool) *openLane {
	plan := withControl(s.Plan, lane.Nodes)
	plan.Shard = s.Archive.Info().Shard
	return &openLane{Lane: lane, s: s, index: index, plan: plan, fresh: fresh,
		asking: make(chan struct{}, askedAtOnce), pace: newPace()}
}

// withControl says in a copy of the plan where each node's control link is,
// so that nodes can send GO over it. A name that is no address is left out:
// the nodes cannot be expected to resolve it.
func withControl(plan wire.RunPlan, nodes map[string]*fleet.Client) wire.RunPlan {
	plan.Nodes = slices.Clone(plan.Nodes)
	for i, n := range plan.Nodes {
		c := nodes[n.Name]
		if c == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(c.Node().Address); err == nil {
			plan.Nodes[i].ControlAddr = a.Addr().String()
		}
	}
	return plan
}

// holder names the run: a controller that was killed takes the lease again at
// once, and another run does not.
func (l *openLane) holder() string { return "run " + l.s.Plan.Run }

func (l *openLane) mesh() bool { return l.s.Plan.Control == wire.ControlMesh }

// lease takes a node's lease, before a call that needs it.
func (l *openLane) lease(ctx context.Context, c *fleet.Client) error {
	_, err := c.Lease(ctx, wire.Lease{Holder: l.holder(), TTLS: engine.LeaseTTL(l.s.Plan).Seconds()})
	return err
}

// tellWithin is how long a node may take to keep a verdict.
const tellWithin = 3 * time.Second

// call makes a call of a node.
func (l *openLane) call(ctx context.Context, node string, op engine.Op) engine.Answer {
	c, run := l.Nodes[node], l.s.Plan.Run
	switch op := op.(type) {
	case engine.View:
		return l.view(ctx, c, op)
	case engine.Renew:
		return failed(l.renew(ctx, c, op.TTL))
	case engine.Release:
		_, err := c.Lease(ctx, wire.Lease{Holder: l.holder()})
		return failed(err)
	case engine.Drain:
		return failed(l.drain(ctx, node, op.Position))
	}
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	}
	switch op := op.(type) {
	case engine.Load:
		return l.load(ctx, c)
	case engine.Arm:
		ctx, cancel := context.WithTimeout(ctx, op.Within)
		defer cancel()
		_, err := c.Arm(ctx, run, op.Key)
		if t, planned := l.s.Archive.Trial(op.Key.Trial); err == nil && planned && t.Gate.AfterS != nil {
			l.pace.waits(time.Duration(*t.Gate.AfterS * float64(time.Second)))
		}
		return failed(err)
	case engine.Abort:
		ctx, cancel := context.WithTimeout(ctx, engine.AbortWithin)
		defer cancel()
		_, err := c.Abort(ctx, run, op.Request)
		return failed(err)
	case engine.Tell:
		ctx, cancel := context.WithTimeout(ctx, tellWithin)
		defer cancel()
		_, err := c.Verdicts(ctx, run, l.s.withResults(op.Verdicts))
		var answer *wire.Error
		if errors.As(err, &answer) && answer.Code == wire.CodeBadRequest {
			_, err = c.Verdicts(ctx, run, op.Verdicts) // an older agent knows no results
		}
		return failed(err)
	case engine.End:
		return l.endRun(ctx, c)
	}
	return failed(fmt.Errorf("no call of a node: %T", op))
}

// refusal is the code of faults that come from none of the nodes and do not pass.
const refusal = "here"

func fatal(err error) engine.Answer {
	if err == nil {
		return engine.Answer{}
	}
	return engine.Answer{Fault: &engine.Fault{Code: refusal, Err: err}}
}

// load gives a node the plan. What it recorded before it had this run's plan is
// not this run's. It may be much, and the control link slow.
func (l *openLane) load(ctx context.Context, c *fleet.Client) engine.Answer {
	if err := l.lease(ctx, c); err != nil {
		return failed(err)
	}
	v, err := c.Load(ctx, l.plan)
	if err != nil || !l.fresh {
		return failed(err)
	}
	return fatal(l.s.Archive.Begin(c.Node().Name, v.Position))
}

// view asks a node how the run stands; one that has lost or never had the plan,
// for instance after its storage was replaced, is given it again.
func (l *openLane) view(ctx context.Context, c *fleet.Client, op engine.View) engine.Answer {
	if op.Leased {
		if err := l.lease(ctx, c); err != nil {
			return failed(err)
		}
	}
	v, err := c.View(ctx, l.s.Plan.Run, op.Known, op.Wait)
	var answer *wire.Error
	if op.Leased && errors.As(err, &answer) && answer.Code == wire.CodeNotFound {
		v, err = c.Load(ctx, l.plan)
	}
	if err != nil {
		return failed(err)
	}
	return engine.Answer{View: v, Held: l.s.Archive.Holds(c.Node().Name, v.Position)}
}

// renew renews a node's lease; where nodes are goes with it.
func (l *openLane) renew(ctx context.Context, c *fleet.Client, ttl time.Duration) (err error) {
	l.quiet.speak(ctx, func() {
		name, asked := c.Node().Name, time.Now()
		lease := wire.Lease{Holder: l.holder(), TTLS: ttl.Seconds(), Places: l.places.others(name, asked)}
		var answer wire.Lease
		if answer, err = c.Lease(ctx, lease); err == nil {
			l.places.hear(name, asked, answer)
		}
	})
	return err
}

// endRun tells a node that the run is over.
func (l *openLane) endRun(ctx context.Context, c *fleet.Client) engine.Answer {
	if err := l.lease(ctx, c); err != nil {
		return failed(err)
	}
	report, err := c.End(ctx, l.s.Plan.Run)
	if err != nil {
		return failed(err)
	}
	again, damage := report.NotUndone()
	for _, what := range damage { // no restore can, at the end of this run or of another
		l.s.Log.Warn("a change may be in force that the node cannot put back", "node", c.Node().Name, "reason", what)
	}
	if len(again) > 0 {
		return fatal(fmt.Errorf("node %s could not put back: %q", c.Node().Name, again))
	}
	return engine.Answer{}
}

// drain waits until the archive has a node's records up to a position.
func (l *openLane) drain(ctx context.Context, node string, newest wire.SpoolPosition) error {
	for newest.Seq != 0 && !l.s.Archive.Holds(node, newest) {
		if pause.For(ctx, 20*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// act does an action that concerns the lane and not a single node.
func (l *openLane) act(ctx context.Context, op engine.Op) engine.Answer {
	switch op := op.(type) {
	case engine.Place:
		return failed(l.Field.Place(ctx, op.Trial, op.Attempt))
	case engine.Drive:
		return failed(l.Field.Drive(ctx))
	case engine.Clocks:
		return failed(l.clocks(ctx, op.Trial, op.Key))
	case engine.Settle:
		told, err := l.Field.Settle(ctx, op.OpenNs, op.CloseNs)
		if err == nil {
			err = l.s.Archive.AppendField(op.Key.Trial, op.Key.Attempt, told)
		}
		return failed(err)
	case engine.Captures:
		return failed(l.captures(ctx, op.Key))
	}
	return failed(fmt.Errorf("no action of a lane: %T", op))
}

// clocks estimates the nodes' clocks and records the estimates with the trial.
func (l *openLane) clocks(ctx context.Context, t wire.Trial, k wire.TrialKey) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second+fleet.ClockTurns(len(t.Nodes())))
	defer cancel()
	return eachNamed(t.Nodes(), func(n string) error {
		est, err := l.Nodes[n].ClockOffset(ctx, clockExchanges)
		if err != nil {
			return err
		}
		return l.s.own.append(k, &est)
	})
}

// eachNamed calls f for every name at once and joins what went wrong.
func eachNamed(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for i, n := range names {
		g.Go(func() error { errs[i] = f(n); return nil })
	}
	_ = g.Wait() // each error has its place
	return errors.Join(errs...)
}

// insist makes a call of a node with the lease in hand, again and again while
// the node is out of reach or is just being restarted.
func (l *openLane) insist(ctx context.Context, c *fleet.Client, call func() error) error {
	for {
		err := l.lease(ctx, c)
		if err == nil {
			err = call()
		}
		f := faultOf(err)
		if f == nil || !f.Passes() {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		l.s.show(Progress{Lane: l.Name, Phase: "waiting", Detail: err.Error()})
		_ = pause.For(ctx, 500*time.Millisecond)
	}
}

// silent keeps everything from speaking for a while. Connections are closed: one
// that is kept open is looked after by packets of its own.
func (l *openLane) silent(ctx context.Context, d time.Duration) {
	l.quiet.begin(ctx, d)
	for _, c := range l.Nodes {
		c.Close()
	}
}
