package archive

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive/torn"
	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const tmpSuffix = ".tmp"

// disk is the few durable steps that the archive is made of. Paths are relative
// to the run's folder.
type disk struct {
	root string
	// fault lets a test end the process at any step: it is asked before each,
	// and when it returns an error only the first n bytes of a write are made.
	fault func(step, rel string, size int) (n int, err error)
	known *knownSchedule // of a run that is read many times; nil: none
	// extent is what a run that is written has; nil: it is only read
	extent *extent
}

// knownSchedule is a schedule.json that was read before. All shards of a run have
// the same, of up to 24 MiB: it is decoded and held once.
type knownSchedule struct {
	sum  [sha256.Size]byte // zero: none was read yet
	plan wire.RunPlan
}

func (d disk) path(rel string) string { return filepath.Join(d.root, rel) }

func (d disk) exists(rel string) bool {
	_, err := os.Stat(d.path(rel))
	return err == nil
}

func (d disk) ask(step, rel string, size int) (int, error) {
	if d.fault == nil {
		return size, nil
	}
	return d.fault(step, rel, size)
}

// makeRoot makes the run's folder.
func (d disk) makeRoot() error {
	if err := os.MkdirAll(d.root, 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	return durable.Folder(filepath.Dir(filepath.Clean(d.root)))
}

// mkdir makes a folder and those above it within the run's, which it does not make; the parent
// of each new one is synced, so that the folder survives a loss of power.
func (d disk) mkdir(rel string) error {
	if d.exists(rel) {
		return nil
	}
	if rel == "." {
		return errMoved
	}
	if err := d.mkdir(filepath.Dir(rel)); err != nil {
		return err
	}
	if err := d.hold(rel); err != nil {
		return err
	}
	if _, err := d.ask("mkdir", rel, 0); err != nil {
		return err
	}
	if err := os.Mkdir(d.path(rel), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder: %w", err)
	}
	return durable.Folder(filepath.Dir(d.path(rel)))
}

// append adds whole lines to a file and returns its new size once they are on
// disk. What a failed write left behind is cut again.
func (d disk) append(rel string, data []byte) (size int64, err error) {
	if err := d.mkdir(filepath.Dir(rel)); err != nil {
		return 0, err
	}
	if !d.exists(rel) {
		if err := d.hold(rel); err != nil {
			return 0, err
		}
	}
	f, err := os.OpenFile(d.path(rel), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", rel, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", rel, err)
	}
	err = d.writeSync(f, rel, data)
	if err == nil && before == 0 {
		if _, err = d.ask("folder", rel, 0); err == nil {
			err = durable.Folder(filepath.Dir(d.path(rel)))
		}
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("append to %s: %w", rel, err), d.cut(f, rel, before))
	}
	return before + int64(len(data)), nil
}

func (d disk) writeSync(f *os.File, rel string, data []byte) error {
	n, fault := d.ask("write", rel, len(data))
	if _, err := f.Write(data[:n]); err != nil {
		return err
	}
	if fault != nil {
		return fault
	}
	if _, err := d.ask("sync", rel, len(data)); err != nil {
		return err
	}
	return f.Sync()
}

func (d disk) cut(f *os.File, rel string, size int64) error {
	if _, err := d.ask("cut", rel, 0); err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("cut %s back to %d bytes: %w", rel, size, err)
	}
	return nil
}

// replace writes a file whole: beside it first, then renamed onto it.
func (d disk) replace(rel string, data []byte) error {
	if err := d.mkdir(filepath.Dir(rel)); err != nil {
		return err
	}
	tmp := rel + tmpSuffix
	if err := d.hold(tmp); err != nil { // both are there for a while
		return err
	}
	f, err := os.OpenFile(d.path(tmp), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", rel, err)
	}
	if err := d.writeSync(f, tmp, data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", rel, err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", rel, err)
	}
	if _, err := d.ask("rename", rel, 0); err != nil {
		return err
	}
	fresh := !d.exists(rel)
	if err := os.Rename(d.path(tmp), d.path(rel)); err != nil {
		return fmt.Errorf("write %s: %w", rel, err)
	}
	if !fresh {
		d.release(tmp)
	}
	return durable.Folder(filepath.Dir(d.path(rel)))
}

