package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

// The states of a journal's entry.
const (
	statePrepared = "prepared" // its change may be in force, wholly or in part
	stateUndone   = "undone"
	stateReverted = "reverted" // undone, and to be undone again after a newer one that is not
)

// maxEntryBytes bounds one line of the journal.
const maxEntryBytes = 4 << 20

// entry is one line of the journal.
type entry struct {
	ID     uint64       `json:"id"`
	State  string       `json:"state"`
	Scope  string       `json:"scope,omitempty"`
	Change change.Boxed `json:"change,omitzero"`
	Undo   change.Undo  `json:"undo,omitempty"`
	Note   string       `json:"note,omitempty"`

	undone bool // the newest of its lines is stateReverted
}

// journalFile is what the journal needs of *os.File; tests cut it short.
type journalFile interface {
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Close() error
}

// journal is an append-only file of checksummed lines,
//
//	crc32c-in-8-hex-digits SP json LF
//
// each on disk before append returns.
type journal struct {
	file   journalFile
	path   string
	size   int64 // up to here every line is whole and on disk
	broken error // set when the tail could not be made good
	frozen bool  // broken since it was opened: it is only read, and not emptied
	// damage it was opened with that could not be copied aside, with the name that its copy would have
	uncopied []string
	kept     string
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// encodeEntry makes a journal's line.
func encodeEntry(e entry) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode journal entry %d: %w", e.ID, err)
	}
	if len(body) > maxEntryBytes {
		return nil, fmt.Errorf("encode journal entry %d: %d bytes, more than %d", e.ID, len(body), maxEntryBytes)
	}
	return seal(body), nil
}

// seal makes a line of an entry's JSON.
func seal(body []byte) []byte {
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(body, castagnoli()), body)
}

// decodeEntry reads a line without its LF. sound is false when the line is not
// as it was written; an error with a sound line means that this version does
// not know what it says.
func decodeEntry(line []byte) (e entry, sound bool, err error) {
	if len(line) < 10 || line[8] != ' ' {
		return entry{}, false, errors.New("not a journal line")
	}
	body := line[9:]
	if fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli())) != string(line[:8]) {
		return entry{}, false, errors.New("checksum does not hold")
	}
	if err := e.decode(body); err != nil {
		return entry{}, true, fmt.Errorf("decode journal entry: %w", err)
	}
	known := e.State == stateUndone || e.State == stateReverted || e.State == statePrepared && e.Undo != nil
	if !known {
		return entry{}, true, fmt.Errorf("decode journal entry %d: state %q is not known or lacks its undo", e.ID,
			e.State)
	}
	return e, true, nil
}

// decode reads an entry's JSON: the change reports what kind the undo is.
func (e *entry) decode(body []byte) error {
	in := struct {
		*entry
		Undo *json.RawMessage `json:"undo"`
	}{entry: e}
	if err := change.DecodeStrict(body, &in); err != nil || in.Undo == nil {
		return err
	}
	var err error
	if e.Undo, err = change.EmptyUndo(e.Change.Change); err != nil {
		return err
	}
	return change.DecodeStrict(*in.Undo, e.Undo)
}

// replayed is what a journal held.
type replayed struct {
	pending []entry // prepared and not undone, oldest first
	lastID  uint64
	length  int64    // of the sound part; what follows is a torn tail
	damage  []string // lines in the middle that cannot be used
	harmed  int64    // the length up to the last of them, with the line by which it counts
}

// replay reads a journal's bytes. A tail that was torn by a crash is no
// damage: its change was never made.
func replay(data []byte) replayed {
	var r replayed
	var badLines []string
	offset := int64(0)
	for number := 1; len(data) > 0; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		data = rest
		offset += int64(len(line)) + 1
		e, sound, err := decodeEntry(line)
		if err != nil {
			badLines = append(badLines, fmt.Sprintf("journal line %d: %v", number, err))
		}
		if !sound {
			continue
		}
		r.length = offset // so that unsound lines count only before a sound one
		if len(badLines) > 0 {
			r.harmed = offset
		}
		r.damage = append(r.damage, badLines...)
		badLines = nil
		if err == nil {
			r.take(e)
		}
	}
	return r
}

func (r *replayed) take(e entry) {
	r.lastID = max(r.lastID, e.ID)
	at := slices.IndexFunc(r.pending, func(p entry) bool { return p.ID == e.ID })
	switch {
	case e.State == statePrepared && at < 0:
		r.pending = append(r.pending, e)
	case e.State == statePrepared: // made again, in its old place
		r.pending[at] = e
	case at < 0:
	case e.State == stateReverted:
		r.pending[at].undone = true
	default:
		r.pending = slices.Delete(r.pending, at, at+1)
	}
}

