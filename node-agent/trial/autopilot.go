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
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
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

// next is the first trial in the schedule's order that is neither accepted nor
// out of attempts; e.mu is held.
func (e *Engine) next() (wire.TrialKey, bool) {
	if e.plan == nil {
		return wire.TrialKey{}, false
	}
	for _, t := range e.plan.Trials {
		if attempt, more := verdict.Next(e.plan.AttemptsMax, e.verdicts[t.Number]); more {
			return wire.TrialKey{Trial: t.Number, Attempt: attempt}, true
		}
	}
	return wire.TrialKey{}, false
}
