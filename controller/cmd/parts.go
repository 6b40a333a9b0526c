package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/controller/cmd/relay"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// partsMost is the most parts that a run is driven in. They are enough for the
// processors of a workstation to end at about the same time.
const partsMost = 32

// parts is a run in virtual time that is driven in parts, each in a kernel of
// its own, and is put together when all are finished. A part is a shard. How many
// there are follows from the schedule, so that the results do not depend on how
// many are driven at a time.
type parts struct {
	name   string
	whole  string          // folder of the run that they become
	dir    string          // folder of the parts
	shards []string        // folders in it
	info   archive.RunInfo // of one that was found
}

// mergedDir is the folder, beside the parts, in which they are put together.
const mergedDir = "merged"

// partsDir is the folder of the parts of the run in a folder.
func partsDir(whole string) string { return filepath.Clean(whole) + "-parts" }

// parts begins a run in parts, or finds those of the run that is to be resumed.
// It returns nil for a run that is driven whole.
func (f *rehearseFlags) parts(file string) (*parts, error) {
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
		return nil, misused("--retry: run %s is still in parts; resume it first", p.name)
	case p == nil && f.virtual.jobs > 0:
		return nil, misused("--jobs %d: run %s was not begun in parts; leave --jobs out", f.virtual.jobs, f.resume)
	}
	return p, nil
}

// begunParts finds the parts of the run that is to be resumed; nil: it has none.
func (f *rehearseFlags) begunParts() (*parts, error) {
	if f.resume == "" {
		return nil, nil
	}
	p, err := findParts(f.resume)
	if p == nil && err == nil {
		p, err = findParts(filepath.Join(f.runs, f.resume))
	}
	return p, err
}

// findParts finds the parts of the run that is to be in a folder; nil: it has none.
func findParts(whole string) (*parts, error) {
	p := &parts{name: filepath.Base(whole), whole: filepath.Clean(whole), dir: partsDir(whole)}
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the parts of run %s: %w", p.name, err)
	}
	for _, e := range entries {
		shard := filepath.Join(p.dir, e.Name())
		if _, err := os.Stat(filepath.Join(shard, "run.json")); err == nil && e.Name() != mergedDir {
			p.shards = append(p.shards, shard)
		}
	}
	if len(p.shards) == 0 {
		return nil, nil
	}
	a, err := archive.Read(p.shards[0])
	if err != nil {
		return nil, err
	}
	p.info = a.Info()
	return p, nil
}

// beginParts makes all parts of a new run before one is driven: a folder of
// parts is there whole, or not at all.
func (f *rehearseFlags) beginParts(file string) (*parts, error) {
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
	p := &parts{name: sub.name, whole: filepath.Join(f.runs, sub.name)}
	p.dir = partsDir(p.whole)
	if isDir(p.whole) || isDir(p.dir) {
		return nil, explainRun(f.runs, sub.name, fmt.Errorf("create run %q: %w", sub.name, archive.ErrExists))
	}
	return p, p.create(sub, file, min(len(trials), partsMost))
}

// create makes so many parts in a folder beside theirs, which is renamed when all
// are there.
func (p *parts) create(f runFlags, file string, of int) (err error) {
	f.runs = p.dir + ".new"
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make the parts of run %s: %w", p.name, err), os.RemoveAll(f.runs))
		}
	}()
	if err := os.RemoveAll(f.runs); err != nil { // of one that was ended meanwhile
		return err
	}
	for i := 1; i <= of; i++ {
		f.shard = fmt.Sprintf("%d/%d", i, of)
		s, err := openSession(f, file, archive.PlaceRehearsal)
		if err != nil {
			return err
		}
		if err := s.archive.Close(); err != nil {
			return err
		}
		p.shards = append(p.shards, filepath.Join(p.dir, filepath.Base(s.archive.Dir())))
	}
	return os.Rename(f.runs, p.dir)
}

