package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Tail holds the records of an attempt while they come, and reads only what is new.
// The zero Tail holds none.
type Tail struct {
	// Wants reports whether a record is held; nil: each is. It is not changed while records are held.
	Wants func(wire.Record) bool

	key   wire.TrialKey
	files map[string]*tailed
	all   []wire.Record // as Read returned it last
}

// tailed is what was read of a file.
type tailed struct {
	file    fs.FileInfo
	readTo  int64 // bytes, to the end of its last whole line
	records []wire.Record
}

// Read returns all records that an attempt has now and that are wanted, as All does; they are valid until it is read
// again. A file that has become shorter, or that another has taken the place of, is read again from its beginning.
func (t *Tail) Read(a *Archive, k wire.TrialKey) ([]wire.Record, error) {
	files, err := a.bounded(k)
	if err != nil {
		return nil, err
	}
	if t.key != k || t.files == nil {
		*t = Tail{Wants: t.Wants, key: k, files: map[string]*tailed{}}
	}
	t.all = t.all[:0]
	for _, rel := range files {
		records, err := t.newest(a, rel)
		if err != nil {
			delete(t.files, rel)
			return nil, err
		}
		t.all = append(t.all, records...)
	}
	return t.all, nil
}

// Heard is when the newest of each node's records came, by the controller's file system, as they were read last.
func (t *Tail) Heard() map[string]time.Time {
	out := map[string]time.Time{}
	for rel, f := range t.files {
		if node, came := nodeOf(rel), f.file.ModTime(); came.After(out[node]) {
			out[node] = came
		}
	}
	return out
}

func (t *Tail) newest(a *Archive, rel string) ([]wire.Record, error) {
	now, err := os.Stat(a.disk.path(rel))
	if errors.Is(err, fs.ErrNotExist) {
		delete(t.files, rel)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", rel, err)
	}
	held := t.files[rel]
	if held == nil || !os.SameFile(held.file, now) || now.Size() < held.readTo {
		held = &tailed{}
		t.files[rel] = held
	}
	held.file = now
	if now.Size() == held.readTo {
		return held.records, nil
	}
	held.readTo, err = a.disk.linesFrom(rel, held.readTo, func(line []byte) error {
		r, err := recordOf(rel, line)
		if err == nil && (t.Wants == nil || t.Wants(r)) {
			held.add(r)
		}
		return err
	})
	return held.records, err
}

// add holds a record. Texts that it has in common with the one before are held once.
func (h *tailed) add(r wire.Record) {
	if n := len(h.records); n > 0 {
		before := h.records[n-1]
		share(&r.Kind, before.Kind)
		share(&r.Node, before.Node)
		share(&r.Epoch, before.Epoch)
		share(&r.Run, before.Run)
	}
	h.records = append(h.records, r)
}

func share(text *string, other string) {
	if *text == other {
		*text = other
	}
}
