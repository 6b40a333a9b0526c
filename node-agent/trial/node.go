package trial

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// roomFor refuses a trial whose records the spool could not take.
func (e *Engine) roomFor(t wire.Trial) error {
	if err := e.deps.Spool.CheckRoom(t.SpoolBytes()); err != nil {
		return refuse(wire.CodeDiskFull,
			fmt.Sprintf("node %s has no room for the records of trial %d: %v", e.cfg.Node, t.Number, err), "")
	}
	return nil
}

// Lease gives the controller named holder the right to steer for a while. A lease that somebody else holds is refused,
// and given back with TTLS 0. What the lease itself says of its holder distinguishes two runs of one controller: the
// second would take the nodes away from the first.
func (e *Engine) Lease(_ context.Context, holder string, l wire.Lease) (wire.Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leased() && (e.lease.holder != holder || e.lease.label != l.Holder) {
		return wire.Lease{}, refuse(wire.CodeLeaseHeld, e.steeredBy(),
			"stop the other controller, or wait until its lease has ended")
	}
	if l.TTLS <= 0 {
		e.lease = lease{}
		return wire.Lease{Holder: l.Holder}, nil
	}
	l.TTLS = min(l.TTLS, 120)
	e.heardNs, e.endedAt = e.deps.Clock.BootNs(), ""
	until := time.Now().Add(time.Duration(l.TTLS * float64(time.Second)))
	e.lease = lease{holder: holder, label: l.Holder, until: until}
	e.hearPlaces(l.Places)
	l.Places = e.ownPlace()
	return l, nil
}

// leased reports whether some controller steers; e.mu is held.
func (e *Engine) leased() bool { return e.lease.holder != "" && time.Now().Before(e.lease.until) }

// steeredBy says who does, and for how long; e.mu is held.
func (e *Engine) steeredBy() string {
	return fmt.Sprintf("node %s is steered by %s (%s) for another %.0f s", e.cfg.Node, e.lease.holder, e.lease.label,
		time.Until(e.lease.until).Seconds())
}

// needLease refuses a steering call of a peer that holds no lease; e.mu is held.
func (e *Engine) needLease(holder string) error {
	if e.leased() && e.lease.holder == holder {
		return nil
	}
	if e.leased() {
		return refuse(wire.CodeLeaseHeld, e.steeredBy(), "stop the other controller, or wait until its lease has ended")
	}
	return refuse(wire.CodeLeaseNeeded, "nobody holds the lease of node "+e.cfg.Node,
		"take the lease first: PUT /v1/lease")
}

// drives is the refusal of a caller who does not steer the node, or of a run that it does not hold; nil for neither.
func (e *Engine) drives(holder, run string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.holds(run); err != nil {
		return err
	}
	return e.needLease(holder)
}

// Load takes a run's plan. The same plan again does nothing but take up a run that had ended; another plan is refused
// while an attempt is under way, and under the name of a run in which something has happened, but for its next shard.
func (e *Engine) Load(ctx context.Context, holder string, plan wire.RunPlan) (wire.CampaignView, error) {
	_ = e.endIfRestoredByHand(ctx) // the controller takes the run up; a host process that is away says so below
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.needLease(holder); err != nil {
		return wire.CampaignView{}, err
	}
	if e.plan != nil && e.plan.Run == plan.Run {
		same, err := journal.SamePlan(*e.plan, plan)
		switch {
		case err != nil:
			return wire.CampaignView{}, err
		case same:
			err = cmp.Or(e.deps.Spool.Reopen(plan.Run), e.readdress(plan))
			if e.ended && err == nil {
				e.ended = false
				e.bump()
			}
			return e.view(), err
		case !e.untouched() && !(e.ended && journal.GivesWay(*e.plan, e.verdicts, plan)):
			return wire.CampaignView{}, refuse(wire.CodeConflict,
				"run "+plan.Run+" is held with another plan", "complete its shard, or give the new run another name")
		}
	}
	if e.current != nil {
		return wire.CampaignView{}, refuse(wire.CodeBusy, fmt.Sprintf("an attempt of run %s is under way", e.plan.Run),
			"abort it first, or wait for its end")
	}
	return e.take(ctx, plan)
}

