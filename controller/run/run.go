// Package run drives a campaign through its schedule: it checks the fleet,
// arms the nodes, lets the car drive, collects every record, judges, and
// keeps going until every trial is accepted or out of attempts. What it
// decides is in the archive before it acts on it, so that a controller that is
// killed goes on where it was. How nodes are reached and how records are kept
// are other packages' business.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	leaseTTL   = 30 * time.Second
	leaseEvery = 10 * time.Second
	// clockExchanges per node before and after a trial; the fastest counts.
	clockExchanges = 8
)

// Field is where the car drives. On a road its methods return at once: the
// driver, not the program, moves the car.
type Field interface {
	// Place brings the car to its start; it returns when GPS shows it there.
	Place(ctx context.Context, t wire.Trial, attempt int) error
	// Drive lets the car set off.
	Drive(ctx context.Context) error
	// Settle ends the drive and tells what only the field knows of the window
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

// named says in which lane an error was met, where there are several.
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
	Watch   func(Progress) // called with every step; must not block
	Log     *slog.Logger

	mu      sync.Mutex
	taken   map[int]bool  // trials that a lane is at
	words   []wire.Record // people's, still to be heeded
	epoch   string
	seq     uint64
	sealing sync.WaitGroup
	sealErr error
	looking looking
	freed   chan struct{} // closed when a lane is done with its trial; made by Run

	lookEvery time.Duration // how often a trial under way is looked at; set by Run
}

// Progress is one step of a run, for a person to see.
type Progress struct {
	Lane    string
	Trial   *wire.Trial
	Attempt int
	Phase   string // placing | arming | armed | running | settling | judged | waiting | looked
	Detail  string
	Live    *wire.Live
	Verdict *wire.Verdict
	Decided int // trials accepted or given up so far
	Total   int
}

// Run drives the schedule to its end. On an error, or when ctx ends, nothing
// that was recorded is lost: run again with the same archive.
func (r *Runner) Run(ctx context.Context) error {
	return r.work(ctx, (*openLane).drive)
}

// work brings every lane to one standing with the archive, and then does what
// is to be done in each.
func (r *Runner) work(ctx context.Context, do func(*openLane, context.Context) error) error {
	r.taken, r.freed = map[int]bool{}, make(chan struct{})
	r.lookEvery = cmp.Or(r.lookEvery, time.Second)
	r.epoch = newEpoch()
	lanes, err := r.openLanes(ctx)
	defer func() {
		for _, l := range lanes {
			l.close()
		}
	}()
	if err != nil {
		return err
	}
	if err := r.buryOrphans(); err != nil {
		return err
	}
	err = together(ctx, lanes, func(ctx context.Context, l *openLane) error { return do(l, ctx) })
	r.mu.Lock()
	r.heed() // what was said while the last trial ended: a resumed run goes by it
	r.mu.Unlock()
	r.sealing.Wait()
	return errors.Join(err, r.sealErr)
}

// together runs f for every lane at once; the first error ends the others.
func together(ctx context.Context, lanes []*openLane, f func(context.Context, *openLane) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range lanes {
		g.Go(func() error {
			if err := f(ctx, l); err != nil {
				return l.named(err)
			}
			return nil
		})
	}
	return g.Wait()
}

// openLanes opens every lane and brings its nodes and the archive to one
// standing. What it returns is to be closed even when it fails.
func (r *Runner) openLanes(ctx context.Context) ([]*openLane, error) {
	var open []*openLane
	for _, lane := range r.Lanes {
		l, err := r.openLane(ctx, lane)
		if err != nil {
			return open, lane.named(err)
		}
		open = append(open, l)
	}
	return open, together(ctx, open, func(ctx context.Context, l *openLane) error { return l.catchUp(ctx) })
}