// rehearse drives the parts that are not finished, puts all together, and
// reports.
func (p *parts) rehearse(ctx context.Context, f rehearseFlags, k kernel.Kernel, out, shown io.Writer) error {
	switch joined, err := p.joined(); {
	case err != nil:
		return err
	case joined:
		return p.conclude(out) // it was ended when all that was left to do was to take the parts away
	}
	if err := p.drive(ctx, f, k, shown); err != nil {
		empty, eerr := p.empty()
		switch {
		case eerr != nil:
			return errors.Join(err, eerr)
		case empty: // the run's name is free again
			return errors.Join(err, os.RemoveAll(p.dir))
		case errors.Is(err, virtual.ErrCut):
			return fmt.Errorf("%w; `fieldmesh rehearse --resume %s --jobs %d` goes on", err, p.whole,
				max(f.virtual.jobs, 1))
		}
		return err
	}
	return p.conclude(out)
}

// conclude puts the finished parts together, reports, and says what went wrong.
func (p *parts) conclude(out io.Writer) error {
	if err := p.join(); err != nil {
		return err
	}
	a, err := archive.Read(p.whole)
	if err != nil {
		return err
	}
	s := &session{archive: a, plan: a.Info().Plan}
	return errors.Join(outcome(&run.Runner{Archive: a, Plan: s.plan}), s.conclude(out))
}

// drive has the parts driven that are not finished, as many at a time as there
// are jobs. A part that cannot be driven ends the others, which can be resumed.
func (p *parts) drive(ctx context.Context, f rehearseFlags, k kernel.Kernel, out io.Writer) error {
	left, total, err := p.unfinished()
	if err != nil || len(left) == 0 {
		return err
	}
	jobs := min(max(f.virtual.jobs, 1), len(left))
	heard := &relay.Tally{Begun: time.Now(), Total: total.trials, Decided: total.decided}
	if _, err := fmt.Fprintf(out, "virtual time: Linux %s, %d parts of %d left, %d at a time, each on one processor "+
		"with at most %d MB\n", k.Version, len(left), len(p.shards), jobs, f.virtual.memory(total.plan)); err != nil {
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

// empty reports whether nothing has happened in any part.
func (p *parts) empty() (bool, error) {
	for _, shard := range p.shards {
		a, err := archive.Read(shard)
		if err != nil || !a.Empty() {
			return false, err
		}
	}
	return true, nil
}

// ofParts is what is known of all parts together.
type ofParts struct {
	plan            wire.RunPlan
	trials, decided int // of the run; of the parts that are finished
}

// unfinished returns the parts that are left to drive.
func (p *parts) unfinished() (left []string, all ofParts, err error) {
	for _, shard := range p.shards {
		a, err := archive.Read(shard)
		if err != nil {
			return nil, all, err
		}
		all.plan, all.trials = a.Info().Plan, len(a.Info().Plan.Trials)
		if !a.Finished() {
			left = append(left, shard)
			continue
		}
		for _, t := range all.plan.Trials {
			if a.Drives(t) {
				all.decided++
			}
		}
	}
	return left, all, nil
}

// joined reports whether the run was put together of these parts already; another
// run in its place is refused.
func (p *parts) joined() (bool, error) {
	if !isDir(p.whole) {
		return false, nil
	}
	a, err := archive.Read(p.whole)
	if err == nil {
		whole, part := a.Info(), p.info
		if part.Shard != nil && whole.Merged == part.Shard.Of && whole.Run == part.Run &&
			whole.CreatedWall.Equal(part.CreatedWall) {
			return true, nil
		}
		err = errors.New("it was not put together of them")
	}
	return false, fmt.Errorf("%q is in the place of the run whose parts are in %q: %w; give either folder another "+
		"name", p.whole, p.dir, err)
}

// join makes one run of the finished parts, and takes them away. It does not
// matter where it is ended: it can be done again.
func (p *parts) join() error {
	joined, err := p.joined()
	if err != nil {
		return err
	}
	if !joined {
		merged := filepath.Join(p.dir, mergedDir)
		if err := os.RemoveAll(merged); err != nil {
			return fmt.Errorf("put run %s together: %w", p.name, err)
		}
		if err := archive.Merge(merged, p.shards, nil); err != nil {
			return err
		}
		key, err := runkey.Read(p.shards[0])
		if err == nil {
			err = runkey.Keep(p.whole, key) // by which it can be resumed to drive a trial again
		}
		if err == nil {
			err = os.Rename(merged, p.whole)
		}
		if err != nil {
			return fmt.Errorf("put run %s together: %w", p.name, err)
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("take the parts of run %s away: %w", p.name, err)
	}
	return nil
}
