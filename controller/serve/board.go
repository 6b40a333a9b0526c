package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/live"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// lookEvery is how often the folder of runs is looked at while somebody waits.
const lookEvery = time.Second

// board is what is known of the newest runs.
type board struct {
	dir    string
	driver Driver
	log    *slog.Logger
	ours   atomic.Pointer[string] // the run whose archive this server itself holds; nil: none

	mu     sync.Mutex
	known  map[string]*knownRun // by name
	runs   campaigns.Runs       // as they were seen last
	seen   []byte               // the same as JSON, without what is left
	looked time.Time
	until  time.Time // when no more attempts are measured in this look
}

// knownRun is a run as it was read last.
type knownRun struct {
	archive  *archive.Archive
	driven   bool // it was, so that it may have changed since
	modified time.Time
	measured live.Measured
	unread   bool // attempts are not measured yet
	sheet    *campaigns.Sheet
}

// measureFor is about how long a look measures attempts of all runs together.
const measureFor = 300 * time.Millisecond

// newBoard begins with a version that no board before it had, as long as none changed more
// than a thousand times a second.
func newBoard(dir string, driver Driver, log *slog.Logger) *board {
	return &board{dir: dir, driver: driver, log: log, known: map[string]*knownRun{},
		runs: campaigns.Runs{Version: uint64(time.Now().UnixMilli())}}
}

func (b *board) folder(name string) string { return filepath.Join(b.dir, name) }

// driven reports whether any process drives a run, or is about to: one that has just begun
// has no lock yet.
func (b *board) driven(name string, rec *record) (bool, error) {
	if rec != nil && rec.Process != nil && b.driver.Alive(*rec.Process) {
		return true, nil
	}
	if ours := b.ours.Load(); ours != nil && *ours == name {
		return false, nil
	}
	return b.driver.Driven(b.folder(name))
}

// holding does something with the archive of a run that nobody drives.
func (b *board) holding(name string, do func() []string) []string {
	b.ours.Store(&name)
	defer b.ours.Store(nil)
	return do()
}

// candidate is a run by the files that it has.
type candidate struct {
	name  string
	begun time.Time // or about then
}

// candidates are all runs of the folder, newest first.
func (b *board) candidates() ([]candidate, error) {
	begun := map[string]time.Time{}
	for _, folder := range []string{b.dir, filepath.Join(b.dir, ownFolder)} {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) { // no run was begun yet
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list runs: %w; --runs names another folder", err)
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(folder, e.Name(), recordFile)) // which an archive's is called, too
			if err == nil && wire.CheckRunName(e.Name()) == nil && (begun[e.Name()].IsZero() ||
				info.ModTime().Before(begun[e.Name()])) {
				begun[e.Name()] = info.ModTime()
			}
		}
	}
	var out []candidate
	for name, at := range begun {
		out = append(out, candidate{name, at})
	}
	slices.SortFunc(out, func(x, y candidate) int {
		return cmp.Or(y.begun.Compare(x.begun), cmp.Compare(x.name, y.name))
	})
	return out, nil
}

// look is what there is now, or was less than so long ago.
func (b *board) look(atMost time.Duration) (campaigns.Runs, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.looked.IsZero() && time.Since(b.looked) < atMost {
		return b.runs, nil
	}
	all, err := b.candidates()
	if err != nil {
		return campaigns.Runs{}, err
	}
	runs := []campaigns.Run{}
	b.until = time.Now().Add(measureFor)
	for _, c := range all[:min(len(all), campaigns.MostRuns)] {
		r, err := b.read(c.name)
		if err != nil {
			b.log.Warn("a run cannot be read", "run", c.name, "error", err)
			continue
		}
		if r != nil {
			runs = append(runs, *r)
		}
	}
	b.looked = time.Now()
	return b.runs, b.show(runs)
}

// show puts the runs up, and counts the version on where they are others.
func (b *board) show(runs []campaigns.Run) error {
	still := slices.Clone(runs)
	for i := range still {
		still[i].LeftS = nil
	}
	seen, err := json.Marshal(still)
	if err != nil {
		return fmt.Errorf("compare runs: %w", err)
	}
	b.runs.Runs = runs
	if !bytes.Equal(seen, b.seen) {
		b.seen = seen
		b.runs.Version++
	}
	return nil
}

// one is a run as it is now; nil: there is none of the name.
func (b *board) one(name string) (*campaigns.Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked = time.Time{} // what was seen before is old
	b.until = time.Now().Add(measureFor)
	return b.read(name)
}

