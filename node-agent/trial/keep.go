package trial

import (
	"context"
	"errors"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/trial/journal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// finish ends sampling, puts the machine back, judges and keeps the attempt.
// reason is nil when the window was measured to its end.
func (a *attempt) finish(reason error) {
	a.setState(wire.StateRestoring, "")
	a.cancel(errors.New("the attempt has ended"))
	for _, p := range a.servers { // of an attempt that never opened its window
		out := p.Wait()
		reason = join(reason, a.engine.record(a.key, &out))
	}
	for _, end := range []func() error{a.closeTimed, a.sever, a.endProbes, a.endCapture, a.endSampling} {
		reason = join(reason, end())
	}
	a.looking.Wait()
	if a.routing != nil {
		reason = join(reason, a.routing.Close())
	}
	restored, err := a.restore()
	reason = join(reason, err)
	if reason == nil {
		reason = a.fixAfterClose()
	}
	v := a.judge(reason)
	err = a.engine.record(a.key, &wire.TrialState{State: wire.StateKept, Outcome: v.Outcome, Reason: v.Reason})
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	if err == nil {
		err = a.engine.deps.Spool.Sync(ctx)
	}
	if err != nil {
		v.Outcome, v.Reason = wire.Failed, v.Reason.And(err.Error())
		a.engine.deps.Log.Error("keep trial", "trial", a.key.Trial, "attempt", a.key.Attempt, "error", err)
	}
	a.engine.deps.Log.Info("trial kept", "trial", a.key.Trial, "attempt", a.key.Attempt, "outcome", v.Outcome,
		"reason", v.Reason, "undone", len(restored.Undone))
	a.engine.kept(a, v)
	_ = a.engine.endIfRestoredByHand(ctx) // it tells the log; what was made after a restore by hand goes now
}

// endCapture ends the capture, if there is one, and records what it came to. A
// capture that is spoilt does not fail the attempt: its other records are whole.
func (a *attempt) endCapture() error {
	if a.capture == nil {
		return nil
	}
	told := a.capture.Stop()
	if told.Error != "" {
		a.engine.deps.Log.Warn("capture", "trial", a.key.Trial, "attempt", a.key.Attempt, "error", told.Error)
	}
	return a.engine.record(a.key, &told)
}

// endSampling ends the sampler, if it was started, and gives the netlink socket back.
func (a *attempt) endSampling() error {
	if a.sockets == nil {
		return nil
	}
	return errors.Join(a.endSampler(), a.sockets.Close())
}

func (a *attempt) endSampler() error {
	if a.stopSampling == nil {
		return nil
	}
	a.stopSampling()
	var err error
	for range cap(a.sampling) {
		err = errors.Join(err, <-a.sampling)
	}
	a.mu.Lock()
	open, closed := a.openNs, a.closeNs
	a.mu.Unlock()
	if open == 0 {
		return err
	}
	now := a.engine.deps.Clock.BootNs()
	for _, s := range a.samplers {
		err = errors.Join(err, a.emit(now, s.Lateness(open, closed)))
	}
	if a.pulse != nil {
		err = errors.Join(err, a.emit(now, a.pulse.Standstill(open, closed)))
	}
	return err
}

// restore puts back what the trial changed. It fails the attempt when a change was not in force to the end.
func (a *attempt) restore() (wire.RestoreReport, error) {
	// Its own context: an aborted attempt must be put back all the same.
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	disturbed := a.stillInForce(ctx)
	report, err := a.restoreOnce(ctx)
	if err != nil {
		return report, fault{wire.ReasonRestoreFailed, err}
	}
	if st, err := a.engine.deps.Host.Status(ctx); err != nil {
		return report, fault{wire.ReasonRestoreFailed, err}
	} else if a.hostLife != "" && st.Instance != a.hostLife {
		return report, hostRestarted()
	}
	for _, u := range report.Undone {
		err := a.engine.record(a.key, &wire.HostChange{Scope: "trial", Action: "undone", What: u})
		if err == nil && strings.Contains(u, change.CausesMissing) {
			err = a.engine.record(a.key, &wire.Event{Level: "warning", Text: u})
		}
		if err != nil {
			return report, err
		}
	}
	if len(report.Failed) > 0 {
		return report, wire.Reason{Code: wire.ReasonRestoreFailed, Text: strings.Join(report.Failed, "; ")}
	}
	return report, disturbed
}

func hostRestarted() error {
	return verdict.Interruption{Code: wire.ReasonHostRestarted,
		Text: "the privileged half was restarted during the attempt"}
}

// stillInForce checks whether what the attempt needs is in force as it was made. The privileged half puts everything
// back when it is restarted, when a person tells it to, and when nobody has called it for long.
func (a *attempt) stillInForce(ctx context.Context) error {
	st, err := a.engine.deps.Host.Status(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is being restarted, as its instance will tell when it has restored
	}
	if a.hostLife != "" && st.Instance != a.hostLife {
		return hostRestarted()
	}
	for _, need := range a.needs {
		if !slices.Contains(st.Pending, need) {
			return verdict.Interruption{Code: wire.ReasonHostRestored,
				Text: need + " was no longer in force at the attempt's end"}
		}
	}
	return nil
}

// restoreOnce asks until the privileged half answers: it may just be being
// started again, and a node is never left changed.
func (a *attempt) restoreOnce(ctx context.Context) (wire.RestoreReport, error) {
	for {
		report, err := a.engine.deps.Host.Restore(ctx, "trial")
		if err == nil || ctx.Err() != nil {
			return report, err
		}
		if pause.For(ctx, restoreAgain) != nil {
			return report, err
		}
	}
}

// judge is the node's provisional verdict. Only the initiator has the covariates; another node knows whether it failed.
func (a *attempt) judge(reason error) wire.Verdict {
	if reason != nil {
		return wire.Verdict{TrialKey: a.key, Outcome: outcomeOf(reason), Reason: reasonOf(reason)}
	}
	if a.trial.Initiator != a.engine.cfg.Node {
		return wire.Verdict{TrialKey: a.key, Outcome: wire.Accepted}
	}
	a.mu.Lock()
	records := a.covers
	a.mu.Unlock()
	return verdict.Judge(a.trial, a.key.Attempt, records, verdict.Scope{})
}

// outcomeOf is the outcome of an attempt that ended before its time.
func outcomeOf(reason error) wire.Outcome {
	var interruption verdict.Interruption
	switch {
	case errors.As(reason, &interruption), errors.Is(reason, host.ErrAway):
		return wire.Interrupted
	case errors.Is(reason, errGateTimeout):
		return wire.Rejected
	}
	return wire.Failed
}

func (e *Engine) kept(a *attempt, v wire.Verdict) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.heard {
		e.heardNs = e.deps.Clock.BootNs()
	}
	if err := e.journal.Kept(v, e.lastHeard()); err != nil {
		e.deps.Log.Error("keep verdict", "error", err)
	}
	e.verdicts[a.key.Trial] = journal.SetVerdict(e.verdicts[a.key.Trial], v)
	k := a.key
	e.current, e.lastKey = nil, &k
	e.bump()
	close(a.done)
}
