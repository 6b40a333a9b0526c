package trial

import (
	"context"
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// edge samples the flows' sockets at an edge of the window, and records when
// that was done. The samples bear the time at which the kernel had answered: a
// node that was held up shows how late it is.
func (a *attempt) edge(name string, dueNs int64) error {
	bodies, missed, err := a.sockets.Edge(name, a.engine.deps.Clock.BootNs())
	if err != nil {
		return faultf(wire.ReasonEdge, "sample sockets at the window's %s: %w", name, err)
	}
	now := a.engine.deps.Clock.BootNs()
	for _, b := range bodies {
		if err := a.emit(now, b); err != nil {
			return err
		}
	}
	return a.emit(now, &wire.Edge{Edge: name, DueBootNs: dueNs, LateMs: lateMs(now, dueNs), Sockets: len(bodies),
		Unknown: missed.Unknown, Unwatched: missed.Unwatched})
}

func lateMs(nowNs, dueNs int64) float64 { return float64(nowNs-dueNs) / 1e6 }

// guard has the kernel keep from the flows' ports what is not of the plan.
// Where it cannot, a record says why, and strangers are found by their sockets.
func (a *attempt) guard(ctx context.Context) error {
	e := a.engine
	own, flows, err := a.flowEnds()
	if err != nil || len(flows) == 0 {
		return err
	}
	change := host.Admission{Own: own, Flows: flows}
	applied, err := e.deps.Host.Apply(ctx, "trial", []host.Change{change})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		text := fmt.Sprintf("admission: none; strangers at the flows' ports are told by their sockets, and "+
			"what this node's firewall stops is not told: %v", err)
		return e.record(a.key, &wire.Event{Level: "warning", Text: text})
	}
	for i := range applied {
		if err := e.record(a.key, &applied[i]); err != nil {
			return err
		}
	}
	a.needs = append(a.needs, change.String())
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
func (a *attempt) tellFiltered(edge *wire.Edge, filtered []host.Filtered) {
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
func (a *attempt) flowEnds() (own netip.Addr, ends []host.FlowEnd, err error) {
	here := a.engine.cfg.Node
	if own, err = a.engine.meshAddr(here); err != nil {
		return own, nil, err
	}
	for _, f := range a.flows {
		client, server := f.From, f.To
		if f.Reverse {
			client, server = server, client
		}
		end := host.FlowEnd{Port: f.Port, ClientPort: f.ClientPort, Streams: max(f.Streams, 1), Server: here == server}
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