// untouched: nothing has happened in the run that is held, so that its controller may have discarded it; e.mu is held.
func (e *Engine) untouched() bool {
	return e.current == nil && !e.started && len(e.verdicts) == 0
}

// take replaces the run that is held, if any; e.mu is held.
func (e *Engine) take(ctx context.Context, plan wire.RunPlan) (wire.CampaignView, error) {
	own := slices.DeleteFunc(slices.Clone(plan.Trials), func(t wire.Trial) bool {
		return !slices.Contains(t.Nodes(), e.cfg.Node)
	})
	if len(own) > 0 {
		neediest := slices.MaxFunc(own,
			func(a, b wire.Trial) int { return cmp.Compare(a.SpoolBytes(), b.SpoolBytes()) })
		if err := e.roomFor(neediest); err != nil {
			return wire.CampaignView{}, err
		}
	}
	report, err := e.deps.Host.Restore(ctx, "")
	if err != nil {
		return wire.CampaignView{}, refuse(wire.CodeHost, "cannot put back what the former run changed: "+err.Error(),
			"run fieldmesh-agent restore on the node")
	}
	for _, what := range report.Failed { // the node's status tells it too
		e.deps.Log.Error("what the former run changed is not put back", "change", what)
	}
	if err := e.deps.Spool.Reopen(plan.Run); err != nil {
		return wire.CampaignView{}, err
	}
	if err := e.journal.Load(plan, e.byHand); err != nil {
		return wire.CampaignView{}, err
	}
	e.deps.Spool.Begin(plan.Run)
	e.plan, e.started, e.ended, e.verdicts = &plan, false, false, map[int][]wire.Verdict{}
	e.lastKey, e.unburied = nil, nil
	e.bump()
	return e.view(), nil
}

// readdress takes the control addresses and the shard of a plan that is otherwise the one held; e.mu is held. An
// attempt under way keeps those it was armed with: GO goes over the mesh when they do not answer.
func (e *Engine) readdress(plan wire.RunPlan) error {
	if e.current != nil || slices.Equal(e.plan.Nodes, plan.Nodes) && reflect.DeepEqual(e.plan.Shard, plan.Shard) {
		return nil
	}
	if err := e.journal.ReplacePlan(plan); err != nil {
		return err
	}
	e.plan = &plan
	return nil
}

