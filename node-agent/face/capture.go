package face

import (
	"context"
	"errors"

	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/capture"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// capture begins a capture of what the privileged half's sockets get: on the
// interface under test and, where a flow ends at this node and a routing daemon
// holds or carries data, on that daemon's device too.
func (f *Face) capture(ctx context.Context, run string, k wire.TrialKey, t wire.Trial,
	flows []wire.Flow) (trial.Capture, error) {
	// No attempt of a run is armed twice: one that is there is of a former run of that name, whose archive was deleted.
	if err := f.stored.Remove(run, k); err != nil {
		return nil, err
	}
	want := host.Packets{Interface: f.cfg.Interface, SnapBytes: t.Capture.SnapBytes}
	ends := false
	for _, flow := range flows {
		want.Ports = append(want.Ports, flow.Port)
		ends = ends || flow.From == f.cfg.Node || flow.To == f.cfg.Node
	}
	under, err := f.point(ctx, want)
	if err != nil {
		return nil, err
	}
	points := []capture.Point{under}
	if want.Above = ends && t.Routing.HoldsData(); want.Above {
		above, err := f.point(ctx, want)
		if err != nil {
			return nil, errors.Join(err, under.Frames.Close())
		}
		points = append(points, above)
	}
	// A typed nil would not be nil to the engine.
	c, err := capture.Start(capture.Options{
		Path: f.stored.Path(run, k), Points: points, SnapBytes: t.Capture.SnapBytes,
		Offloads: f.reader.Offloads(), Version: "fieldmesh-agent " + version.String(),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (f *Face) point(ctx context.Context, want host.Packets) (capture.Point, error) {
	frames, filter, err := f.host.Packets(ctx, want)
	return capture.Point{Frames: frames, Interface: filter.Interface, Filter: filter.Text, BareIP: filter.BareIP}, err
}

// Capture reads part of an attempt's capture.
func (f *Face) Capture(run string, k wire.TrialKey, offset int64, limit int) ([]byte, int64, error) {
	return f.stored.Read(run, k, offset, limit)
}

// Load passes a plan on. Captures of runs that are over go. Those of others wait for their controller, which may have
// all records and not yet the captures.
func (f *Face) Load(ctx context.Context, p api.Peer, plan wire.RunPlan) (wire.CampaignView, error) {
	if err := f.possible(plan); err != nil {
		return wire.CampaignView{}, err
	}
	v, err := f.engine.Load(ctx, p.Name, plan)
	if _, full := errors.AsType[*spool.FullError](err); full { // not even for the note that the run goes on
		return v, wire.Errorf(wire.CodeDiskFull, "no room to take up run %s: %v", plan.Run, err)
	}
	if err != nil {
		return v, err
	}
	return v, f.stored.ForgetWhere(func(run string) bool { return run != plan.Run && f.spool.IsOver(run) })
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

// events opens what the privileged half has the kernel report connections.
func (f *Face) events(ctx context.Context) (measure.Events, error) {
	r, err := f.host.TCPEvents(ctx)
	if err != nil {
		return nil, err // a typed nil would not be nil to the engine
	}
	return r, nil
}
