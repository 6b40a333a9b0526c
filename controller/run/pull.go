package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Pulled is what a pull found at the nodes.
type Pulled struct {
	Away  map[string]error  // nodes that did not answer; nothing was judged while there are any
	Other map[string]string // nodes that hold another run by now: they were read and left as they are
	// nodes that hold another shard of this run by now: what they record is that shard's, and was not read
	Shard map[string]*wire.Shard
}

// Whole reports whether every node was read, and judged by what it recorded.
func (p Pulled) Whole() bool { return len(p.Away)+len(p.Other)+len(p.Shard) == 0 }

// Pull collects what the nodes have recorded, judges what they have done by
// themselves, and drives nothing. When no trial is left it ends the run, so
// that the nodes put everything back; otherwise it lets them go on. A node that
// does not answer within patience is away: the others are read all the same, unless the
// archive is finished, which could not be finished again by them. Last of all it fetches photos and recordings,
// also into an archive that is finished, and from nodes that hold another run.
func (r *Runner) Pull(ctx context.Context, patience time.Duration) (Pulled, error) {
	found := r.muster(ctx, patience)
	if err := ctx.Err(); err != nil {
		return found, context.Cause(ctx)
	}
	reached := func(node string) bool { return found.Away[node] == nil }
	var err error
	switch {
	case found.Whole():
		err = r.work(ctx, true)
	case !r.Archive.Finished():
		err = r.copyFrom(ctx, func(node string) bool { return reached(node) && found.Shard[node] == nil })
	}
	if _, _, left := r.Counts(); err != nil || left > 0 && r.Plan.Control == wire.ControlMesh {
		return found, err // its packets would be measured
	} else if left == 0 && found.Whole() {
		err = r.Archive.Finish()
	}
	return found, errors.Join(err, r.attachments(ctx, reached))
}

// Copy copies what the nodes have recorded up to now. It judges nothing and steers no node.
func (r *Runner) Copy(ctx context.Context) error {
	return r.copyFrom(ctx, func(string) bool { return true })
}

// copyFrom does so of some nodes, all at once.
func (r *Runner) copyFrom(ctx context.Context, which func(node string) bool) error {
	var errs []error
	for _, lane := range r.Lanes {
		l := &openLane{Lane: lane, s: &shell{Runner: r}}
		var names []string
		for name := range lane.Nodes {
			if which(name) {
				names = append(names, name)
			}
		}
		errs = append(errs, eachNamed(names, func(name string) error {
			return l.copyAll(ctx, name, lane.Nodes[name])
		}))
	}
	return errors.Join(errs...)
}

// muster asks every node whether it is there, and which run it holds.
func (r *Runner) muster(ctx context.Context, patience time.Duration) Pulled {
	found := Pulled{Away: map[string]error{}, Other: map[string]string{}, Shard: map[string]*wire.Shard{}}
	own := r.Archive.Info().Shard
	var mu sync.Mutex
	var asked sync.WaitGroup
	until := time.Now().Add(patience)
	for _, lane := range r.Lanes {
		for name, c := range lane.Nodes {
			asked.Go(func() {
				st, err := answer(ctx, c, until)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					found.Away[name] = err
				case st.Run != "" && st.Run != r.Plan.Run:
					found.Other[name] = st.Run
				case own != nil && st.Shard != nil && *st.Shard != *own:
					found.Shard[name] = st.Shard
				}
			})
		}
	}
	asked.Wait()
	return found
}

// answer is a node's first one, until then.
func answer(ctx context.Context, c *fleet.Client, until time.Time) (wire.NodeStatus, error) {
	for {
		st, err := c.Status(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(until) {
			return st, err
		}
		_ = pause.For(ctx, 500*time.Millisecond)
	}
}

// copyAll copies what a node has recorded up to now, without steering it, and confirms it: a run that the node
// does not hold any more is not driven, and its records would keep their room.
func (l *openLane) copyAll(ctx context.Context, name string, c source) error {
	at := l.s.Archive.Cursor(name)
	limit := collectLimit
	for {
		lines, next, err := l.copyRecords(ctx, name, c, at, &limit, 0)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			break
		}
		at = next
	}
	if at.Seq > 0 {
		l.confirmLast(ctx, name, c, at, false)
	}
	return nil
}

// Missing returns in words what keeps a pull from being whole; empty when nothing does.
func (p Pulled) Missing() string {
	var out []string
	for name, err := range p.Away {
		out = append(out, fmt.Sprintf("%s is away (%v)", name, err))
	}
	for name, held := range p.Other {
		out = append(out, fmt.Sprintf("%s holds run %s by now: what it has of this one was read, and nothing was "+
			"judged by it", name, held))
	}
	for name, held := range p.Shard {
		out = append(out, fmt.Sprintf("%s holds shard %s of the run by now, and was not read: when that one is "+
			"complete, fieldmesh run --resume collects what is missing", name, held))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