// View returns the standing of a run; it waits while the view's version is
// known, until ctx ends, and then returns the view as it is.
func (e *Engine) View(ctx context.Context, run string, known uint64) (wire.CampaignView, error) {
	for {
		e.mu.Lock()
		if err := e.holds(run); err != nil {
			e.mu.Unlock()
			return wire.CampaignView{}, err
		}
		v, changed := e.view(), e.changed
		e.mu.Unlock()
		if v.Version != known || ctx.Err() != nil {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Schedule is the plan of a run, for people to look at.
func (e *Engine) Schedule(run string) (wire.Schedule, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.holds(run); err != nil {
		return wire.Schedule{}, err
	}
	return e.plan.Schedule(), nil
}

// holds refuses a call for a run that is not the one held; e.mu is held.
func (e *Engine) holds(run string) error {
	if e.plan == nil {
		return refuse(wire.CodeNotFound, fmt.Sprintf("node %s holds no run", e.cfg.Node),
			"load the run's plan first: PUT /v1/runs/"+run)
	}
	if e.plan.Run != run {
		return refuse(wire.CodeNotFound, fmt.Sprintf("node %s holds run %s, not %s", e.cfg.Node, e.plan.Run, run),
			"load the run's plan first")
	}
	return nil
}

// view is the standing of the run; e.mu is held.
func (e *Engine) view() wire.CampaignView {
	v := wire.CampaignView{Version: e.version, Run: e.plan.Run, Campaign: e.plan.Campaign, State: wire.StateLoaded,
		Detail: e.holdsOff(), Trials: []wire.TrialView{}, Position: e.deps.Spool.Position(), Ended: e.ended}
	if e.lastKey != nil {
		v.State, v.Current = wire.StateKept, e.lastKey
	}
	if a := e.current; a != nil {
		k := a.key
		v.State, v.Detail, v.Current = a.state, a.detail, &k
		v.ToStart = a.toStart && a.waits()
	}
	for n, vs := range e.verdicts {
		v.Trials = append(v.Trials, wire.TrialView{Number: n, Attempts: append([]wire.Verdict{}, vs...)})
	}
	slices.SortFunc(v.Trials, func(a, b wire.TrialView) int { return cmp.Compare(a.Number, b.Number) })
	v.Live = e.live.snapshot(e)
	v.Places = e.others.now(time.Now())
	return v
}

// Abort ends an attempt, whatever its state. One that has ended is left as it is.
func (e *Engine) Abort(ctx context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error) {
	e.mu.Lock()
	if err := e.holds(run); err != nil {
		e.mu.Unlock()
		return wire.CampaignView{}, err
	}
	a := e.current
	e.mu.Unlock()
	if a != nil && a.key == r.TrialKey {
		if r.Follows {
			a.cancel(wire.Reason{Code: wire.ReasonAborted, Text: r.Reason})
		} else {
			a.interrupt(wire.ReasonAborted, r.Reason)
		}
		a.wait(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view(), nil
}

// Verdicts takes the controller's final word on attempts.
func (e *Engine) Verdicts(ctx context.Context, holder, run string, vs []wire.Verdict) (wire.CampaignView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.holds(run); err != nil {
		return wire.CampaignView{}, err
	}
	if err := e.needLease(holder); err != nil {
		return wire.CampaignView{}, err
	}
	for _, v := range vs {
		if _, ok := e.trial(v.Trial); !ok {
			return wire.CampaignView{}, refuse(wire.CodeBadRequest, fmt.Sprintf("run %s has no trial %d", run, v.Trial),
				"")
		}
	}
	_ = e.bury(ctx, e.lastHeard()) // the word of a controller that lacks the record holds all the same
	for _, v := range vs {
		v.Final = true
		if err := e.journal.Kept(v, e.lastHeard()); err != nil {
			return wire.CampaignView{}, err
		}
		e.verdicts[v.Trial] = journal.SetVerdict(e.verdicts[v.Trial], v)
	}
	if len(vs) > 0 {
		e.bump()
	}
	return e.view(), nil
}

// End closes a run: the attempt under way is aborted and everything that the
// run changed on the machine is put back. The plan stays for reference.
func (e *Engine) End(ctx context.Context, holder, run string) (wire.RestoreReport, error) {
	if err := e.drives(holder, run); err != nil {
		return wire.RestoreReport{}, err
	}
	return e.Restore(ctx)
}

// Restore ends whatever is under way and puts the machine back. It needs no
// lease: a person who wants the machine back gets it.
func (e *Engine) Restore(ctx context.Context) (wire.RestoreReport, error) {
	leave, err := e.awaitPutBack(ctx)
	if err != nil {
		return wire.RestoreReport{}, err
	}
	defer leave()
	e.mu.Lock()
	return e.endAndRestore(ctx)
}

// awaitPutBack waits for a restore that is looked for or made: what it finds and undoes is of the time before. Nothing
// is armed, and no other restore is made, until leave is called.
func (e *Engine) awaitPutBack(ctx context.Context) (leave func(), err error) {
	select {
	case e.putBack <- struct{}{}:
		return func() { <-e.putBack }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until node %s is put back: %w", e.cfg.Node, ctx.Err())
	}
}

// endAndRestore lets go of e.mu, which is held.
func (e *Engine) endAndRestore(ctx context.Context) (wire.RestoreReport, error) {
	a := e.current
	var unwritten error
	if e.plan != nil && !e.ended {
		unwritten = e.journal.Ended()
		e.started, e.ended = false, true
		e.bump()
	}
	e.mu.Unlock()
	if a != nil {
		a.interrupt(wire.ReasonAborted, "the node was told to restore")
		a.wait(ctx)
	}
	report, err := e.deps.Host.Restore(ctx, "")
	if err != nil {
		return report, refuse(wire.CodeHost, "cannot restore: "+err.Error(), "run fieldmesh-agent restore on the node")
	}
	if unwritten != nil {
		return report, refuse(wire.CodeDiskFull, "the machine is put back, but the end of the run is not on disk: "+
			unwritten.Error(), "make room on the node, and restore again before its agent is restarted")
	}
	return report, nil
}

// endIfRestoredByHand ends the run on this node, with an error, when it was put back by hand since it was loaded or
// begun here.
func (e *Engine) endIfRestoredByHand(ctx context.Context) error {
	leave, err := e.awaitPutBack(ctx)
	if err != nil {
		return err
	}
	defer leave()
	st, err := e.deps.Host.Status(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	came := st.ByHand != e.byHand
	e.byHand = st.ByHand
	if !came || e.plan == nil || e.ended {
		e.mu.Unlock()
		return nil
	}
	e.deps.Log.Warn("the run ends on this node: it was put back by hand", "run", e.plan.Run)
	if _, err := e.endAndRestore(ctx); err != nil {
		return err
	}
	return e.over()
}

func (e *Engine) over() error {
	return refuse(wire.CodeConflict, "the run has ended here: node "+e.cfg.Node+" was put back",
		"have its controller resume it: fieldmesh run --resume RUN")
}

// Held is the run that the node holds, "" for none, and the shard of it, nil where it is driven whole.
func (e *Engine) Held() (run string, shard *wire.Shard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plan == nil {
		return "", nil
	}
	return e.plan.Run, e.plan.Shard
}

// Attempt is the one under way, if any.
func (e *Engine) Attempt() (k wire.TrialKey, busy bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return wire.TrialKey{}, false
	}
	return e.current.key, true
}

// forsakenAfter is how long a node that hears neither its controller nor a peer begins trials by itself, and holds the
// dead-man timer off: for a drive back, a meal, a change of cars. A trial that comes all the same is taken part in.
const forsakenAfter = time.Hour

// lastHeard is what the journal keeps of that; e.mu is held.
func (e *Engine) lastHeard() journal.Heard {
	var wall wire.WallClock
	if e.deps.Wall != nil {
		wall = e.deps.Wall()
	}
	return journal.HeardAt(e.deps.Clock, e.heardNs, wall)
}

// forsaken reports whether that has passed, or a peer would refuse every trial; e.mu is held.
func (e *Engine) forsaken() bool {
	return e.endedAt != "" || e.deps.Clock.BootNs()-e.heardNs >= forsakenAfter.Nanoseconds()
}

// Forget has what was recorded of a run dropped, unless that run is under way here, or loaded while somebody steers,
// who may be taking it up. Neither begins before drop has returned.
func (e *Engine) Forget(run string, drop func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.holds(run) != nil:
	case e.leased():
		return refuse(wire.CodeLeaseHeld, e.steeredBy(), "wait until that has ended")
	case e.busy():
		return refuse(wire.CodeBusy, fmt.Sprintf("run %s is under way at node %s", run, e.cfg.Node),
			"wait for its end, or end it there: fieldmesh nodes restore "+e.cfg.Node)
	}
	return drop()
}

// Busy reports whether the machine should stay as the run has set it up: an attempt is under way, or a begun run still
// has something to do and is not forsaken.
func (e *Engine) Busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busy()
}

// busy is Busy; e.mu is held.
func (e *Engine) busy() bool {
	_, more := e.next()
	return e.current != nil || e.leased() || e.started && more && !e.forsaken()
}
