package trial

import (
	"context"
	"errors"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// readyEvery is how often routing is checked, and the peers are asked, while arming waits for it.
	readyEvery = 250 * time.Millisecond
	// notLooked is what a node waits for before it has looked once.
	notLooked = "its routing has not been looked at yet"
)

// errRoutingNotReady says that arming waited for routing in vain.
const errRoutingNotReady = coded(wire.ReasonRoutingNotReady)

// followReadiness looks at this node's own routing until it has what the trial needs, and records how long that took.
func (a *attempt) followReadiness() error {
	if a.routing == nil {
		return nil
	}
	need, err := needs.OfRouting(a.trial, a.engine.cfg.Node, a.engine.meshAddr)
	if err != nil || need.Nothing() {
		return err
	}
	a.setWaiting(notLooked)
	began := a.engine.deps.Clock.BootNs()
	a.looking.Add(1)
	go func() {
		defer a.looking.Done()
		if err := a.lookUntilReady(need, began); err != nil {
			a.cancel(err)
		}
	}()
	return nil
}

func (a *attempt) lookUntilReady(need needs.Routing, beganNs int64) error {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		missing, err := a.routing.Missing(a.ctx, need.Routes, need.Neighbor)
		switch {
		case a.ctx.Err() != nil:
			return nil
		case err != nil: // a daemon that is gone ends the attempt by itself
			missing = err.Error()
		case missing == "":
			now := a.engine.deps.Clock.BootNs()
			took := float64(now-beganNs) / 1e9
			e := &wire.RoutingEvent{Report: "routing_ready_s", AtBootNs: now, Value: &took, Note: need.String()}
			err := a.engine.record(a.key, e)
			a.setWaiting("")
			return err
		}
		a.setWaiting(missing)
		select {
		case <-ticker.C:
		case <-a.ctx.Done():
			return nil
		}
	}
}

func (a *attempt) setWaiting(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = what
}

// waitsFor is what this node's routing still lacks, "" for nothing.
func (a *attempt) waitsFor() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// awaitRouting has the initiator wait until routing has what the trial needs,
// here and at every peer: only then is it armed, and the gate looked at.
func (a *attempt) awaitRouting(ctx context.Context, returns bool) error {
	e := a.engine
	limit := a.trial.Routing.ReadyLimit()
	if a.routing == nil || limit == 0 || a.trial.Initiator != e.cfg.Node {
		return nil
	}
	peers, err := a.peers()
	if err != nil {
		return err
	}
	if !returns {
		a.tellWait("waiting for routing", false)
	}
	joins := func(they bool) {
		for _, p := range peers {
			p.joins = they
		}
	}
	if !e.leaseHeld() { // the peers arm meanwhile, and routing has its time from then on
		joins(true)
		if err := a.askToArm(ctx, peers, max(limit, lateJoin)); err != nil {
			return err
		}
		joins(false)
	}
	until := e.deps.Clock.BootNs() + limit.Nanoseconds()
	err = a.exchangeGo(ctx, wire.GoArm, peers, until)
	for err == nil && a.waitsFor() != "" && e.deps.Clock.BootNs() < until && ctx.Err() == nil {
		_ = pause.For(ctx, readyEvery)
	}
	switch own := a.waitsFor(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, errGoUnanswered):
		return err
	case err != nil || own != "":
		return faultf(wire.ReasonRoutingNotReady, "after %.0f s %s", limit.Seconds(), lacking(e.cfg.Node, own, peers))
	}
	a.peersReady = true
	return nil
}

// lacking says who waits for what.
func lacking(node, own string, peers []*peer) string {
	var out []string
	if own != "" {
		out = append(out, node+" lacks "+own)
	}
	for _, p := range peers {
		switch {
		case p.acked:
		case p.waiting != "":
			out = append(out, p.name+" lacks "+p.waiting)
		default:
			out = append(out, p.name+" does not answer")
		}
	}
	return strings.Join(out, "; ")
}
