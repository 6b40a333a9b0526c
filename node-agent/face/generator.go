package face

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/node-agent/traffic"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// generator starts iperf3 for trials, and tries it on its own.
type generator struct {
	traffic.Generator

	trying sync.Mutex // held while it is tried: a trial waits for the end of that
	proven program    // that was tried with success

	mu      sync.Mutex
	problem string // that the last try found
	running []*traffic.Process
}

// program tells one file of iperf3's from another in its place.
type program struct {
	changed time.Time
	bytes   int64
}

// Ready implements trial.Flows.
func (g *generator) Ready(f wire.Flow) error {
	g.trying.Lock()
	defer g.trying.Unlock()
	return g.Generator.Ready(f)
}

func (g *generator) Server(ctx context.Context, f wire.Flow, bind netip.Addr) (trial.Process, error) {
	return g.run(g.Generator.Server(ctx, f, bind))
}

func (g *generator) Client(ctx context.Context, f wire.Flow, from, to netip.Addr, variant string) (trial.Process,
	error) {
	patience := max(connectTimeout, time.Duration(f.DurationS*float64(time.Second)))
	return g.run(g.Generator.Client(ctx, f, from, to, variant, patience))
}

// run notes an iperf3 that has been started, for the time that it runs.
func (g *generator) run(p *traffic.Process, err error) (trial.Process, error) {
	if err != nil {
		return nil, err // a typed nil would not be nil to the engine
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = append(g.running, p)
	go func() {
		<-p.Done()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = slices.DeleteFunc(g.running, func(other *traffic.Process) bool { return other == p })
	}()
	return p, nil
}

// programs are those that run, which have the flows' sockets.
func (g *generator) programs() (out []*descriptor.Program) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.running {
		out = append(out, p.Program())
	}
	return out
}

// try tries iperf3 unless this very program has passed before. It reports
// whether it could: callers do not queue up.
func (g *generator) try(ctx context.Context) bool {
	if !g.trying.TryLock() {
		return false
	}
	defer g.trying.Unlock()
	var now program
	if info, err := os.Stat(g.Bin); err == nil {
		now = program{info.ModTime(), info.Size()}
	}
	if now != (program{}) && now == g.proven && g.Generator.Ready(wire.Flow{}) == nil {
		return true
	}
	g.proven = program{}
	err, problem := g.Try(ctx), ""
	switch {
	case ctx.Err() != nil: // broken off, which says nothing of iperf3
		return true
	case err != nil:
		problem = err.Error()
	default:
		g.proven = now
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem = problem
	return true
}

// found is what the last try found; empty when nothing is wrong or none was made.
func (g *generator) found() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.problem
}

// TryGenerator tries iperf3 over loopback; what was wrong is in Status.
func (f *Face) TryGenerator(ctx context.Context) error {
	if key, busy := f.engine.Attempt(); busy {
		return wire.Errorf(wire.CodeConflict, "trial %d is under way; another iperf3 would disturb it", key.Trial)
	}
	if !f.generator.try(ctx) {
		return wire.Errorf(wire.CodeConflict, "iperf3 is being tried already")
	}
	return ctx.Err()
}
