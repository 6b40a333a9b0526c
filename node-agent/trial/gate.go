package trial

import (
	"context"
	"errors"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/trial/gate"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// errGateTimeout says that the gate did not open in time. The attempt is rejected
// for it: a covariate was never right.
const errGateTimeout = coded(wire.ReasonGateTimeout)

// initiate waits for the gate and then sends GO until every peer has answered.
func (a *attempt) initiate() {
	e := a.engine
	g := gate.New(a.trial, e.deps.Clock.BootNs())
	peers, err := a.peers()
	if err == nil {
		err = a.readyPeers(peers, time.Duration(a.trial.Gate.TimeoutS*float64(time.Second)))
	}
	if err != nil {
		a.giveUp(err)
		return
	}
	for {
		fix, _ := e.deps.GPS.Last()
		now := e.deps.Clock.BootNs()
		open, detail := g.Open(now, fix)
		if open {
			break
		}
		a.tellWait(detail, g.Away())
		if now > g.LimitNs() {
			a.cancel(gateTimeout(g, now, detail))
			return
		}
		if pause.For(a.ctx, g.ClosedFor(now, restInterval)) != nil {
			return
		}
	}
	if err := a.sendGo(peers); err != nil {
		a.giveUp(err)
	}
}

// gateTimeout is why an attempt ends whose gate did not open in time. A car that is held at its start has not driven
// for it: its peers wait no longer, and none of the trial's attempts is used up.
func gateTimeout(g *gate.Gate, nowNs int64, detail string) error {
	if g.Held(nowNs) {
		return verdict.Interruption{Code: wire.ReasonGateTimeout, Text: "the car was held at its start: " + detail}
	}
	return faultf(wire.ReasonGateTimeout, "the gate did not open within %.0f s: %s", g.WithinS(), detail)
}

// comesBack has the initiator arm when its car may have yet to come back.
func (a *attempt) comesBack() *gate.Back {
	e := a.engine
	b := &gate.Back{NowNs: e.deps.Clock.BootNs, Tell: a.tellWait,
		Fix: func() wire.GPS { fix, _ := e.deps.GPS.Last(); return fix },
		Log: e.deps.Log.With("trial", a.key.Trial, "attempt", a.key.Attempt)}
	if a.trial.Initiator == e.cfg.Node {
		b.Gate = gate.New(a.trial, e.deps.Clock.BootNs())
	}
	return b
}

func isNotReady(err error) bool {
	var silent verdict.Interruption // a peer is
	return errors.Is(err, errRoutingNotReady) || errors.As(err, &silent) && silent.Code == wire.ReasonGoUnanswered
}

// giveUp ends the attempt for a reason, unless it has been ended already.
func (a *attempt) giveUp(err error) {
	if !errors.Is(err, context.Canceled) {
		a.cancel(err)
	}
}

// tellWait tells what an attempt that is not under way waits for, and whether that is the car at its start.
func (a *attempt) tellWait(detail string, toStart bool) {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if (a.detail != detail || a.toStart != toStart) && a.waits() {
		a.detail, a.toStart = detail, toStart
		e.bump()
	}
}

// waits reports whether the attempt is not under way yet; its engine's mu is held.
func (a *attempt) waits() bool { return a.state == wire.StateArmed || a.state == wire.StateLoaded }
