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

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/verdict"
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
	letGo   context.CancelFunc // ends the renewing of leases
	leasers sync.WaitGroup
	seen    *sightings
	hush    hush
	places  places
}

func newEpoch() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

func (r *Runner) openLane(ctx context.Context, lane *Lane) (*openLane, error) {
	l := &openLane{Lane: lane, r: r, plan: withControl(r.Plan, lane.Nodes), seen: newSightings(r.Plan.Run, r.hear), hush: hush{mesh: r.Plan.Control == wire.ControlMesh}}
	if err := l.seen.recall(r.Archive); err != nil {
		return nil, err
	}
	// What a node recorded before it had this run's plan is not this run's. It may
	// be much, and the control link slow.
	fresh := r.Archive.Empty()
	if err := l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		return l.insist(ctx, c, func() error {
			v, err := c.Load(ctx, l.plan)
			if err == nil && fresh {
				err = r.Archive.Begin(c.Node().Name, v.Position)
			}
			return err
		})
	}); err != nil {
		return nil, err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	var leased context.Context
	leased, l.letGo = context.WithCancel(ctx)
	for name, c := range lane.Nodes {
		l.leasers.Go(func() { l.renew(leased, c) })
		l.workers.Go(func() { l.collect(ctx, name, c) })
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
	l.letGo()
	l.cancel()
	l.leasers.Wait()
	l.workers.Wait()
}

// lease bears the run's name: a controller that was killed takes it again at
// once, and another run does not.
func (l *openLane) lease() wire.Lease {
	return wire.Lease{Holder: "run " + l.r.Plan.Run, TTLS: l.leaseFor().Seconds()}
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
		l.renewOnce(ctx, c)
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
	return l.eachNamed(names, func(n string) error { return f(ctx, l.Nodes[n]) })
}

// askedAtOnce bounds how many nodes work on one demand: in a rehearsal all share
// one machine, and two hundred that armed together kept each other's daemons from
// answering in time.
const askedAtOnce = 16

func (l *openLane) eachNamed(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for i, n := range names {
		g.Go(func() error { errs[i] = f(n); return nil })
	}
	_ = g.Wait() // each error has its place
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
	if err := l.arm(ctx, t, k); err != nil {
		if werr := l.callOff(ctx, t, k, show); werr != nil {
			return werr
		}
		return errors.Join(l.decide(ctx, t, l.notArmed(k, err)), cannotGoOn(t, err))
	}
	if err := l.Field.Drive(ctx); err != nil {
		return fmt.Errorf("drive trial %d: %w", t.Number, err)
	}
	if err := l.awaitKept(ctx, t, k, t.Nodes(), show); err != nil {
		return err
	}
	return l.finish(ctx, t, k)
}

// notArmed is the verdict on an attempt that could not be armed everywhere.
func (l *openLane) notArmed(k wire.TrialKey, err error) wire.Verdict {
	v := wire.Verdict{TrialKey: k, Outcome: wire.Failed, Reason: wire.Reason{Code: wire.ReasonArmFailed, Text: err.Error()}, Final: true}
	if why := l.seen.interrupted(k); why != "" {
		v.Outcome, v.Reason = wire.Interrupted, wire.Reason{Code: wire.ReasonArmFailed, Text: why}
	} else if passes(err) && !errors.Is(err, context.DeadlineExceeded) { // of a node that answers, and does not arm
		v.Outcome, v.Reason = wire.Interrupted, verdict.Interruption{Code: wire.ReasonNodeAway, Text: err.Error()}.Reason()
	}
	v.Reason = v.Reason.Fit()
	return v
}

// cannotGoOn ends the run when a node refuses a trial for a reason that every
// further attempt would meet too: a person has to see to it first.
func cannotGoOn(t wire.Trial, err error) error {
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.CodeDiskFull && refused.Code != wire.CodeUnfit {
		return nil
	}
	return fmt.Errorf("trial %d was not begun: %w; then go on with --resume", t.Number, err)
}

// armWithin bounds a node's arming; in a rehearsal all of them share one
// machine, and each needs its share of it.
const (
	armWithin = 30 * time.Second
	armEach   = 500 * time.Millisecond
)

// arm arms the peers and then the initiator, whose call returns when routing is
// ready everywhere, and whose gate may open at once.
func (l *openLane) arm(ctx context.Context, t wire.Trial, k wire.TrialKey) error {
	names := t.Nodes()
	f := func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, armWithin+time.Duration(len(names))*armEach+t.Routing.ReadyLimit())
		defer cancel()
		_, err := c.Arm(ctx, l.r.Plan.Run, k)
		return err
	}
	if err := l.eachOf(ctx, names[1:], f); err != nil {
		return err
	}
	return l.eachOf(ctx, names[:1], f)
}

