package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/parts"
	"fieldmesh.dev/fieldmesh/controller/cmd/relay"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// partsMost is the most parts that a run is driven in. They are enough for the
// processors of a workstation to end at about the same time.
const partsMost = 32

// inParts is a run in virtual time that is driven in parts.
type inParts struct{ *parts.Parts }

// parts begins a run in parts, or finds those of the run that is to be resumed.
// It returns nil for a run that is driven whole.
func (f *rehearseFlags) parts(file string) (*parts.Parts, error) {
	if f.virtual.jobs < 0 {
		return nil, misused("--jobs %d: at least one is needed", f.virtual.jobs)
	}
	if f.resume == "" && f.virtual.jobs == 0 {
		return nil, nil
	}
	if f.shard != "" {
		return nil, misused("--shard %s: --jobs divides a run by itself; leave one of them out", f.shard)
	}
	if f.resume == "" {
		return f.beginParts(file)
	}
	p, err := f.begunParts()
	switch {
	case err != nil:
		return nil, err
	case p != nil && len(f.retry) > 0:
		return nil, misused("--retry: run %s is still in parts; resume it first", p.Name)
	case p == nil && f.virtual.jobs > 0:
		return nil, misused("--jobs %d: run %s was not begun in parts; leave --jobs out", f.virtual.jobs, f.resume)
	case p == nil:
		return nil, parts.RemoveLeft(runFolder(f.runs, f.resume))
	}
	return p, nil
}

// begunParts finds the parts of the run that is to be resumed; nil: it has none.
func (f *rehearseFlags) begunParts() (*parts.Parts, error) {
	if f.resume == "" {
		return nil, nil
	}
	p, err := parts.Find(f.resume)
	if p == nil && err == nil {
		p, err = parts.Find(filepath.Join(f.runs, f.resume))
	}
	return p, err
}

// beginParts makes all parts of a new run before one is driven: a folder of
// parts is there whole, or not at all.
func (f *rehearseFlags) beginParts(file string) (*parts.Parts, error) {
	c, err := scene.Read(file, f.scale)
	if err != nil {
		return nil, err
	}
	if c.Design.StopWhen != nil {
		return nil, errors.New("--jobs: the campaign stops when enough is known (design.stop_when), which no part " +
			"can tell alone; leave --jobs out, or take design.stop_when out")
	}
	trials, err := c.Schedule()
	if err != nil {
		return nil, err
	}
	if err := kernel.Check(trials); err != nil {
		return nil, err
	}
	if problems := wholeRoom(c); problems != nil {
		return nil, problems
	}
	sub := f.runFlags
	sub.start = f.begun() // of all parts
	if sub.name == "" {
		sub.name = c.Name + "-" + sub.start.Format("20060102-150405")
	}
	p := &parts.Parts{Name: sub.name, Whole: filepath.Join(f.runs, sub.name)}
	p.Dir = parts.Dir(p.Whole)
	if isDir(p.Whole) || isDir(p.Dir) {
		return nil, explainRun(f.runs, sub.name, fmt.Errorf("create run %q: %w", sub.name, archive.ErrExists))
	}
	of := min(len(trials), partsMost)
	return p, explainRun(f.runs, sub.name, p.Create(of, func(dir string, number int) (string, error) {
		part := sub
		part.runs, part.shard = dir, fmt.Sprintf("%d/%d", number, of)
		s, err := openSession(part, file, archive.PlaceRehearsal)
		if err != nil {
			return "", err
		}
		return s.archive.Dir(), s.archive.Close()
	}))
}