// read reads a run.
func (b *board) read(name string) (*campaigns.Run, error) {
	rec, err := readRecord(b.dir, name)
	if err != nil {
		return nil, err
	}
	driven, err := b.driven(name, rec) // before the archive is read, which may be finished then
	if err != nil {
		return nil, err
	}
	k, err := b.again(name, driven)
	if err != nil || k == nil && rec == nil {
		return nil, err
	}
	out := &campaigns.Run{Name: name}
	if rec != nil {
		out.Campaign, out.Place, out.Trials = rec.Campaign, rec.Place, rec.Trials
	}
	if k != nil {
		if err := b.fill(out, k, driven, rec != nil); err != nil {
			return nil, err
		}
	}
	out.Phase, out.Said, err = b.phase(name, k, rec, driven)
	return out, err
}

// again reads a run's archive, if it may have changed; nil: it has none.
func (b *board) again(name string, driven bool) (*knownRun, error) {
	info, err := os.Stat(b.folder(name))
	if errors.Is(err, fs.ErrNotExist) {
		delete(b.known, name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", name, err)
	}
	modified := info.ModTime()
	journal, err := os.Stat(filepath.Join(b.folder(name), archive.JournalFile)) // to which somebody may have added
	if err == nil && journal.ModTime().After(modified) {
		modified = journal.ModTime()
	}
	k := b.known[name]
	if k != nil && !k.driven && !driven && k.modified.Equal(modified) {
		return k, nil
	}
	next := &knownRun{driven: driven, modified: modified, measured: live.Measured{}, unread: true}
	if k == nil {
		next.archive, err = archive.Read(b.folder(name))
	} else if next.archive, err = k.archive.Again(); err == nil && next.archive.Info().CreatedWall.Equal(
		k.archive.Info().CreatedWall) {
		next.measured, next.sheet = k.measured, k.sheet
	}
	if errors.Is(err, archive.ErrNoRun) { // not yet, or it was refused
		delete(b.known, name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b.known[name] = next
	return next, nil
}

// fill says of a run what its archive tells. The throughput of runs that were neither begun
// here nor are under way is not computed: there may be many.
func (b *board) fill(out *campaigns.Run, k *knownRun, driven, ours bool) error {
	info := k.archive.Info()
	out.Campaign, out.Place = info.Campaign, info.Place
	accepted, givenUp, left := (&run.Runner{Archive: k.archive, Plan: info.Plan}).Counts()
	out.Accepted, out.GivenUp, out.Trials = accepted, givenUp, accepted+givenUp+left
	if driven {
		about, _, err := live.Remaining(k.archive, time.Now())
		if err != nil {
			return err
		}
		if about > 0 {
			out.LeftS = new(about.Round(time.Second).Seconds())
		}
	}
	if k.unread && (driven || ours) && time.Now().Before(b.until) {
		r := k.measured.Results(k.archive, b.log)
		k.sheet, k.unread = sheet(r), r.Unread > 0
	}
	out.Sheet = k.sheet
	return nil
}

// sheet is the throughput by speed; nil: no speed has any.
func sheet(r live.Results) *campaigns.Sheet {
	if r.By != live.BySpeed || len(r.Levels) == 0 {
		return nil
	}
	out := &campaigns.Sheet{}
	for _, l := range r.Levels {
		if speed, err := strconv.ParseFloat(l.Name, 64); err == nil {
			out.Speeds = append(out.Speeds, campaigns.SpeedMean{SpeedMps: speed, MeanBps: l.Mbps * 1e6, N: l.N})
		}
	}
	return out
}

// phase is how far a run has come, and what went wrong.
func (b *board) phase(name string, k *knownRun, rec *record, driven bool) (phase, said string, err error) {
	switch {
	case driven:
		return campaigns.Running, "", nil
	case k != nil && k.archive.Finished():
		if rec != nil && rec.RestoreDue {
			said = rec.Said
		}
		return campaigns.Complete, said, nil
	case rec == nil:
		return campaigns.Paused, "", nil
	case rec.Ended:
		return campaigns.Ended, rec.Said, nil
	}
	why, err := rec.failure(b.dir, name)
	if err != nil || why == "" {
		return campaigns.Paused, rec.Said, err
	}
	phase = campaigns.Failed
	if why == byItself {
		phase = campaigns.Paused
	}
	if rec.RestoreDue {
		why = rec.Said + "\n" + why
	}
	return phase, shortened(why, saidMost), nil
}
