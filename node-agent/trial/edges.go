package trial

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// edge samples the flows' sockets at an edge of the window, and records when that was done. The samples bear the time
// at which the kernel had answered: a node that was held up shows how late it is.
func (a *attempt) edge(name string, dueNs int64) error {
	bodies, missed, err := a.sockets.Edge(name, a.engine.deps.Clock.BootNs())
	if err != nil {
		return faultf(wire.ReasonEdge, "sample sockets at the window's %s: %w", name, err)
	}
	now := a.engine.deps.Clock.BootNs()
	edge := &wire.Edge{Edge: name, DueBootNs: dueNs, LateMs: lateMs(now, dueNs), Sockets: len(bodies),
		Unknown: missed.Unknown, Unwatched: missed.Unwatched}
	early := a.early
	a.early = nil
	if early != nil && early.answeredNs <= dueNs && early.has(bodies) {
		edge.EarlyMs = new(lateMs(dueNs, early.askedNs))
		for _, b := range early.samples {
			if err := a.emit(early.askedNs, b); err != nil {
				return err
			}
		}
	}
	for _, b := range bodies {
		if err := a.emit(now, b); err != nil {
			return err
		}
	}
	return a.emit(now, edge)
}

// How shortly before an edge the sockets are sampled again and again. A node that
// is held up over the edge for twice its limit then still has a sample within it.
const (
	approachTime  = 60 * time.Millisecond
	approachEvery = 2 * time.Millisecond
)

// early is what the sockets had before an edge: not before they were asked, and not after it.
type early struct {
	askedNs, answeredNs int64
	samples             []wire.Body
}

// has reports whether every data socket that an edge found alive was sampled
// before, too: of one that was not, nothing is known but at the edge's own time.
func (e *early) has(atEdge []wire.Body) bool {
	seen := map[uint64]bool{}
	for _, b := range e.samples {
		if s, ok := b.(*wire.TCPSample); ok {
			seen[s.Cookie] = true
		}
	}
	for _, b := range atEdge {
		if s, ok := b.(*wire.TCPSample); ok && s.Stream != nil && !s.Stranger && s.State != "CLOSE" && !seen[s.Cookie] {
			return false
		}
	}
	return true
}

// approach samples the sockets when an edge is near, and returns how long to wait until that is due again; 0: the edge
// has come. Of the samples the last are kept that the kernel had answered before the edge: its own may come late.
func (a *attempt) approach(name string, dueNs int64) time.Duration {
	clock := a.engine.deps.Clock
	asked := clock.BootNs()
	if left := time.Duration(dueNs - asked); left > approachTime || left <= 0 {
		return max(left-approachTime, min(left, 0))
	}
	samples, err := a.sockets.Before(name)
	now := clock.BootNs()
	if err == nil && now <= dueNs { // the edge itself tells an error
		a.early = &early{askedNs: asked, answeredNs: now, samples: samples}
	}
	return min(max(time.Duration(dueNs-now), 0), approachEvery)
}

func lateMs(nowNs, dueNs int64) float64 { return float64(nowNs-dueNs) / 1e6 }

// guard has the kernel keep from the flows' ports what is not of the plan.
// Where it cannot, a record says why, and strangers are found by their sockets.
func (a *attempt) guard(ctx context.Context) error {
	own, flows, err := a.flowEnds()
	if err != nil || len(flows) == 0 {
		return err
	}
	return a.try(ctx, "trial", change.Admission{Own: own, Flows: flows}, "admission: none; strangers at the flows' "+
		"ports are told by their sockets, and what this node's firewall stops is not told")
}

// closeControl has the kernel keep the network under test from the agent's own
// port, where the plan gives the controller a link of its own.
func (a *attempt) closeControl(ctx context.Context) error {
	e := a.engine
	if e.plan.Control != wire.ControlOwn {
		return nil
	}
	own, err := e.meshAddr(e.cfg.Node)
	if err != nil {
		return err
	}
	return a.try(ctx, "run", change.ControlPort{Interface: e.cfg.Interface, Own: own, Port: e.cfg.ControlPort},
		"control port: the network under test reaches it, by TLS and known keys only")
}