// rehearse drives the parts that are not finished, puts all together, and
// reports.
func (p inParts) rehearse(ctx context.Context, f rehearseFlags, k kernel.Kernel, out, shown io.Writer) (err error) {
	if err := p.Hold(); err != nil {
		return explainRun(f.runs, p.Whole, err)
	}
	defer func() { err = errors.Join(err, p.Release()) }()
	switch joined, err := p.Joined(); {
	case err != nil:
		return err
	case joined:
		return p.conclude(out, shown) // it was ended when all that was left to do was to take the parts away
	}
	if err := p.Complete(); err != nil {
		return err
	}
	if err := p.drive(ctx, f, k, shown); err != nil {
		empty, eerr := p.Empty()
		switch {
		case eerr != nil:
			return errors.Join(err, eerr)
		case empty && p.Begun && !errors.Is(err, virtual.ErrKilled): // the run's name is free again
			return errors.Join(begunAgain(err), p.Remove())
		}
		jobs := max(f.virtual.jobs, 1)
		if jobs > 1 && errors.Is(err, errKilledTwice) {
			err = fmt.Errorf("%w, or by fewer --jobs", err)
		}
		return goesOn(err, fmt.Sprintf("%s --jobs %d", p.Whole, jobs))
	}
	return p.conclude(out, shown)
}

// conclude puts the finished parts together, reports, and says what went wrong.
func (p inParts) conclude(out, shown io.Writer) error {
	if _, err := fmt.Fprintf(shown, "putting %d parts together in %s\n", len(p.Shards), p.Whole); err != nil {
		return err
	}
	if err := p.Join(); err != nil {
		return err
	}
	a, err := archive.Read(p.Whole)
	if err != nil {
		return err
	}
	s := &session{archive: a, plan: a.Info().Plan}
	return errors.Join(outcome(&run.Runner{Archive: a, Plan: s.plan}), s.conclude(out))
}

// drive has the parts driven that are not finished, as many at a time as there
// are jobs. A part that cannot be driven ends the others, which can be resumed.
func (p inParts) drive(ctx context.Context, f rehearseFlags, k kernel.Kernel, out io.Writer) error {
	left, total, err := p.Unfinished()
	if err != nil || len(left) == 0 {
		return err
	}
	jobs := min(max(f.virtual.jobs, 1), len(left))
	memory := f.virtual.memory(total.Plan)
	if f.virtual.memoryDir, err = virtual.MemoryFolder(jobs * memory); err != nil {
		return err
	}
	heard := &relay.Tally{Begun: time.Now(), Total: total.Trials, Decided: total.Decided}
	if _, err := fmt.Fprintf(out, "virtual time: Linux %s, %d parts of %d left, %d at a time, each on one processor "+
		"with at most %d MB in %s\n",
		k.Version, len(left), len(p.Shards), jobs, memory, f.virtual.memoryDir); err != nil {
		return err
	}
	lanes := make([]string, jobs)
	for i := range lanes {
		lanes[i] = fmt.Sprintf("job %d", i+1)
	}
	shown := progress.New(out, lanes)
	ctx, end := context.WithCancel(ctx)
	defer end()
	queue := make(chan string, len(left))
	for _, shard := range left {
		queue <- shard
	}
	close(queue)
	var first sync.Once
	var failed error // why the others were ended
	var running sync.WaitGroup
	for _, lane := range lanes {
		running.Go(func() {
			for shard := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := drivePart(ctx, f, k, shard, relay.NewHearer(shown, lane, heard)); err != nil {
					first.Do(func() { failed = err })
					end()
				}
			}
		})
	}
	running.Wait()
	if failed == nil && ctx.Err() != nil {
		failed = fmt.Errorf("%w: %w", virtual.ErrCut, context.Cause(ctx))
	}
	return failed
}

// drivePart drives one part to its end. Trials that were given up are reported with
// the whole run.
func drivePart(ctx context.Context, f rehearseFlags, k kernel.Kernel, shard string, heard *relay.Hearer) error {
	f.resume = shard
	s, err := resumeSession(f.runFlags)
	if err != nil {
		return err
	}
	err = errors.Join(s.launch(ctx, f, k, heard, io.Discard), s.close())
	if s.archive.Finished() {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("drive %s: it ended before it was finished", shard)
	}
	return err
}