func (d disk) replaceJSON(rel string, v any) error {
	b, err := encoded(rel, v)
	if err != nil {
		return err
	}
	return d.replace(rel, b)
}

func encoded(rel string, v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", rel, err)
	}
	return append(b, '\n'), nil
}

func (d disk) read(rel string) ([]byte, error) {
	if size := d.size(rel); size > fileMost {
		return nil, fmt.Errorf("read %s: it has %d bytes, and may have %d", rel, size, fileMost)
	}
	b, err := os.ReadFile(d.path(rel))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", rel, err)
	}
	return b, nil
}

func (d disk) readJSON(rel string, v any) error {
	b, err := d.read(rel)
	if err != nil {
		return err
	}
	if err := room.FitsMemory(b); err != nil {
		return fmt.Errorf("read %s: %w", rel, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", rel, err)
	}
	return nil
}

// schedule reads a plan: more trials than one may have are not decoded.
func (d disk) schedule(rel string) (p wire.RunPlan, err error) {
	raw, err := d.read(rel)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(raw)
	if d.known != nil && d.known.sum == sum {
		return d.known.plan, nil
	}
	if err := room.FitsMemory(raw); err != nil {
		return p, fmt.Errorf("read %s: %w", rel, err)
	}
	var of struct {
		Trials []json.RawMessage `json:"trials"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return p, fmt.Errorf("read %s: %w", rel, err)
	}
	if n := len(of.Trials); n > wire.MaxTrials {
		return p, fmt.Errorf("read %s: it has %d trials, and may have %d", rel, n, wire.MaxTrials)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("read %s: %w", rel, err)
	}
	if d.known != nil {
		*d.known = knownSchedule{sum, p}
	}
	return p, nil
}

// syncAll makes durable whatever was written to the run's file system.
func (d disk) syncAll() error {
	f, err := os.Open(d.root)
	if err != nil {
		return fmt.Errorf("open folder to sync: %w", err)
	}
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return errors.Join(fmt.Errorf("sync the file system of %q: %w", d.root, err), f.Close())
	}
	return f.Close()
}

func (d disk) remove(rel string) error {
	if _, err := d.ask("remove", rel, 0); err != nil {
		return err
	}
	switch err := os.Remove(d.path(rel)); {
	case err == nil:
		d.release(rel)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("remove %s: %w", rel, err)
	}
	return durable.Folder(filepath.Dir(d.path(rel)))
}

// mend takes away what a crash left: half-written replacements, the torn last line of a file that
// is appended to, and lines with zeros, of which it tells. Sealed folders are left alone.
func (d disk) mend() (told []string, err error) {
	err = filepath.WalkDir(d.root+"/", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("look through run: %w", err)
		}
		rel, err := filepath.Rel(d.root, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if filepath.Dir(rel) == "trials" && d.exists(filepath.Join(rel, manifestFile)) {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case Derived(rel), strings.HasPrefix(e.Name(), "."):
			return nil
		case strings.HasSuffix(rel, tmpSuffix):
			return d.remove(rel)
		case strings.HasSuffix(rel, ".unreadable"): // in which a node's own zeros may be
			if err := torn.Tail(path); err != nil {
				return fmt.Errorf("mend %s: %w", rel, err)
			}
		case strings.HasSuffix(rel, ".ndjson"):
			holes, err := torn.Mend(path, path+tmpSuffix)
			if err != nil {
				return fmt.Errorf("mend %s: %w", rel, err)
			}
			if holes > 0 {
				told = append(told, fmt.Sprintf("%d bytes of %s were zeros or beside them, as a loss of power leaves "+
					"them: those lines are taken out", holes, rel))
			}
		}
		return nil
	})
	return told, err
}
