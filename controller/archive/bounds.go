package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// An archive may be anybody's, so what of it is held in memory is bounded. The largest
// plan has 12,000 trials; an attempt of it has five files and one of each node.
const (
	// entriesMost bounds the files and folders of a run, and namesMost the bytes of
	// their paths in all.
	entriesMost = 500_000
	namesMost   = 64 << 20
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
	// entriesOfJournalMost bounds what the journal holds: two lines for each of 100,000
	// attempts, which is eight for each trial of the largest plan. Whoever writes keeps to it.
	entriesOfJournalMost = 200_000
	// decodedMost bounds what JSON becomes when it is decoded, and journalMost what all
	// entries of the journal do: those of as many attempts, each with ten rules.
	decodedMost = 96 << 20
	journalMost = 512 << 20
)

// survey is one look at what lies in a run's folder.
type survey struct {
	root           string
	entries, names int
	foreign        []string
}

// foreign lists what is neither a file nor a folder: a link may lead to what is
// not the run's. A folder that has more than any run is an error.
func (d disk) foreign() ([]string, error) {
	root, err := filepath.EvalSymlinks(d.root)
	if err != nil {
		return nil, fmt.Errorf("list run: %w", err)
	}
	s := survey{root: root}
	if err := s.folder(".", 0); err != nil {
		return nil, fmt.Errorf("list run: %w", err)
	}
	return s.foreign, nil
}

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

func (s *survey) entry(rel string, e fs.DirEntry, depth int) error {
	s.entries++
	s.names += len(rel)
	if s.entries > entriesMost || s.names > namesMost {
		return fmt.Errorf("it has more than %d files, or %d MiB of names, as no run has", entriesMost, namesMost>>20)
	}
	switch {
	case e.IsDir():
		return s.folder(rel, depth+1)
	case !e.Type().IsRegular() && len(s.foreign) < foreignMost:
		s.foreign = append(s.foreign, rel)
	}
	return nil
}

// decoded refuses JSON that would fill the memory: an object of three bytes becomes a
// structure of hundreds.
type decoded struct{ bytes int }

func (d *decoded) add(text []byte) error {
	d.bytes += weight(text)
	if d.bytes > decodedMost {
		return fmt.Errorf("it would take more than %d MiB of memory, as nothing in a run does", decodedMost>>20)
	}
	return nil
}

// weight is how many bytes of memory JSON takes at most when it is decoded.
func weight(text []byte) int {
	const object, value = 256, 16 // bytes: of the structures in lists; of a text or number in one
	return len(text) + object*bytes.Count(text, []byte("{")) + value*bytes.Count(text, []byte(","))
}

// journalSize is how much the journal holds. Who writes it counts as who reads it, so
// that nothing is written which could not be read.
type journalSize struct{ entries, bytes int }

// with returns the size with one more entry.
func (s journalSize) with(line []byte) (journalSize, error) {
	s.entries++
	s.bytes += weight(line)
	if s.entries > entriesOfJournalMost || s.bytes > journalMost {
		return s, fmt.Errorf("%s has more than %d entries, or would take more than %d MiB of memory",
			journalFile, entriesOfJournalMost, journalMost>>20)
	}
	return s, nil
}