// openJournal opens or creates dir's journal, cuts a torn tail off, and says
// what it holds. A journal with damage is copied aside first: it is emptied when
// all that can be undone is, and each life tells what the copies lack until somebody deletes them.
// One with which copying fails is broken: what it holds is undone all the same.
func openJournal(dir string) (*journal, replayed, error) {
	path := filepath.Join(dir, "journal")
	f, readOnly, err := openOwn(path)
	if err != nil {
		return nil, replayed{}, fmt.Errorf("open journal: %w", err)
	}
	j, r, err := readJournal(f, path, readOnly)
	if err != nil {
		return nil, replayed{}, errors.Join(fmt.Errorf("open journal %q: %w", path, err), f.Close())
	}
	return j, r, nil
}

// openOwn opens a file of the state directory, or makes it. On a disk that has become read-only what is there is
// read: a file system with a fault must not keep changes in force.
func openOwn(path string) (f *os.File, readOnly bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) {
		if f, there := os.Open(path); there == nil {
			return f, true, nil
		}
	}
	return f, false, err
}

func readJournal(f interface {
	io.Reader
	journalFile
}, path string, readOnly bool) (*journal, replayed, error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, replayed{}, err
	}
	r := replay(data)
	j := &journal{file: f, path: path, size: r.length}
	if readOnly {
		err = &os.PathError{Op: "write", Path: path, Err: unix.EROFS}
	}
	for i := range r.damage {
		r.damage[i] += fmt.Sprintf("; undo by hand what that line of %s says, then start the agent again", path)
	}
	if len(r.damage) > 0 {
		j.kept = fmt.Sprintf("%s.damaged-%08x", path, crc32.Checksum(data[:r.harmed], castagnoli()))
		if err == nil {
			err = keepDamaged(j.kept, data)
		}
		if err == nil {
			r.damage, j.kept = nil, "" // its copy tells it
		}
	}
	j.uncopied = r.damage
	r.damage = j.damage()
	if err == nil && int64(len(data)) > r.length {
		err = j.cut(r.length)
	}
	if err == nil {
		err = durable.Folder(filepath.Dir(path))
	}
	if err != nil {
		j.broken, j.frozen = fmt.Errorf("%w; make %s writable, then start the agent again", err, path), true
	}
	return j, r, nil
}

// keepDamaged returns when a copy of a journal is on disk. Another damage has another
// name; the same one, which each life finds until all else is undone, has the same.
func keepDamaged(kept string, data []byte) error {
	f, err := os.OpenFile(kept, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = durable.Folder(filepath.Dir(kept))
	}
	if err != nil {
		return fmt.Errorf("keep a copy of a damaged journal: %w", err)
	}
	return nil
}

// damage is what the journal, and the copies of a damaged one that are there now, lack.
func (j *journal) damage() []string {
	damage := slices.Clone(j.uncopied)
	files, err := os.ReadDir(filepath.Dir(j.path))
	if err != nil {
		damage = append(damage, fmt.Sprintf("look for copies of a damaged journal: %v", err))
	}
	for _, f := range files {
		kept := filepath.Join(filepath.Dir(j.path), f.Name())
		if kept == j.kept || !strings.HasPrefix(kept, j.path+".damaged-") {
			continue
		}
		data, err := os.ReadFile(kept)
		if err != nil {
			damage = append(damage, fmt.Sprintf("read the copy of a damaged journal: %v", err))
		}
		for _, line := range replay(data).damage {
			damage = append(damage, fmt.Sprintf("%s; undo by hand what that line of %s says, delete this file, then "+
				"run fieldmesh-agent restore", line, kept))
		}
	}
	return damage
}

// append writes an entry and returns when it is on disk.
func (j *journal) append(e entry) error {
	if j.broken != nil {
		return fmt.Errorf("write journal: %w", j.broken)
	}
	line, err := encodeEntry(e)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(line, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		// Part of the line may be there. What follows it later must not be
		// read as its continuation.
		if cut := j.cut(j.size); cut != nil {
			j.broken = cut
		}
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(line))
	return nil
}

// clear empties the journal: nothing is pending.
func (j *journal) clear() error {
	if j.size == 0 {
		return nil
	}
	if j.frozen {
		return fmt.Errorf("empty journal: %w", j.broken)
	}
	if err := j.cut(0); err != nil {
		return fmt.Errorf("empty journal: %w", err)
	}
	j.size, j.broken = 0, nil
	return nil
}

func (j *journal) cut(size int64) error {
	if err := j.file.Truncate(size); err != nil {
		return fmt.Errorf("cut journal at %d: %w", size, err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }
