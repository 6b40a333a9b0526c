// Package run drives a campaign through its schedule: it checks the fleet,
// arms the nodes, lets the car drive, collects every record, judges, and
// keeps going until every trial is accepted or out of attempts. What is done
// next is decided by the package engine; here it is done. What is decided is in
// the archive before it is acted on, so that a controller that is killed goes
// on where it was. How nodes are reached and how records are kept are other
// packages' business.
package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/attached"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// clockExchanges per node before and after a trial; the fastest counts.
const clockExchanges = 8

// Field is where the car drives. On a road its methods return at once: the
// driver, not the program, moves the car.
type Field interface {
	// Place brings the car to its start; it returns when GPS shows it there.
	Place(ctx context.Context, t wire.Trial, attempt int) error
	// Drive lets the car set off.
	Drive(ctx context.Context) error
	// Settle ends the drive and returns what only the field knows of the window
	// [openBootNs, closeBootNs]; both are 0 when it never opened.
	Settle(ctx context.Context, openBootNs, closeBootNs int64) ([]wire.Record, error)
}

// Road is a Field in which a person drives.
type Road struct{}

// Place returns at once: the gate waits for the car.
func (Road) Place(context.Context, wire.Trial, int) error { return nil }

// Drive returns at once.
func (Road) Drive(context.Context) error { return nil }

// Settle knows nothing that the nodes have not recorded.
func (Road) Settle(context.Context, int64, int64) ([]wire.Record, error) { return nil, nil }

// Lane is one set of nodes with the field that they are in. Lanes share the
// schedule; a road has one.
type Lane struct {
	Name  string
	Nodes map[string]*fleet.Client
	Field Field
}

// named adds to an error the lane in which it was met, where there are several.
func (l *Lane) named(err error) error {
	if l.Name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", l.Name, err)
}

// Runner drives one run.
type Runner struct {
	Archive *archive.Archive
	Plan    wire.RunPlan
	Lanes   []*Lane
	Watch   func(Progress) // called with every step, by several goroutines; must not block
	Log     *slog.Logger

	named     atomic.Bool   // whether a note that came has a photo or recording
	lookEvery time.Duration // how often a trial under way is looked at; 0: every second
}

// Progress is one step of a run, for a person to see.
type Progress struct {
	Lane    string
	Trial   *wire.Trial
	Attempt int
	Phase   string // placing | arming | armed | running | settling | judged | waiting | looked | catching up | fetching
	Detail  string
	Live    *wire.Live
	Verdict *wire.Verdict
	Mbps    *float64 // what an accepted attempt measured; nil: it measures no TCP
	Decided int      // trials accepted or given up so far
	Total   int
}

// Run drives the schedule to its end. On an error, or when ctx ends, nothing
// that was recorded is lost: run again with the same archive.
func (r *Runner) Run(ctx context.Context) error {
	if !r.Archive.Empty() {
		r.named.Store(true) // it may be
	}
	return r.work(ctx, false)
}

// Attachments fetches the photos and recordings of notes when the run is over.
func (r *Runner) Attachments(ctx context.Context) error {
	if !r.named.Load() {
		return nil
	}
	return r.attachments(ctx, func(string) bool { return true })
}

// attachments fetches them from some nodes, when no attempt is under way any more. What does not come is told, and may
// be fetched later. An archive that was finished is finished again.
func (r *Runner) attachments(ctx context.Context, which func(node string) bool) error {
	notes, err := attached.Notes(r.Archive)
	if err != nil || len(notes) == 0 {
		return err
	}
	finished := r.Archive.Finished()
	for _, lane := range r.Lanes {
		if r.Watch != nil {
			r.Watch(r.counted(Progress{Lane: lane.Name, Phase: "fetching", Detail: fmt.Sprintf(
				"photos and recordings, at most %.0f s", attached.Turn.Seconds())}))
		}
		nodes := maps.Clone(lane.Nodes)
		maps.DeleteFunc(nodes, func(name string, _ *fleet.Client) bool { return !which(name) })
		for _, l := range attached.Fetch(ctx, r.Archive, notes, nodes) {
			r.Log.Warn("photos and recordings: fieldmesh pull "+r.Plan.Run+" asks for them again",
				"lacking", l.String())
		}
		if ctx.Err() != nil {
			break
		}
	}
	if finished {
		return r.Archive.Finish()
	}
	return nil
}

// config is the run as its archive holds it.
func (r *Runner) config(pullOnly bool) engine.Config {
	info := r.Archive.Info()
	cfg := engine.Config{Plan: r.Plan, Has: info.Shard.Has,
		Emulated: info.Place == archive.PlaceRehearsal, Stopping: info.Enough,
		Decisions: slices.Clone(r.Archive.Decisions()), PullOnly: pullOnly, LookEvery: cmp.Or(r.lookEvery, time.Second)}
	if stop := r.Archive.Stopped(); stop != nil {
		cfg.Stopped = stop.Blocks
	}
	for _, l := range r.Lanes {
		cfg.Workers = append(cfg.Workers, engine.Worker{Nodes: names(l.Nodes)})
	}
	return cfg
}

// verdicts are the decisions on each trial.
func (r *Runner) verdicts() map[int][]wire.Verdict {
	out := map[int][]wire.Verdict{}
	for _, v := range r.Archive.Decisions() {
		out[v.Trial] = append(out[v.Trial], v)
	}
	return out
}

// Counts returns how many of the trials that are driven here are accepted, given
// up, and left.
func (r *Runner) Counts() (accepted, givenUp, left int) {
	verdicts := r.verdicts()
	for _, t := range r.Plan.Trials {
		if !r.Archive.Drives(t) {
			continue
		}
		_, more := verdict.Next(r.Plan.AttemptsMax, verdicts[t.Number])
		switch {
		case isAccepted(verdicts[t.Number]):
			accepted++
		case more:
			left++
		default:
			givenUp++
		}
	}
	return accepted, givenUp, left
}

func isAccepted(vs []wire.Verdict) bool {
	return slices.ContainsFunc(vs, func(v wire.Verdict) bool { return v.Outcome == wire.Accepted })
}

// counted adds to a step how far the run is.
func (r *Runner) counted(p Progress) Progress {
	accepted, givenUp, left := r.Counts()
	p.Decided, p.Total = accepted+givenUp, accepted+givenUp+left
	return p
}
