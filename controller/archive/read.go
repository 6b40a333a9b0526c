package archive

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Attempt is one attempt at a trial as the archive holds it.
type Attempt struct {
	wire.TrialKey
	Nodes   []string      // whose records are held, sorted; "field" is the emulated field
	Verdict *wire.Verdict // absent while undecided
	Sealed  bool
}

// errStop ends the reading of lines without being an error.
var errStop = errors.New("stop")

// lines calls do with every whole line of a file; a file that does not exist
// has none, and a last line without newline is still being written.
func (d disk) lines(rel string, do func([]byte) error) error {
	_, err := d.linesFrom(rel, 0, do)
	return err
}

// linesFrom does so from the beginning of a line, and returns where the last whole
// line ends.
func (d disk) linesFrom(rel string, from int64, do func([]byte) error) (to int64, err error) {
	f, err := os.Open(d.path(rel))
	if errors.Is(err, fs.ErrNotExist) {
		return from, nil
	}
	if err != nil {
		return from, fmt.Errorf("read %s: %w", rel, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, fmt.Errorf("read %s: %w", rel, err)
	}
	to = from
	r := bufio.NewReaderSize(f, 256<<10)
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return to, nil
			}
			return to, fmt.Errorf("read %s: %w", rel, err)
		}
		if len(long)+len(part) > lineMost {
			return to, fmt.Errorf("read %s: a line has more than %d MiB, as no record has", rel, lineMost>>20)
		}
		if err != nil { // there is more of the line
			long = append(long, part...)
			continue
		}
		line := slices.Concat(long, part[:len(part)-1]) // which may be kept
		long = nil
		to += int64(len(line)) + 1
		if err := do(line); err != nil {
			return to, err
		}
	}
}

func (d disk) size(rel string) int64 {
	st, err := os.Stat(d.path(rel))
	if err != nil {
		return 0
	}
	return st.Size()
}

