// Package parts keeps a run in virtual time that is driven in parts, each in a
// kernel of its own: their folders, until they are put together. A part is a shard.
// How they are driven is the command's business.
package parts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/internal/lock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Parts are those of one run. How many there are follows from the schedule, so that
// the results do not depend on how many are driven at a time.
type Parts struct {
	Name   string
	Whole  string          // folder of the run that they become
	Dir    string          // folder of the parts
	Shards []string        // folders in it
	Info   archive.RunInfo // of the first; empty until Find has read it
	Begun  bool            // by this process

	held *os.File // the lock; nil: not held
}

// mergedDir is the folder, beside the parts, in which they are put together.
const mergedDir = "merged"

// Dir is the folder of the parts of the run in a folder.
func Dir(whole string) string { return filepath.Clean(whole) + "-parts" }

// Find finds the parts of the run that is to be in a folder; nil: it has none.
func Find(whole string) (*Parts, error) {
	p := &Parts{Name: filepath.Base(whole), Whole: filepath.Clean(whole), Dir: Dir(whole)}
	entries, err := os.ReadDir(p.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the parts of run %s: %w", p.Name, err)
	}
	for _, e := range entries {
		// A name that begins with a dot is that of a run that was not made whole: no run is named so.
		if e.Name() == mergedDir || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		shard := filepath.Join(p.Dir, e.Name())
		if _, err := os.Stat(filepath.Join(shard, "run.json")); err == nil {
			p.Shards = append(p.Shards, shard)
		}
	}
	if len(p.Shards) == 0 {
		return nil, nil
	}
	a, err := archive.Read(p.Shards[0])
	if err != nil {
		return nil, err
	}
	p.Info = a.Info()
	return p, nil
}

// Create makes all parts before one is driven: a folder of parts is there whole, or
// not at all. each makes one of so many in a folder, and returns its own. The parts
// are held.
func (p *Parts) Create(of int, each func(dir string, number int) (string, error)) (err error) {
	dir := p.Dir + ".new" // renamed when all are there
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the parts of run %s: %w", p.Name, err)
	}
	if err := p.hold(dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make the parts of run %s: %w", p.Name, err), os.RemoveAll(dir), p.Release())
		}
	}()
	left, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range left { // by one that was ended meanwhile
		if e.Name() == archive.LockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for i := 1; i <= of; i++ {
		shard, err := each(dir, i)
		if err != nil {
			return err
		}
		p.Shards = append(p.Shards, filepath.Join(p.Dir, filepath.Base(shard)))
	}
	p.Begun = true
	return errors.Join(os.Rename(dir, p.Dir), durable.Folder(filepath.Dir(p.Dir)))
}

// Hold keeps other processes from driving the parts and from putting them together,
// until Release or the end of this one.
func (p *Parts) Hold() error {
	if p.held != nil {
		return nil
	}
	return p.hold(p.Dir)
}

func (p *Parts) hold(dir string) (err error) {
	p.held, err = lock.Hold(filepath.Join(dir, archive.LockFile))
	if errors.Is(err, lock.ErrHeld) {
		err = archive.ErrLocked
	}
	if err != nil {
		return fmt.Errorf("hold the parts of run %s: %w", p.Name, err)
	}
	return nil
}

// Release lets others have the parts.
func (p *Parts) Release() error {
	if p.held == nil {
		return nil
	}
	err := p.held.Close()
	p.held = nil
	return err
}

