package face

import (
	"context"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/routing"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
)

// routing watches the routing daemon that the privileged half has started.
func (f *Face) routing(ctx context.Context, protocol string, gone func(error)) (trial.Routing, error) {
	return routing.Begin(ctx, routing.Target{Protocol: protocol, Socket: change.DaemonSocket(f.cfg.HostDir(), protocol),
		Interface: f.cfg.Interface, BootNs: f.clk.BootNs}, gone)
}
