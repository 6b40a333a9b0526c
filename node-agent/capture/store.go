package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Store is the folder of a node's captures: one folder a run, one file an
// attempt. A file stays until its attempt is decided, or its run is given up.
type Store struct{ dir string }

// NewStore makes a store in a folder, which need not be there.
func NewStore(dir string) Store { return Store{dir} }

// Path is where the capture of an attempt is.
func (s Store) Path(run string, k wire.TrialKey) string {
	return filepath.Join(s.dir, run, fmt.Sprintf("%04d-a%d.pcapng", k.Trial, k.Attempt))
}

// Read gives at most limit bytes of a capture from an offset on, and the
// capture's size. A capture that is not there is a *wire.Error, not_found.
func (s Store) Read(run string, k wire.TrialKey, offset int64, limit int) (data []byte, size int64, err error) {
	f, err := os.Open(s.Path(run, k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, wire.Errorf(wire.CodeNotFound, "there is no capture of trial %d attempt %d of run %s", k.Trial,
			k.Attempt, run)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read capture: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read capture: %w", err)
	}
	data = make([]byte, max(0, min(int64(limit), st.Size()-offset)))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("read capture: %w", err)
	}
	return data[:n], st.Size(), nil
}

// Remove forgets the capture of an attempt; one that is not there is no error.
func (s Store) Remove(run string, k wire.TrialKey) error {
	if err := os.Remove(s.Path(run, k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove capture: %w", err)
	}
	return nil
}

// Runs are the runs of which there are captures, by name; none where that cannot be read.
func (s Store) Runs() []string {
	var out []string
	folders, _ := os.ReadDir(s.dir)
	for _, folder := range folders {
		if files, _ := os.ReadDir(filepath.Join(s.dir, folder.Name())); len(files) > 0 {
			out = append(out, folder.Name())
		}
	}
	return out
}

// Forget forgets the captures of a run.
func (s Store) Forget(run string) error {
	return s.ForgetWhere(func(other string) bool { return other == run })
}

// ForgetWhere forgets the captures of the runs of which something holds.
func (s Store) ForgetWhere(holds func(run string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove captures: %w", err)
	}
	for _, e := range entries {
		if !holds(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			return fmt.Errorf("remove captures: %w", err)
		}
	}
	return nil
}
