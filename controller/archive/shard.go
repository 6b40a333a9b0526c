package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/lock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Shard is a part of a campaign that one machine drives.
type Shard = wire.Shard

// ParseShard reads "i/n".
func ParseShard(text string) (*Shard, error) {
	var s Shard
	if n, err := fmt.Sscanf(text+"\n", "%d/%d\n", &s.Number, &s.Of); err != nil || n != 2 || s.Number < 1 ||
		s.Number > s.Of || s.Of > wire.MaxTrials {
		return nil, fmt.Errorf("--shard %q: expected i/n, such as 2/3 for the second of three", text)
	}
	return &s, nil
}

// Merge makes one run of all shards of a campaign, in a new folder. Every shard
// must be finished and whole, of the same campaign, schedule and seed, and there
// once; otherwise nothing is made. The shards stay as they are. What they signed is
// kept; identity signs the merge, and nil leaves it unsigned.
func Merge(dir string, shards []string, identity *keys.Identity) (err error) {
	parts := make([]*Archive, len(shards))
	known := &knownSchedule{}
	for i, path := range shards {
		if parts[i], err = wholeShard(disk{root: path, known: known}); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
	}
	if err := oneCampaign(parts); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	slices.SortFunc(parts, func(x, y *Archive) int { return cmp.Compare(x.info.Shard.Number, y.info.Shard.Number) })
	info := parts[0].info
	info.Shard, info.Merged, info.Movement = nil, len(parts), map[string][]byte{}
	var versions, deviations []string
	for _, p := range parts {
		if p.info.CreatedWall.Before(info.CreatedWall) {
			info.CreatedWall = p.info.CreatedWall
		}
		versions, deviations = append(versions, p.info.Version), append(deviations, p.info.Deviations...)
	}
	info.Version = strings.Join(each(versions), " and ")
	info.Deviations = each(deviations)
	return createWhole(dir, info, func(a *Archive) error {
		if err := errors.Join(a.take(parts), a.readDecided()); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		if identity != nil {
			if err := a.SignWith(*identity); err != nil {
				return fmt.Errorf("merge: %w", err)
			}
		}
		return a.Finish()
	})
}