// callOff ends an attempt that could not be armed everywhere. A call that
// failed may have reached its node or not, so every node is asked, and those
// that know the attempt are waited for.
func (l *openLane) callOff(ctx context.Context, t wire.Trial, k wire.TrialKey, show func(phase, detail string)) error {
	for {
		views, err := l.views(ctx)
		if err != nil {
			return err
		}
		names := takingPart(views, t, k)
		if l.follow(ctx, names, k, "another node could not be armed") {
			return l.awaitKept(ctx, t, k, names, show)
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// follow has nodes leave an attempt that another has ended, and reports whether
// all of them have.
func (l *openLane) follow(ctx context.Context, names []string, k wire.TrialKey, reason string) bool {
	return l.abort(ctx, names, wire.AbortRequest{TrialKey: k, Reason: reason, Follows: true})
}

// abort tells nodes to end an attempt, and reports whether all of them have.
func (l *openLane) abort(ctx context.Context, names []string, r wire.AbortRequest) bool {
	err := l.eachOf(ctx, names, func(ctx context.Context, c *fleet.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err := c.Abort(ctx, l.r.Plan.Run, r)
		return err
	})
	if err != nil && ctx.Err() == nil {
		l.r.Log.Warn("abort trial", "trial", r.Trial, "attempt", r.Attempt, "error", err)
	}
	return err == nil
}

// clocks estimates the nodes' clocks and records the estimates with the trial.
func (l *openLane) clocks(ctx context.Context, t wire.Trial, k wire.TrialKey) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second+fleet.ClockTurns(len(t.Nodes())))
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
	if err := l.captures(ctx, k); err != nil {
		return err
	}
	records, err := l.covariates(t, k)
	if err != nil {
		return err
	}
	v := verdict.Judge(t, k.Attempt, records, verdict.Scope{Final: true})
	if v.Outcome == wire.Accepted && l.r.Archive.Info().Place == archive.PlaceRehearsal && !vouchedFor(records) {
		// The controller was killed between the window and the field's account of
		// it, and the field ended with it.
		gone := verdict.Interruption{Code: wire.ReasonFieldGone, Text: "the field that the window was in has ended, and how late its radio was is not known"}
		v.Outcome, v.Reason = wire.Interrupted, gone.Reason()
	}
	return l.decide(ctx, t, v)
}

// vouchedFor tells whether an emulated radio has said how late it was.
func vouchedFor(records []wire.Record) bool {
	return slices.ContainsFunc(records, func(r wire.Record) bool {
		late, ok := r.Body.(*wire.Lateness)
		return ok && late.Source == "medium"
	})
}

// covariates reads back from the archive what a verdict is made of.
func (l *openLane) covariates(t wire.Trial, k wire.TrialKey) ([]wire.Record, error) {
	var out []wire.Record
	evidence := verdict.NewEvidence(t)
	for rec, err := range l.r.Archive.Records(k.Trial, k.Attempt) {
		if err != nil {
			return nil, fmt.Errorf("judge trial %d attempt %d: %w", k.Trial, k.Attempt, err)
		}
		if evidence.Needs(rec) {
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

// endPatience is how long the end of a run waits for a node that is away.
const endPatience = time.Minute

// end tells the nodes that the run is over, so that they put everything back,
// and collects what they still have to tell.
func (l *openLane) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endPatience, errors.New("a node is out of reach: resume the run when it is back, or run `fieldmesh nodes restore` then"))
	defer cancel()
	err := l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		var report wire.RestoreReport
		err := l.insist(ctx, c, func() (err error) {
			report, err = c.End(ctx, l.r.Plan.Run)
			return err
		})
		if err != nil {
			return fmt.Errorf("end the run: %w", err)
		}
		if len(report.Failed) > 0 {
			return fmt.Errorf("end the run: node %s could not put back: %v", c.Node().Name, report.Failed)
		}
		return l.drain(ctx, c)
	})
	if err != nil {
		return err
	}
	return l.release(ctx)
}

// release gives up the nodes' leases: others may steer them, and while nobody
// does they go on alone.
func (l *openLane) release(ctx context.Context) error {
	// No renewal may come after: the next run would find the nodes leased.
	l.letGo()
	l.leasers.Wait()
	return l.each(ctx, func(ctx context.Context, c *fleet.Client) error {
		if _, err := c.Lease(ctx, wire.Lease{Holder: l.lease().Holder}); err != nil {
			// It ends by itself soon; the run is over all the same.
			l.r.Log.Warn("give up the lease", "node", c.Node().Name, "error", err)
		}
		return nil
	})
}

// drain waits until every record that the node has on disk is in the archive.
func (l *openLane) drain(ctx context.Context, c *fleet.Client) error {
	var newest wire.SpoolPosition
	err := l.insist(ctx, c, func() error {
		v, err := c.View(ctx, l.r.Plan.Run, 0, 0)
		newest = v.Position
		return err
	})
	if err != nil {
		return fmt.Errorf("collect the last records: %w", err)
	}
	for {
		if newest.Seq == 0 || l.r.Archive.Holds(c.Node().Name, newest) {
			return nil
		}
		if sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("collect the last records of node %s: %w", c.Node().Name, context.Cause(ctx))
		}
	}
}
