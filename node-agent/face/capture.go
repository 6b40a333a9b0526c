package face

import (
	"context"

	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/capture"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// capture begins a capture through a socket of the privileged half's.
func (f *Face) capture(ctx context.Context, run string, k wire.TrialKey, plan wire.CapturePlan, flows []wire.Flow) (trial.Capture, error) {
	want := host.Packets{Interface: f.cfg.Interface, SnapBytes: plan.SnapBytes}
	for _, flow := range flows {
		want.Ports = append(want.Ports, flow.Port)
	}
	sock, filter, err := f.host.Packets(ctx, want)
	if err != nil {
		return nil, err
	}
	// A typed nil would not be nil to the engine.
	c, err := capture.Start(sock, capture.Options{
		Path: f.stored.Path(run, k), Interface: f.cfg.Interface, SnapBytes: plan.SnapBytes, Filter: filter.Text,
		Offloads: f.reader.Offloads(), Version: "fieldmesh-agent " + version.String(),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Capture reads part of an attempt's capture.
func (f *Face) Capture(run string, k wire.TrialKey, offset int64, limit int) ([]byte, int64, error) {
	return f.stored.Read(run, k, offset, limit)
}

// Load passes a plan on. Captures of other runs are given up with those runs.
func (f *Face) Load(ctx context.Context, p api.Peer, plan wire.RunPlan) (wire.CampaignView, error) {
	v, err := f.engine.Load(ctx, p.Name, plan)
	if err != nil {
		return v, err
	}
	return v, f.stored.KeepOnly(plan.Run)
}

// Verdicts passes final verdicts on. The controller decides when it has what
// it wants of an attempt, so its capture has done its service.
func (f *Face) Verdicts(ctx context.Context, p api.Peer, run string, vs []wire.Verdict) (wire.CampaignView, error) {
	view, err := f.engine.Verdicts(ctx, p.Name, run, vs)
	if err != nil {
		return view, err
	}
	for _, v := range vs {
		if !v.Final {
			continue
		}
		if err := f.stored.Remove(run, v.TrialKey); err != nil {
			return view, err
		}
	}
	return view, nil
}

// events opens what the privileged half has the kernel tell of connections.
func (f *Face) events(ctx context.Context) (measure.Events, error) {
	r, err := f.host.TCPEvents(ctx)
	if err != nil {
		return nil, err // a typed nil would not be nil to the engine
	}
	return r, nil
}