// each are texts once each, sorted.
func each(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

// createWhole makes a run that is filled at once: it is made beside its folder, by one process at a
// time, and takes its place when it is whole.
func createWhole(dir string, info RunInfo, fill func(*Archive) error) (err error) {
	beside := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
	if err := (disk{root: filepath.Dir(dir)}).makeRoot(); err != nil {
		return fmt.Errorf("create run %q: %w", info.Run, err)
	}
	held, err := lock.Hold(beside + LockFile)
	if errors.Is(err, lock.ErrHeld) {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("create run %q: %w", info.Run, err)
	}
	defer func() {
		_ = os.Remove(held.Name()) // nothing is amiss if it stays
		err = errors.Join(err, held.Close())
	}()
	switch left, err := os.ReadDir(dir); {
	case (disk{root: dir}).exists(runFile):
		return fmt.Errorf("create run %q: %w", info.Run, ErrExists)
	case err == nil && len(left) > 0:
		return fmt.Errorf("create run %q: %q is not empty", info.Run, dir)
	}
	if err := os.RemoveAll(beside); err != nil {
		return fmt.Errorf("create run %q: %w", info.Run, err)
	}
	a, err := Create(beside, info)
	if err == nil {
		err = errors.Join(fill(a), a.Close())
	}
	if err == nil {
		err = os.Rename(beside, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(beside))
	}
	return durable.Folder(filepath.Dir(dir))
}

// wholeShard opens a shard that is finished and as its manifests say.
func wholeShard(d disk) (*Archive, error) {
	path := d.root
	a, err := read(d)
	if err != nil {
		return nil, err
	}
	if a.info.Shard == nil {
		return nil, fmt.Errorf("%q is not a shard: it was driven whole", path)
	}
	findings, err := verify(d)
	if err != nil {
		return nil, err
	}
	if len(findings) > 0 {
		return nil, fmt.Errorf("shard %s in %q is not whole (%d findings, the first: %s); finish it by --resume, or "+
			"copy it again", a.info.Shard, path, len(findings), findings[0])
	}
	attempts, err := a.Trials()
	for _, k := range attempts {
		if !a.info.Shard.Has(k.Trial) {
			return nil, fmt.Errorf("shard %s in %q has attempt %s of another shard: it was collected by a "+
				"version of Fieldmesh that kept those; report the shards apart, or drive this one again",
				a.info.Shard, path, attemptName(k.TrialKey))
		}
	}
	return a, err
}

// oneCampaign refuses shards that are not all the shards of one run.
func oneCampaign(parts []*Archive) error {
	if len(parts) == 0 {
		return errors.New("no shard was given")
	}
	first := parts[0]
	at := map[int]string{}
	for _, p := range parts {
		switch x, y := p.info, first.info; {
		case x.Run != y.Run:
			return fmt.Errorf("%q is of run %q and %q of run %q: shards of one run bear one --name", p.dir, x.Run,
				first.dir, y.Run)
		case x.Place != y.Place, x.Seed != y.Seed, x.ChannelDraws != y.ChannelDraws,
			!bytes.Equal(x.CampaignRaw, y.CampaignRaw), !reflect.DeepEqual(x.Plan, y.Plan):
			return fmt.Errorf("%q and %q are of different campaigns: place, seed, draws of the channel, campaign file "+
				"or schedule differ", first.dir, p.dir)
		case !sameClock(x.Clock, y.Clock):
			return fmt.Errorf("%q and %q were driven by different clocks (%s); shards of one run have one --clock, "+
				"and one kernel", first.dir, p.dir, clocks(y.Clock, x.Clock))
		case x.Radio != y.Radio:
			return fmt.Errorf("%q and %q had different radios; shards of one run have one --radio", first.dir, p.dir)
		case x.Shard.Of != y.Shard.Of:
			return fmt.Errorf("%q is shard %s and %q is shard %s: they were cut differently", first.dir, y.Shard, p.dir,
				x.Shard)
		case at[x.Shard.Number] != "":
			return fmt.Errorf("shard %s is there twice: %q and %q", x.Shard, at[x.Shard.Number], p.dir)
		}
		at[p.info.Shard.Number] = p.dir
		if same, err := sameMovement(first, p); err != nil || !same {
			return errors.Join(err, fmt.Errorf("%q and %q are of different campaigns: the files in %s differ",
				first.dir, p.dir, movementDir))
		}
	}
	for i := 1; i <= first.info.Shard.Of; i++ {
		if at[i] == "" {
			return fmt.Errorf("shard %d/%d is missing; name its folder too", i, first.info.Shard.Of)
		}
	}
	return nil
}

// sameMovement reports whether two shards hold the same files of movement.
func sameMovement(x, y *Archive) (bool, error) {
	var sums [2][]byte
	for i, a := range []*Archive{x, y} {
		files, err := a.disk.walk(movementDir)
		if err != nil {
			return false, err
		}
		if sums[i], err = a.disk.sums(".", files); err != nil {
			return false, err
		}
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

// sameClock: a run that does not say its clock had the real one.
func sameClock(x, y *Clock) bool {
	if x.Virtual() && y.Virtual() {
		return *x == *y
	}
	return x.Virtual() == y.Virtual()
}

// clocks words two clocks.
func clocks(x, y *Clock) string {
	word := func(c *Clock) string {
		if !c.Virtual() {
			return ClockReal
		}
		return fmt.Sprintf("%s: kernel %s of configuration %s", c.Kind, c.Kernel, c.Configuration)
	}
	return word(x) + "; " + word(y)
}

// take copies what the shards hold. What stands in a trial's folder is copied as
// it is; what lies between trials, and the journal, is put together.
func (a *Archive) take(parts []*Archive) error {
	type dated struct {
		JournalEntry
		at time.Time // not before its shard's entries before it, whose clock may have been set back
	}
	var journal []dated
	for _, p := range parts {
		files, err := p.disk.walk(".")
		if err != nil {
			return err
		}
		for _, rel := range files {
			if err := a.takeFile(p, rel); err != nil {
				return fmt.Errorf("take %s of shard %s: %w", rel, p.info.Shard, err)
			}
		}
		entries, err := p.Journal()
		if err != nil {
			return err
		}
		note := JournalEntry{Wall: p.info.CreatedWall, Type: "note", Text: fmt.Sprintf("shard %s, by %s", p.info.Shard,
			p.info.Version)}
		at := note.Wall
		for _, e := range append([]JournalEntry{note}, entries...) {
			if at.Before(e.Wall) {
				at = e.Wall
			}
			if e.Type != "finished" {
				journal = append(journal, dated{e, at})
			}
		}
	}
	slices.SortStableFunc(journal, func(x, y dated) int { return x.at.Compare(y.at) })
	var lines []byte
	for _, e := range journal {
		line, err := marshalLine(e.JournalEntry)
		if err != nil {
			return err
		}
		if a.journal, err = a.journal.with(line); err != nil {
			return fmt.Errorf("the shards together are more than a run may be: %w; report them apart", err)
		}
		lines = append(lines, line...)
	}
	if _, err := a.disk.append(JournalFile, lines); err != nil {
		return err
	}
	return a.disk.syncAll()
}

// takeFile copies one file of a shard. The run's own files are made again, and
// those that several shards may have are appended to. What a shard signed stays
// beside, with what its plan's checksums name: its manifest vouches for the attempts.
func (a *Archive) takeFile(p *Archive, rel string) error {
	switch rel {
	case campaignFile, JournalFile, cursorFile, LockFile:
		return nil
	case scheduleFile: // as another version may have written the same
		own, _, err := p.disk.sum(rel)
		whole, _, werr := a.disk.sum(rel)
		if err = errors.Join(err, werr); err != nil || own == whole {
			return err
		}
		fallthrough
	case runFile, manifestFile, manifestSignature, planSums, planSignature:
		return a.takeAs(p, rel, filepath.Join(shardDir(p.info.Shard.Number), rel))
	}
	same := filepath.Dir(rel) == movementDir || filepath.Dir(rel) == attachmentDir // under that name
	if Derived(rel) || same && a.disk.exists(rel) {
		return nil
	}
	return a.takeAs(p, rel, rel)
}

// takeAs appends a file of a shard to one of the whole. There may be hundreds of
// thousands: they are made durable together, when all are taken.
func (a *Archive) takeAs(p *Archive, rel, as string) (err error) {
	if err := a.disk.extend(as); err != nil {
		return fmt.Errorf("the shards together are more than a run may be: %w; report them apart", err)
	}
	if err := os.MkdirAll(filepath.Dir(a.disk.path(as)), 0o755); err != nil {
		return err
	}
	from, err := os.Open(p.disk.path(rel))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(a.disk.path(as), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.Copy(to, from)
	return err
}
