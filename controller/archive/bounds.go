package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/controller/plan/room"
)

// An archive may be anybody's, so what of it is held in memory is bounded. Whoever writes
// one keeps to what can be read again.
const (
	// namesMost bounds the bytes of the paths of a run's files and folders in all;
	// room.FilesMost bounds their number.
	namesMost = 64 << 20
	// depthMost bounds folders in folders; a run has four, and an export a few.
	depthMost = 16
	// foreignMost and findingsMost bound what is said.
	foreignMost  = 100
	findingsMost = 1000
	// fileMost bounds a file that is read whole; a plan has 24 MiB at most.
	fileMost = 64 << 20
	// lineMost bounds a line of a file. It is a node's bound of a record, and room for
	// what stands around it.
	lineMost = 17 << 20
	// attemptMost bounds the records of an attempt that are held together.
	attemptMost = 512 << 20
	// entriesOfJournalMost bounds what the journal holds: two lines for each attempt, and
	// as much again as a ninth of them for notes, and for attempts that a person adds.
	entriesOfJournalMost = 2 * room.AttemptsMost / 9 * 10
	// journalMost bounds what all entries of the journal become when they are decoded:
	// those of as many attempts, each with ten rules.
	journalMost = 512 << 20
)

// extent is how many files and folders a run has, and how many bytes their paths.
type extent struct{ entries, names int }

// with returns the extent with one more.
func (e extent) with(rel string) (extent, error) {
	e.entries++
	e.names += len(rel)
	if e.entries > room.FilesMost || e.names > namesMost {
		return e, fmt.Errorf("it has more than %d files, or %d MiB of names, as no run has", room.FilesMost,
			namesMost>>20)
	}
	return e, nil
}

// without returns the extent with one less.
func (e extent) without(rel string) extent { return extent{e.entries - 1, e.names - len(rel)} }

// survey is one look at what lies in a run's folder.
type survey struct {
	root    string
	own     extent // of the record of the run
	derived extent // of what is made of it
	foreign []string
}

// survey looks through the run's folder. It lists what is neither a file nor a
// folder: a link may lead to what is not the run's. A folder that has more than any
// run is an error.
func (d disk) survey() (survey, error) {
	root, err := filepath.EvalSymlinks(d.root)
	if err != nil {
		return survey{}, fmt.Errorf("list run: %w", err)
	}
	s := survey{root: root}
	if err := s.folder(".", 0); err != nil {
		return s, fmt.Errorf("list run: %w", err)
	}
	return s, nil
}

// hold takes the name of a new file or folder into account, or says that the run would
// have more than can be read again.
func (d disk) hold(rel string) error {
	if d.extent == nil || Derived(rel) {
		return nil
	}
	next, err := d.extent.with(rel)
	if err != nil {
		return fmt.Errorf("the run is as large as an archive may be: %w; %s", err, whenFull)
	}
	*d.extent = next
	return nil
}

// extend takes a file that is to be made into account, and the folders above it.
func (d disk) extend(rel string) (err error) {
	for ; err == nil && rel != "." && !d.exists(rel); rel = filepath.Dir(rel) {
		*d.extent, err = d.extent.with(rel)
	}
	return err
}

// release takes a name out of account that hold took in.
func (d disk) release(rel string) {
	if d.extent != nil && !Derived(rel) {
		*d.extent = d.extent.without(rel)
	}
}

// whenFull is what to do with a run to which nothing can be added.
const whenFull = "what is written is safe: end the run on the nodes with `fieldmesh nodes restore`, and drive what " +
	"is left as another run"

// folder looks at what lies in a folder, some of it at a time: it may be large.
func (s *survey) folder(rel string, depth int) (err error) {
	if depth > depthMost {
		return fmt.Errorf("folders lie deeper than %d in each other, as in no run: %.200q", depthMost, rel)
	}
	f, err := os.Open(filepath.Join(s.root, rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been replaced
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if err := s.entry(filepath.Join(rel, e.Name()), e, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *survey) entry(rel string, e fs.DirEntry, depth int) (err error) {
	of := &s.own
	if Derived(rel) {
		of = &s.derived
	}
	if *of, err = of.with(rel); err != nil {
		return err
	}
	switch {
	case e.IsDir():
		return s.folder(rel, depth+1)
	case !e.Type().IsRegular() && len(s.foreign) < foreignMost:
		s.foreign = append(s.foreign, rel)
	}
	return nil
}

// readable refuses a text that would be refused when it is read as a file of JSON.
func readable(text []byte) error {
	if len(text) > fileMost {
		return fmt.Errorf("it has %d bytes, and may have %d", len(text), fileMost)
	}
	return room.FitsMemory(text)
}

// journalSize is how much the journal holds. Who writes it counts as who reads it, so
// that nothing is written which could not be read.
type journalSize struct{ entries, bytes int }

// with returns the size with one more entry.
func (s journalSize) with(line []byte) (journalSize, error) {
	s.entries++
	s.bytes += room.Weight(line)
	if s.entries > entriesOfJournalMost || s.bytes > journalMost {
		return s, fmt.Errorf("%s has more than %d entries, or would take more than %d MiB of memory",
			JournalFile, entriesOfJournalMost, journalMost>>20)
	}
	return s, nil
}
