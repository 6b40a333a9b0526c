package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// openLane is a lane at work: its nodes' leases are renewed and their records
// collected in the background until close.
type openLane struct {
	*Lane
	r       *Runner
	plan    wire.RunPlan // the run's, with the addresses of this lane's control link
	cancel  context.CancelFunc
	workers sync.WaitGroup
	seen    *sightings
}

func newEpoch() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

func (r *Runner) openLane(ctx context.Context, lane *Lane) (*openLane, error) {
	l := &openLane{Lane: lane, r: r, plan: withControl(r.Plan, lane.Nodes), seen: newSightings(r.Plan.Run)}
	if err := l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		if _, err := c.Lease(ctx, l.lease()); err != nil {
			return err
		}
		_, err := c.Load(ctx, l.plan)
		return err
	}); err != nil {
		return nil, err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	for name, c := range lane.Nodes {
		l.workers.Add(2)
		go func() { defer l.workers.Done(); l.renew(ctx, c) }()
		go func() { defer l.workers.Done(); l.collect(ctx, name, c) }()
	}
	return l, nil
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

func (l *openLane) close() {
	l.cancel()
	l.workers.Wait()
}

func (l *openLane) lease() wire.Lease {
	return wire.Lease{Holder: "controller-" + l.r.epoch, TTLS: leaseTTL.Seconds()}
}

// renew keeps the lease. While the node is out of reach it goes on by itself;
// the lease is taken again when it comes back.
func (l *openLane) renew(ctx context.Context, c *fleet.Client) {
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if _, err := c.Lease(ctx, l.lease()); err != nil && ctx.Err() == nil {
			l.r.Log.Warn("renew lease", "node", c.Node().Name, "error", err)
		}
	}
}

// each calls f for every node at once and joins what went wrong.
func (l *openLane) each(ctx context.Context, f func(context.Context, *fleet.Client) error) error {
	names := make([]string, 0, len(l.Nodes))
	for n := range l.Nodes {
		names = append(names, n)
	}
	return l.eachOf(ctx, names, f)
}

func (l *openLane) eachOf(ctx context.Context, names []string, f func(context.Context, *fleet.Client) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Add(1)
		go func() { defer wg.Done(); errs[i] = f(ctx, l.Nodes[n]) }()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// attempt drives one attempt from its place to its verdict. An error means
// that the run cannot go on; a trial that failed is data.
func (l *openLane) attempt(ctx context.Context, t wire.Trial, attempt int) error {
	k := wire.TrialKey{Trial: t.Number, Attempt: attempt}
	show := func(phase, detail string) {
		l.r.show(Progress{Lane: l.Name, Trial: &t, Attempt: attempt, Phase: phase, Detail: detail})
	}
	show("placing", "")
	if err := l.Field.Place(ctx, t, attempt); err != nil {
		return fmt.Errorf("place trial %d: %w", t.Number, err)
	}
	if err := l.clocks(ctx, t, k); err != nil {
		l.r.Log.Warn("clock exchange before the trial", "trial", t.Number, "error", err)
	}
	show("arming", "")
	armed, err := l.arm(ctx, t, k)
	if err != nil {
		l.abort(ctx, armed, k, "another node could not be armed")
		if werr := l.awaitKept(ctx, t, k, armed, show); werr != nil {
			return werr
		}
		return l.decide(ctx, t, wire.Verdict{TrialKey: k, Outcome: verdict.Failed, Reason: "arm_failed: " + err.Error(), Final: true})
	}
	if err := l.Field.Drive(ctx); err != nil {
		return fmt.Errorf("drive trial %d: %w", t.Number, err)
	}
	if err := l.awaitKept(ctx, t, k, armed, show); err != nil {
		return err
	}
	return l.finish(ctx, t, k)
}

// arm arms the peers and then the initiator, whose gate may open at once. It
// returns the nodes that may have been armed, even on an error.
func (l *openLane) arm(ctx context.Context, t wire.Trial, k wire.TrialKey) ([]string, error) {
	names := t.Nodes()
	f := func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := c.Arm(ctx, l.r.Plan.Run, k)
		return err
	}
	if err := l.eachOf(ctx, names[1:], f); err != nil {
		return names[1:], err
	}
	return names, l.eachOf(ctx, names[:1], f)
}