// try makes a change without which the trial is right too; where it cannot be made, a record says what that means.
func (a *attempt) try(ctx context.Context, scope string, c change.Change, without string) error {
	e := a.engine
	applied, err := e.deps.Host.Apply(ctx, scope, []change.Change{c})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return e.record(a.key, &wire.Event{Level: "warning", Text: fmt.Sprintf("%s: %v", without, err)})
	}
	for i := range applied {
		if err := e.record(a.key, &applied[i]); err != nil {
			return err
		}
	}
	a.needs = append(a.needs, c.String())
	return nil
}

// clear destroys what sockets a former attempt has left at this one's ports and
// peers: one that an agent did not live to end.
func (a *attempt) clear(ctx context.Context) error {
	own, flows, err := a.flowEnds()
	if err != nil || len(flows) == 0 {
		return err
	}
	out, err := a.engine.deps.Host.Sever(ctx, host.Sever{Interface: a.engine.cfg.Interface, Own: own, Flows: flows})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return nil //nolint:nilerr // a host process that is away is told by the next call
	}
	if out.Error != "" {
		return fmt.Errorf("sockets_left: what a former attempt has left cannot be destroyed, and would send "+
			"in this window: %s; wait until it is gone, or use a kernel that can (CONFIG_INET_DIAG_DESTROY)", out.Error)
	}
	if out.Destroyed > 0 {
		text := fmt.Sprintf("sockets of a former attempt were still there, and are destroyed: %d", out.Destroyed)
		return a.engine.record(a.key, &wire.Event{Level: "warning", Text: text})
	}
	return nil
}

// sever destroys what sockets the attempt has left, and drops what packets wait
// here, so that nothing of it is in the air of the next window.
func (a *attempt) sever() error {
	e := a.engine
	own, flows, err := a.flowEnds()
	if err != nil || a.sockets == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	began := e.deps.Clock.BootNs()
	out, err := e.deps.Host.Sever(ctx, host.Sever{Interface: e.cfg.Interface, Own: own, Flows: flows})
	if err != nil {
		out.Error = err.Error()
	}
	if out.Error != "" {
		e.deps.Log.Warn("destroy the flows' sockets", "trial", a.key.Trial, "attempt", a.key.Attempt,
			"error", out.Error)
	}
	edge := &wire.Edge{Edge: "end", DueBootNs: began, LateMs: lateMs(e.deps.Clock.BootNs(), began),
		Sockets: out.Destroyed, Refused: out.Refused, Error: out.Error}
	a.tellFiltered(edge, out.Filtered)
	return a.emit(e.deps.Clock.BootNs(), edge)
}

// tellFiltered puts into the edge what this node's own packet filters stopped of
// the flows that end here, in the order of flowEnds.
func (a *attempt) tellFiltered(edge *wire.Edge, filtered []flows.Filtered) {
	if filtered == nil {
		return
	}
	edge.Filtered = new(uint64)
	for _, f := range a.flows {
		if here := a.engine.cfg.Node; f.From != here && f.To != here || len(filtered) == 0 {
			continue
		}
		*edge.Filtered += filtered[0].Packets
		if filtered[0].Wholly && edge.FilteredFlow == "" {
			edge.FilteredFlow = f.Name
		}
		filtered = filtered[1:]
	}
}

// flowEnds are the attempt's flows that end at this node.
func (a *attempt) flowEnds() (own netip.Addr, ends []flows.End, err error) {
	here := a.engine.cfg.Node
	if own, err = a.engine.meshAddr(here); err != nil {
		return own, nil, err
	}
	for _, f := range a.flows {
		client, server := f.From, f.To
		if f.Reverse {
			client, server = server, client
		}
		end := flows.End{Port: f.Port, ClientPort: f.ClientPort, Streams: max(f.Streams, 1), Server: here == server}
		switch here {
		case server:
			end.Peer, err = a.engine.meshAddr(client)
		case client:
			end.Peer, err = a.engine.meshAddr(server)
		default:
			continue
		}
		if err != nil {
			return own, nil, err
		}
		ends = append(ends, end)
	}
	return own, ends, nil
}

// flowAddresses are the mesh addresses of the plan's nodes.
func (e *Engine) flowAddresses(flows []wire.Flow) (map[string]netip.Addr, error) {
	out := map[string]netip.Addr{}
	for _, f := range flows {
		for _, node := range []string{f.From, f.To} {
			a, err := e.meshAddr(node)
			if err != nil {
				return nil, err
			}
			out[node] = a
		}
	}
	return out, nil
}