// names lists a folder; one that does not exist is empty.
func (d disk) names(rel string) ([]string, error) {
	entries, err := os.ReadDir(d.path(rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", rel, err)
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// folders lists the attempts that have a folder, in order.
func (a *Archive) folders() ([]wire.TrialKey, error) {
	names, err := a.disk.names("trials")
	if err != nil {
		return nil, err
	}
	var out []wire.TrialKey
	for _, n := range names {
		if k, ok := parseAttempt(n); ok {
			out = append(out, k)
		}
	}
	return out, nil
}

// Trials lists the attempts that have records or a verdict, in order.
func (a *Archive) Trials() ([]Attempt, error) {
	keys, err := a.folders()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.decisions {
		keys = append(keys, v.TrialKey)
	}
	slices.SortFunc(keys, inOrder)
	keys = slices.Compact(keys)
	out := make([]Attempt, 0, len(keys))
	for _, k := range keys {
		at := Attempt{TrialKey: k, Sealed: a.disk.exists(filepath.Join(trialDir(k), manifestFile))}
		if v := a.verdictOf(k); v != nil {
			at.Verdict = new(*v)
		}
		files, err := a.recordFiles(k)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			at.Nodes = append(at.Nodes, nodeOf(f))
		}
		slices.Sort(at.Nodes)
		at.Nodes = slices.Compact(at.Nodes)
		out = append(out, at)
	}
	return out, nil
}

func inOrder(x, y wire.TrialKey) int {
	return cmp.Or(cmp.Compare(x.Trial, y.Trial), cmp.Compare(x.Attempt, y.Attempt))
}

// recordFiles lists the files of an attempt's records: those in time, then
// those that came late.
func (a *Archive) recordFiles(k wire.TrialKey) ([]string, error) {
	var out []string
	for _, dir := range []string{filepath.Join(trialDir(k), "records"), filepath.Join("late", attemptName(k))} {
		files, err := a.disk.recorded(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// recorded lists the files of nodes' records in a folder.
func (d disk) recorded(dir string) (files []string, err error) {
	names, err := d.names(dir)
	for _, n := range names {
		if strings.HasSuffix(n, ".ndjson") && !strings.HasPrefix(n, ".") { // macOS leaves "._car.ndjson" beside a file
			files = append(files, filepath.Join(dir, n))
		}
	}
	return files, err
}

// Recorded is how many bytes of an attempt's records are here.
func (a *Archive) Recorded(k wire.TrialKey) (bytes int64, err error) {
	files, err := a.recordFiles(k)
	for _, rel := range files {
		bytes += a.disk.size(rel)
	}
	return bytes, err
}

// nodeOf is whose records a file has.
func nodeOf(rel string) string { return strings.TrimSuffix(filepath.Base(rel), ".ndjson") }

// openRecordFiles lists the files that an append may still have been writing.
func (a *Archive) openRecordFiles() ([]string, error) {
	out, err := a.betweenFiles()
	if err != nil {
		return nil, err
	}
	attempts, err := a.folders()
	for _, k := range attempts {
		files, ferr := a.recordFiles(k)
		err = errors.Join(err, ferr)
		for _, rel := range files {
			if _, in := attemptOf(rel); !in || !a.sealed[k] {
				out = append(out, rel)
			}
		}
	}
	return out, err
}

// Records streams an attempt's records, node by node in the order in which they
// were stored. A line that is not a record ends the stream with an error.
func (a *Archive) Records(trial, attempt int) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		files, err := a.recordFiles(wire.TrialKey{Trial: trial, Attempt: attempt})
		if err != nil {
			yield(wire.Record{}, err)
			return
		}
		a.stream(files, yield)
	}
}

// Between streams the records of all nodes that belong to no trial.
func (a *Archive) Between() iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		files, err := a.betweenFiles()
		if err != nil {
			yield(wire.Record{}, err)
			return
		}
		a.stream(files, yield)
	}
}

func (a *Archive) stream(files []string, yield func(wire.Record, error) bool) {
	for _, rel := range files {
		number := 0
		err := a.disk.lines(rel, func(line []byte) error {
			number++
			r, err := recordOf(rel, line)
			if err != nil {
				return fmt.Errorf("line %d: %w; `fieldmesh verify` says which files were changed", number, err)
			}
			if !yield(r, nil) {
				err = errStop
			}
			return err
		})
		if errors.Is(err, errStop) {
			return
		}
		if err != nil {
			yield(wire.Record{}, err)
			return
		}
	}
}

// recordOf reads a line of a file.
func recordOf(rel string, line []byte) (r wire.Record, err error) {
	if err = room.FitsMemory(line); err == nil {
		// Called by name: json.Unmarshal would look through the line once more.
		err = r.UnmarshalJSON(line)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", rel, err)
	}
	return r, nil
}

// bounded lists the files of an attempt, unless they are more than can be held.
func (a *Archive) bounded(k wire.TrialKey) ([]string, error) {
	files, err := a.recordFiles(k)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for _, rel := range files {
		size += a.disk.size(rel)
	}
	if size > attemptMost {
		return nil, fmt.Errorf("the records of trial %d attempt %d have %d MiB, and may have %d", k.Trial, k.Attempt,
			size>>20, attemptMost>>20)
	}
	return files, nil
}

// All collects an attempt's records; an attempt is small enough to be held.
func (a *Archive) All(trial, attempt int) ([]wire.Record, error) {
	files, err := a.bounded(wire.TrialKey{Trial: trial, Attempt: attempt})
	if err != nil {
		return nil, err
	}
	return a.collect(files)
}

// OfNode collects an attempt's records of one node.
func (a *Archive) OfNode(trial, attempt int, node string) ([]wire.Record, error) {
	files, err := a.bounded(wire.TrialKey{Trial: trial, Attempt: attempt})
	if err != nil {
		return nil, err
	}
	return a.collect(slices.DeleteFunc(files, func(rel string) bool { return nodeOf(rel) != node }))
}

func (a *Archive) collect(files []string) (out []wire.Record, err error) {
	a.stream(files, func(r wire.Record, failed error) bool {
		if failed == nil {
			out = append(out, r)
		}
		err = failed
		return failed == nil
	})
	return out, err
}

// CopyLines writes every stored line of the run as it is, trials in order and
// what lies between them last.
func (a *Archive) CopyLines(w io.Writer) error {
	attempts, err := a.Trials()
	if err != nil {
		return err
	}
	copyLine := func(line []byte) error {
		_, err := w.Write(append(line, '\n'))
		return err
	}
	for _, at := range attempts {
		if err := a.EachLine(at.TrialKey, copyLine); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	if err := a.EachLine(wire.TrialKey{}, copyLine); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}

// EachLine gives every stored line of an attempt as it is, without its newline
// and valid until the next; with a zero key those that belong to no trial.
func (a *Archive) EachLine(k wire.TrialKey, do func(line []byte) error) error {
	files, err := a.betweenFiles()
	if k.Trial != 0 {
		files, err = a.recordFiles(k)
	}
	if err != nil {
		return err
	}
	for _, rel := range files {
		if err := a.disk.lines(rel, do); err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
	}
	return nil
}

// betweenFiles lists the files of the records that belong to no trial.
func (a *Archive) betweenFiles() ([]string, error) { return a.disk.recorded("between") }

// Begun reports whether an attempt has a folder: it is under way, or was.
func (a *Archive) Begun(k wire.TrialKey) bool { return a.disk.exists(trialDir(k)) }

// Latest is the attempt whose records were written last, and when, by the controller's file system; false before the
// first. Of the attempts that are sealed, whose late records are stragglers, only the one sealed last is looked at.
func (a *Archive) Latest() (k wire.TrialKey, written time.Time, ok bool) {
	keys, err := a.folders()
	if err != nil {
		return k, written, false
	}
	for _, key := range a.growing(keys) {
		files, err := a.recordFiles(key)
		if err != nil {
			continue // gone in between: not the latest
		}
		for _, f := range files {
			if st, err := os.Stat(a.disk.path(f)); err == nil && st.ModTime().After(written) {
				k, written, ok = key, st.ModTime(), true
			}
		}
	}
	return k, written, ok
}

// growing leaves of attempts those that are not sealed, and the one that was sealed last.
func (a *Archive) growing(keys []wire.TrialKey) (out []wire.TrialKey) {
	var last wire.TrialKey
	var when time.Time
	for _, k := range keys {
		st, err := os.Stat(a.disk.path(filepath.Join(trialDir(k), manifestFile)))
		switch {
		case err != nil:
			out = append(out, k)
		case st.ModTime().After(when):
			last, when = k, st.ModTime()
		}
	}
	if !when.IsZero() {
		out = append(out, last)
	}
	return out
}