func (l *openLane) abort(ctx context.Context, names []string, k wire.TrialKey, reason string) {
	err := l.eachOf(ctx, names, func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err := c.Abort(ctx, l.r.Plan.Run, wire.AbortRequest{TrialKey: k, Reason: reason})
		return err
	})
	if err != nil && ctx.Err() == nil {
		l.r.Log.Warn("abort trial", "trial", k.Trial, "attempt", k.Attempt, "error", err)
	}
}

// clocks estimates the nodes' clocks and records the estimates with the trial.
func (l *openLane) clocks(ctx context.Context, t wire.Trial, k wire.TrialKey) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return l.eachOf(ctx, t.Nodes(), func(ctx context.Context, c *fleet.Client) error {
		est, err := c.ClockOffset(ctx, clockExchanges)
		if err != nil {
			return err
		}
		return l.r.own(k, bootNs(), &est)
	})
}

// finish judges an attempt whose nodes have all kept it.
func (l *openLane) finish(ctx context.Context, t wire.Trial, k wire.TrialKey) error {
	l.r.show(Progress{Lane: l.Name, Trial: &t, Attempt: k.Attempt, Phase: "settling"})
	if err := l.clocks(ctx, t, k); err != nil {
		l.r.Log.Warn("clock exchange after the trial", "trial", t.Number, "error", err)
	}
	open, closed := l.seen.window(k, t.Initiator)
	told, err := l.Field.Settle(ctx, open, closed)
	if err != nil {
		return fmt.Errorf("settle trial %d: %w", t.Number, err)
	}
	if err := l.r.Archive.AppendField(t.Number, k.Attempt, told); err != nil {
		return err
	}
	records, err := l.covariates(k)
	if err != nil {
		return err
	}
	return l.decide(ctx, t, verdict.Judge(t, k.Attempt, records, verdict.Scope{Final: true}))
}

// covariates reads back from the archive what a verdict is made of.
func (l *openLane) covariates(k wire.TrialKey) ([]wire.Record, error) {
	var out []wire.Record
	for rec, err := range l.r.Archive.Records(k.Trial, k.Attempt) {
		if err != nil {
			return nil, fmt.Errorf("judge trial %d attempt %d: %w", k.Trial, k.Attempt, err)
		}
		switch rec.Body.(type) {
		case *wire.GPS, *wire.Window, *wire.TrialState, *wire.Clock, *wire.Lateness:
			out = append(out, rec)
		}
	}
	return out, nil
}

// decide writes the final verdict, tells the nodes, and closes the attempt.
func (l *openLane) decide(ctx context.Context, t wire.Trial, v wire.Verdict) error {
	v.Final = true
	if err := l.r.Archive.Decide(v); err != nil {
		return err
	}
	l.r.seal(v.TrialKey)
	err := l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := c.Verdicts(ctx, l.r.Plan.Run, []wire.Verdict{v})
		return err
	})
	if err != nil && ctx.Err() == nil {
		// The node learns it when the lane catches up; the archive has it.
		l.r.Log.Warn("tell verdict", "trial", v.Trial, "attempt", v.Attempt, "error", err)
	}
	l.r.show(Progress{Lane: l.Name, Trial: &t, Attempt: v.Attempt, Phase: "judged", Verdict: &v})
	return nil
}

// end tells the nodes that the run is over, so that they put everything back.
func (l *openLane) end(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		report, err := c.End(ctx, l.r.Plan.Run)
		if err != nil {
			return fmt.Errorf("end the run: %w", err)
		}
		if len(report.Failed) > 0 {
			return fmt.Errorf("end the run: node %s could not put back: %v", c.Node().Name, report.Failed)
		}
		if _, err := c.Lease(ctx, wire.Lease{Holder: l.lease().Holder}); err != nil {
			return fmt.Errorf("give up the lease: %w", err)
		}
		return nil
	})
}
