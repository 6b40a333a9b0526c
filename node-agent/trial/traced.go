package trial

import (
	"context"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// traceEvents has the kernel report what the flows' connections do about losses.
// Where it cannot, samples have to show it; a record says why, and every event
// says by which of the two it was seen.
func (a *attempt) traceEvents(ctx context.Context) (measure.Events, error) {
	e := a.engine
	flows := needs.TracedFlows(a.flows, e.cfg.Node)
	if len(flows) == 0 || e.deps.Events == nil {
		return nil, nil
	}
	trace := change.TCPEvents{Flows: flows}
	applied, err := e.deps.Host.Apply(ctx, "trial", []change.Change{trace})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	sampled := func(level string) (measure.Events, error) {
		text := fmt.Sprintf("events of TCP are told from samples: %v", err)
		return nil, e.record(a.key, &wire.Event{Level: level, Text: text})
	}
	if err != nil {
		return sampled("info")
	}
	for i := range applied {
		if err := e.record(a.key, &applied[i]); err != nil {
			return nil, err
		}
	}
	a.needs = append(a.needs, trace.String())
	traced, err := e.deps.Events(ctx)
	if err != nil {
		return sampled("warning")
	}
	return traced, nil
}
