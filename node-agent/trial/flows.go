package trial

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// startServers starts those flows whose server is this node. That a client can be started later is checked here.
func (a *attempt) startServers() error {
	for _, f := range a.flows {
		if f.Timed() {
			continue
		}
		if node := a.engine.cfg.Node; node == f.Client() || node == f.Server() {
			if err := a.engine.deps.Flows.Ready(f); err != nil {
				return fmt.Errorf("flow %s: %w", f.Name, err)
			}
		}
		if f.Server() != a.engine.cfg.Node {
			continue
		}
		addr, err := a.engine.meshAddr(f.Server())
		if err != nil {
			return err
		}
		p, err := a.engine.deps.Flows.Server(a.ctx, f, addr)
		if err != nil {
			return fmt.Errorf("flow %s: %w", f.Name, err)
		}
		a.servers = append(a.servers, p)
	}
	return nil
}

func (e *Engine) meshAddr(node string) (netip.Addr, error) {
	n, ok := e.planNode(node)
	if !ok {
		return netip.Addr{}, fmt.Errorf("find address: the plan has no node %q", node)
	}
	p, err := netip.ParsePrefix(n.MeshPrefix)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find address of node %q: %w", node, err)
	}
	return p.Addr(), nil
}

// A flow warms the network up when it begins before the window does.
func warming(f wire.Flow) bool { return f.StartS < 0 }

func measuring(f wire.Flow) bool { return !warming(f) }

// startClients starts those flows whose client is this node, each at its time.
func (a *attempt) startClients(which func(wire.Flow) bool) []Process {
	var out []Process
	openNs := a.openNs // a further GO may move it while flows wait
	for _, f := range a.flows {
		if f.Timed() || f.Client() != a.engine.cfg.Node || !which(f) {
			continue
		}
		ctx, stop := context.WithCancelCause(a.ctx)
		p := &pendingClient{stop: stop, done: make(chan wire.Iperf3, 1)}
		out = append(out, p)
		go func() { defer stop(nil); p.done <- a.client(ctx, f, openNs+int64(f.StartS*1e9)) }()
	}
	return out
}

// client runs one flow's client from a moment of the boot clock. That it could not run is the flow's record, by which
// the attempt is judged. The end of ctx ends it: its time is over.
func (a *attempt) client(ctx context.Context, f wire.Flow, fromBootNs int64) wire.Iperf3 {
	fail := func(how string, err error) wire.Iperf3 {
		return wire.Iperf3{Flow: f.Name, Side: "client", Ended: how, Error: err.Error()}
	}
	if err := a.sleepUntil(fromBootNs); err != nil {
		return fail(wire.EndedTrial, err)
	}
	if ctx.Err() != nil {
		return fail(wire.EndedDeadline, context.Cause(ctx))
	}
	addr, err := a.engine.meshAddr(f.Server())
	if err != nil {
		return fail(wire.EndedUnstarted, err)
	}
	own, err := a.engine.meshAddr(a.engine.cfg.Node)
	if err != nil {
		return fail(wire.EndedUnstarted, err)
	}
	p, err := a.engine.deps.Flows.Client(a.ctx, f, own, addr, a.transport.Kernel)
	if err != nil {
		return fail(wire.EndedUnstarted, err)
	}
	defer context.AfterFunc(ctx, func() {
		if a.ctx.Err() == nil {
			p.Stop(context.Cause(ctx).Error())
		}
	})()
	now := a.engine.deps.Clock.BootNs()
	late := &wire.Edge{Edge: "start", Flow: f.Name, DueBootNs: fromBootNs, LateMs: lateMs(now, fromBootNs)}
	if err := a.emit(now, late); err != nil {
		a.cancel(err)
	}
	return p.Wait()
}

// pendingClient is a flow's client that may not have started yet.
type pendingClient struct {
	stop context.CancelCauseFunc
	done chan wire.Iperf3
}

func (p *pendingClient) Wait() wire.Iperf3 { return <-p.done }

func (p *pendingClient) Stop(reason string) { p.stop(errors.New(reason)) }

// endFlows waits for the flows' processes, not longer than flowGrace, and records how each ended.
func (a *attempt) endFlows(processes []Process) error {
	timer := time.AfterFunc(flowGrace, func() {
		for _, p := range processes {
			p.Stop("the window closed " + flowGrace.String() + " ago")
		}
	})
	defer timer.Stop()
	var err error
	for _, p := range processes {
		out := p.Wait()
		err = errors.Join(err, a.emit(a.engine.deps.Clock.BootNs(), &out))
	}
	return err
}