// Complete refuses parts of which some are missing, before the others are driven.
func (p *Parts) Complete() error {
	there := map[int]bool{}
	of := 0
	for _, shard := range p.Shards {
		a, err := archive.Read(shard)
		if err != nil {
			return err
		}
		if s := a.Info().Shard; s != nil {
			there[s.Number], of = true, s.Of
		}
	}
	var missing []string
	for i := 1; i <= of; i++ {
		if !there[i] {
			missing = append(missing, fmt.Sprint(i))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("run %s is in %d parts, and of those %s is missing in %q; copy it back from a copy of the "+
			"folder", p.Name, of, strings.Join(missing, ", "), p.Dir)
	}
	return nil
}

// Empty reports whether nothing has happened in any part.
func (p *Parts) Empty() (bool, error) {
	for _, shard := range p.Shards {
		a, err := archive.Read(shard)
		if err != nil || !a.Empty() {
			return false, err
		}
	}
	return true, nil
}

// All is what is known of all parts together.
type All struct {
	Plan            wire.RunPlan
	Trials, Decided int // of the run; of the parts that are finished
}

// Unfinished returns the parts that are left to drive.
func (p *Parts) Unfinished() (left []string, all All, err error) {
	for _, shard := range p.Shards {
		a, err := archive.Read(shard)
		if err != nil {
			return nil, all, err
		}
		all.Plan, all.Trials = a.Info().Plan, len(a.Info().Plan.Trials)
		if !a.Finished() {
			left = append(left, shard)
			continue
		}
		for _, t := range all.Plan.Trials {
			if a.Drives(t) {
				all.Decided++
			}
		}
	}
	return left, all, nil
}

// Joined reports whether the run was put together of these parts already; another
// run in its place is refused.
func (p *Parts) Joined() (bool, error) {
	if info, err := os.Stat(p.Whole); err != nil || !info.IsDir() {
		return false, nil
	}
	a, err := archive.Read(p.Whole)
	if err == nil {
		whole, part := a.Info(), p.Info
		if part.Shard != nil && whole.Merged == part.Shard.Of && whole.Run == part.Run &&
			whole.CreatedWall.Equal(part.CreatedWall) {
			return true, nil
		}
		err = errors.New("it was not put together of them")
	}
	return false, fmt.Errorf("%q is in the place of the run whose parts are in %q: %w; give either folder another "+
		"name", p.Whole, p.Dir, err)
}

// Join makes one run of the finished parts, checks it, and takes them away. It does
// not matter where it is ended: it can be done again. The parts must be held.
func (p *Parts) Join() error {
	joined, err := p.Joined()
	if err != nil {
		return err
	}
	if !joined {
		if err := p.putTogether(); err != nil {
			return fmt.Errorf("put run %s together: %w", p.Name, err)
		}
	}
	if err := p.Remove(); err != nil {
		return fmt.Errorf("take the parts of run %s away: %w", p.Name, err)
	}
	return nil
}

func (p *Parts) putTogether() error {
	merged := filepath.Join(p.Dir, mergedDir)
	if err := os.RemoveAll(merged); err != nil {
		return err
	}
	if err := archive.Merge(merged, p.Shards, nil); err != nil {
		return err
	}
	findings, err := archive.Verify(merged)
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%q is not what its parts are (%d findings, the first: %s); they stay", merged, len(findings),
			findings[0])
	}
	if err != nil {
		return err
	}
	key, err := runkey.Read(p.Shards[0])
	if err != nil {
		return err
	}
	// By it the run can be resumed to drive a trial again.
	if err := runkey.Keep(p.Whole, key); err != nil {
		return err
	}
	if err := os.Rename(merged, p.Whole); err != nil {
		return err
	}
	return durable.Folder(filepath.Dir(p.Whole))
}

// Remove takes the parts away. They are renamed first: a folder that lacks some is
// never taken for the run's.
func (p *Parts) Remove() error {
	if err := RemoveLeft(p.Whole); err != nil {
		return err
	}
	if err := os.Rename(p.Dir, old(p.Whole)); err != nil {
		return err
	}
	return RemoveLeft(p.Whole)
}

// RemoveLeft takes away what a Remove that was ended meanwhile left of the parts of the run in a folder.
func RemoveLeft(whole string) error {
	if err := os.RemoveAll(old(whole)); err != nil {
		return fmt.Errorf("take away what is left of the parts of a run: %w", err)
	}
	return nil
}

// old is what the folder of parts is renamed to.
func old(whole string) string {
	dir := Dir(whole)
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".old")
}