// buryOrphans decides the attempts that the archive has records of and no node
// knows any more: the field that they were driven in is gone.
func (r *Runner) buryOrphans() error {
	decided := map[wire.TrialKey]bool{}
	for _, v := range r.Archive.Decisions() {
		decided[v.TrialKey] = true
	}
	attempts, err := r.Archive.Trials()
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if decided[a.TrialKey] {
			if !a.Sealed {
				r.seal(a.TrialKey)
			}
			continue
		}
		gone := verdict.Interruption{Code: wire.ReasonControllerRestarted, Text: "the controller ended during the attempt, and no node knows of it"}
		v := wire.Verdict{TrialKey: a.TrialKey, Outcome: wire.Interrupted, Final: true, Reason: gone.Reason()}
		if err := r.Archive.Decide(v); err != nil {
			return err
		}
		r.seal(a.TrialKey)
	}
	return nil
}

// drive works one lane until the schedule has nothing left for it.
func (l *openLane) drive(ctx context.Context) error {
	for ctx.Err() == nil {
		t, attempt, wait, err := l.r.take()
		if err != nil {
			return err
		}
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
			}
			continue
		}
		if attempt == 0 {
			break
		}
		err = l.attempt(ctx, t, attempt)
		l.r.release(t.Number)
		if err != nil {
			return err
		}
		if err := l.catchUp(ctx); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.end(ctx)
}

// take picks the first trial that is neither decided nor being driven; attempt
// is 0 when there is none. While it depends on what other lanes are at whether
// any is left, the caller is to wait.
func (r *Runner) take() (t wire.Trial, attempt int, wait <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heed()
	verdicts := r.verdicts()
	if err := r.look(verdicts); err != nil {
		return wire.Trial{}, 0, nil, err
	}
	for _, t := range r.Plan.Trials {
		attempt, more := verdict.Next(r.Plan.AttemptsMax, verdicts[t.Number])
		if !more || r.taken[t.Number] || !r.Archive.Drives(t) {
			continue
		}
		if r.early(t, verdicts) {
			return wire.Trial{}, 0, r.freed, nil
		}
		r.taken[t.Number] = true
		return t, attempt, nil, nil
	}
	return wire.Trial{}, 0, nil, nil
}

// verdicts are the decisions on each trial.
func (r *Runner) verdicts() map[int][]wire.Verdict {
	out := map[int][]wire.Verdict{}
	for _, v := range r.Archive.Decisions() {
		out[v.Trial] = append(out[v.Trial], v)
	}
	return out
}

func (r *Runner) release(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, number)
	close(r.freed)
	r.freed = make(chan struct{})
}

// Counts tells how many of the trials that are driven here are accepted, given
// up, and left.
func (r *Runner) Counts() (accepted, givenUp, left int) {
	verdicts := r.verdicts()
	for _, t := range r.Plan.Trials {
		if !r.Archive.Drives(t) {
			continue
		}
		_, more := verdict.Next(r.Plan.AttemptsMax, verdicts[t.Number])
		switch {
		case slices.ContainsFunc(verdicts[t.Number], func(v wire.Verdict) bool { return v.Outcome == wire.Accepted }):
			accepted++
		case more:
			left++
		default:
			givenUp++
		}
	}
	return accepted, givenUp, left
}

func (r *Runner) show(p Progress) {
	if r.Watch == nil {
		return
	}
	accepted, givenUp, left := r.Counts()
	p.Decided, p.Total = accepted+givenUp, accepted+givenUp+left
	r.Watch(p)
}

// own appends a record of the controller's own, a clock estimate for instance.
func (r *Runner) own(k wire.TrialKey, tBootNs int64, b wire.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	line, err := wire.Record{Header: wire.Header{Node: "controller", Epoch: r.epoch, Seq: r.seq, TBootNs: tBootNs,
		Run: r.Plan.Run, Trial: k.Trial, Attempt: k.Attempt}, Body: b}.MarshalJSON()
	if err != nil {
		return err
	}
	return r.Archive.Append("controller", [][]byte{line})
}

// seal closes an attempt in the archive beside the next trial.
func (r *Runner) seal(k wire.TrialKey) {
	r.sealing.Add(1)
	go func() {
		defer r.sealing.Done()
		if err := r.Archive.Seal(k.Trial, k.Attempt); err != nil {
			r.mu.Lock()
			r.sealErr = errors.Join(r.sealErr, fmt.Errorf("seal trial %d attempt %d: %w", k.Trial, k.Attempt, err))
			r.mu.Unlock()
		}
	}()
}
