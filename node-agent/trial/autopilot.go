package trial

import (
	"context"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	autopilotEvery = 250 * time.Millisecond
	// autopilotPause gives a controller that comes back the first word, and
	// the peers time to finish their own part of the last trial, in which they may
	// wait for datagrams.
	autopilotPause = 3*time.Second + wire.DelayGrace
)

// autopilot continues the schedule while no controller steers: the initiator of the next trial arms itself, and its
// GO arms the others. Where none of them answers for long, it begins nothing more.
func (e *Engine) autopilot(ctx context.Context) {
	ticker := time.NewTicker(autopilotEvery)
	defer ticker.Stop()
	var idle time.Time
	var told string
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		told = e.tellHoldingOff(told)
		k, ok := e.mine()
		if !ok {
			idle = time.Time{}
			continue
		}
		if idle.IsZero() {
			idle = time.Now()
		}
		if time.Since(idle) < autopilotPause {
			continue
		}
		idle = time.Time{}
		if err := e.able(ctx, k); err != nil {
			e.deps.Log.Warn("cannot go on alone yet", "trial", k.Trial, "attempt", k.Attempt, "error", err)
			continue
		}
		e.deps.Log.Info("going on alone", "trial", k.Trial, "attempt", k.Attempt)
		if err := e.arm(ctx, k); err != nil {
			e.deps.Log.Error("go on alone", "error", err)
		}
	}
}

// mine is the attempt that this node should start by itself now, if any.
func (e *Engine) mine() (wire.TrialKey, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped || !e.started || e.leased() || e.current != nil || e.forsaken() {
		return wire.TrialKey{}, false
	}
	k, ok := e.next()
	if !ok {
		return k, false
	}
	t, _ := e.trial(k.Trial)
	return k, t.Initiator == e.cfg.Node
}

// tellHoldingOff tells the log, and who watches the view, when this node begins or ends to hold off; before is why it
// did when it told last.
func (e *Engine) tellHoldingOff(before string) (why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if why = e.holdsOff(); why == before {
		return why
	}
	if why != "" {
		e.deps.Log.Warn("this node begins nothing more by itself", "run", e.plan.Run, "reason", why)
	}
	e.bump()
	return why
}

// holdsOff is why this node begins nothing more by itself in a run that is not over, "" when it does not hold off; e.mu
// is held.
func (e *Engine) holdsOff() string {
	_, more := e.next()
	switch {
	case !more || !e.started || e.leased() || e.current != nil || !e.forsaken():
		return ""
	case e.endedAt != "":
		return "waiting for a controller: the run has ended at node " + e.endedAt
	}
	return "waiting for a controller: neither a controller nor a peer was heard for an hour"
}

// able returns why this node could not arm at present. An attempt that would fail
// here at once is not begun: after a reboot the radio may need a while, and
// until then one attempt after the other would be used up.
func (e *Engine) able(ctx context.Context, k wire.TrialKey) error {
	if err := e.fit(); err != nil {
		return err
	}
	e.mu.Lock()
	t, _ := e.trial(k.Trial)
	e.mu.Unlock()
	if _, err := e.findRadio(ctx, t.Radio); err != nil {
		return err
	}
	return e.endIfRestoredByHand(ctx)
}

// next is the first trial of the shard in the schedule's order that is neither
// accepted nor out of attempts; e.mu is held.
func (e *Engine) next() (wire.TrialKey, bool) {
	if e.plan == nil {
		return wire.TrialKey{}, false
	}
	for _, t := range e.plan.Trials {
		attempt, more := verdict.Next(e.plan.AttemptsMax, e.verdicts[t.Number])
		if more && e.plan.Shard.Has(t.Number) {
			return wire.TrialKey{Trial: t.Number, Attempt: attempt}, true
		}
	}
	return wire.TrialKey{}, false
}
