package trial

import (
	"context"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// traceEvents has the kernel report what the flows' connections do about losses.
// Where it cannot, samples have to show it; a record says why, and every event
// says by which of the two it was seen.
func (a *attempt) traceEvents(ctx context.Context) (measure.Events, error) {
	e := a.engine
	flows := tracedFlows(a.flows, e.cfg.Node)
	if len(flows) == 0 || e.deps.Events == nil {
		return nil, nil
	}
	trace := change.TCPEvents{Flows: flows}
	applied, err := e.deps.Host.Apply(ctx, "trial", []change.Change{trace})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, e.record(a.key, &wire.Event{Level: "info",
			Text: fmt.Sprintf("events of TCP are told from samples: %v", err)})
	}
	for i := range applied {
		if err := e.record(a.key, &applied[i]); err != nil {
			return nil, err
		}
	}
	a.needs = append(a.needs, trace.String())
	traced, err := e.deps.Events(ctx)
	if err != nil {
		return nil, e.record(a.key, &wire.Event{Level: "warning",
			Text: fmt.Sprintf("events of TCP are told from samples: %v", err)})
	}
	return traced, nil
}

// tracedFlows are a node's flows of TCP as its sockets show them.
func tracedFlows(flows []wire.Flow, node string) []change.TracedFlow {
	var out []change.TracedFlow
	for _, f := range flows {
		if f.Kind == "iperf3_tcp" && (node == f.Client() || node == f.Server()) {
			out = append(out, change.TracedFlow{Port: f.Port, ClientPort: f.ClientPort, Streams: f.Streams,
				Server: node == f.Server()})
		}
	}
	return out
}
