// Package attachments keeps the photos and recordings of notes on a node's disk until a controller's archive has
// them. They come in pieces, after the note that names them, and apart from the spool, whose room is for records.
package attachments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// Most is how many bytes a node keeps, those that are still to come of what has begun among them.
	Most = 64 << 20
	// mostNamed bounds what notes have named: many more than Most holds of photos.
	mostNamed = 1000
)

// Store is a folder. What a note has named is a file SHA256.json; of its bytes, SHA256.part has those that have come,
// and SHA256 is the whole, which was checked.
type Store struct {
	dir       string
	most      int64
	mostNamed int
	mu        sync.Mutex
}

// named is what is known of an attachment.
type named struct {
	Attachment wire.Attachment `json:"attachment"`
	Run        string          `json:"run,omitempty"` // of its note; empty: of none
	Archived   bool            `json:"archived,omitempty"`
}

const (
	namedSuffix = ".json"
	partSuffix  = ".part"
)

// NewStore makes a store in a folder, which need not be there.
func NewStore(dir string) *Store { return &Store{dir: dir, most: Most, mostNamed: mostNamed} }

func (s *Store) path(sha, suffix string) string { return filepath.Join(s.dir, sha+suffix) }

// Name notes, durably, that a note has named an attachment, whose bytes may come from now on. What an earlier note has
// said of one stays when its bytes were checked; else it may have been wrong, and they come again.
func (s *Store) Name(a wire.Attachment, run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, err := s.named(a.SHA256); err == nil {
		if n.Archived || n.Attachment == a || s.size(a.SHA256, "") > 0 {
			return nil
		}
		if err := s.drop(a.SHA256); err != nil {
			return err
		}
	} else if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("name attachment: %w", err)
	} else if err := s.makePlace(); err != nil {
		return fmt.Errorf("name attachment: %w", err)
	}
	return s.write(named{Attachment: a, Run: run})
}

func (s *Store) write(n named) error {
	text, err := json.Marshal(n)
	if err == nil {
		err = durable.Replace(s.path(n.Attachment.SHA256, namedSuffix), string(text))
	}
	if err != nil {
		return fmt.Errorf("note attachment %s: %w", n.Attachment.SHA256, err)
	}
	return nil
}

// makePlace forgets one when too many are named: the oldest that is archived, or else the oldest that has no bytes
// here.
func (s *Store) makePlace() error {
	all, err := s.names()
	if err != nil || len(all) < s.mostNamed {
		return err
	}
	first, archived, at := "", false, time.Time{}
	for _, sha := range all {
		n, err := s.named(sha)
		st, serr := os.Stat(s.path(sha, namedSuffix))
		if err != nil || serr != nil || s.heldBytes(sha) > 0 || archived && !n.Archived {
			continue
		}
		if first == "" || n.Archived && !archived || st.ModTime().Before(at) {
			first, archived, at = sha, n.Archived, st.ModTime()
		}
	}
	if first == "" {
		return &wire.Error{Code: wire.CodeDiskFull, Message: fmt.Sprintf("no place for the name of an attachment: the "+
			"node has bytes of %d", len(all)), Cure: collect}
	}
	return os.Remove(s.path(first, namedSuffix))
}

// collect is what makes room.
const collect = "have the controller collect them: fieldmesh pull RUN, or, where the run's archive is gone, drop " +
	"them: fieldmesh nodes forget RUN"

// names are what notes have named.
func (s *Store) names() (out []string, err error) {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		if sha, is := strings.CutSuffix(f.Name(), namedSuffix); is {
			out = append(out, sha)
		}
	}
	return out, nil
}

// named is what is known of an attachment; not_found for one that no note has named.
func (s *Store) named(sha string) (n named, err error) {
	text, err := os.ReadFile(s.path(sha, namedSuffix))
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(text, &n) != nil {
		return n, &wire.Error{Code: wire.CodeNotFound, Message: "no note has named an attachment " + sha,
			Cure: "send the note first"}
	}
	if err != nil {
		return n, fmt.Errorf("read attachment: %w", err)
	}
	return n, nil
}

func (s *Store) size(sha, suffix string) int64 {
	st, err := os.Stat(s.path(sha, suffix))
	if err != nil {
		return 0
	}
	return st.Size()
}

// heldBytes is how much of an attachment is here.
func (s *Store) heldBytes(sha string) int64 { return max(s.size(sha, ""), s.size(sha, partSuffix)) }

// Held tells how much is here.
func (s *Store) Held(sha string) (wire.AttachmentHeld, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.named(sha)
	return s.held(n), err
}

func (s *Store) held(n named) wire.AttachmentHeld {
	h := wire.AttachmentHeld{SHA256: n.Attachment.SHA256, Bytes: n.Attachment.Bytes, Archived: n.Archived}
	h.HeldBytes = int(s.size(h.SHA256, ""))
	if h.HeldBytes == 0 {
		// What is not checked yet is not whole.
		h.HeldBytes = int(min(s.size(h.SHA256, partSuffix), int64(h.Bytes-1)))
	}
	return h
}

// Put takes the bytes that follow those that are here; what is here already is passed over. When the last ones have
// come and all are not what their SHA-256 says, none is kept, and they have to be sent again.
func (s *Store) Put(sha string, offset int, data []byte) (wire.AttachmentHeld, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.named(sha)
	if err != nil {
		return wire.AttachmentHeld{}, err
	}
	h := s.held(n)
	switch {
	case h.Archived || h.HeldBytes == h.Bytes || offset < h.HeldBytes:
		return h, nil
	case offset > h.HeldBytes:
		return h, &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("byte %d of attachment %s does not "+
			"follow: %d are held", offset, sha, h.HeldBytes), Cure: "go on from there"}
	case offset+len(data) > h.Bytes:
		return h, wire.Errorf(wire.CodeBadRequest, "%d bytes from byte %d on are more than attachment %s has: %d",
			len(data), offset, sha, h.Bytes)
	}
	if err := s.room(n); err != nil {
		return h, err
	}
	if err := s.append(sha, offset, data); err != nil {
		return h, fmt.Errorf("keep attachment: %w", err)
	}
	if offset+len(data) == h.Bytes {
		if err := s.close(sha); err != nil {
			return h, fmt.Errorf("keep attachment: %w", err)
		}
	}
	return s.held(n), nil
}

// room refuses to begin what would be too much.
func (s *Store) room(begun named) error {
	all, err := s.names()
	if err != nil {
		return fmt.Errorf("keep attachment: %w", err)
	}
	total := int64(0)
	for _, sha := range all {
		if n, err := s.named(sha); err == nil && (sha == begun.Attachment.SHA256 || s.heldBytes(sha) > 0) {
			total += int64(n.Attachment.Bytes)
		}
	}
	if total <= s.most {
		return nil
	}
	return &wire.Error{Code: wire.CodeDiskFull, Message: fmt.Sprintf("no room for an attachment of %d bytes: the node "+
		"keeps at most %d MiB of them", begun.Attachment.Bytes, s.most>>20),
		Cure: collect}
}

// append writes bytes at an offset, and throws away what a write that failed has left beyond it.
func (s *Store) append(sha string, offset int, data []byte) (err error) {
	f, err := os.OpenFile(s.path(sha, partSuffix), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(int64(offset)); err != nil {
		return err
	}
	if _, err := f.WriteAt(data, int64(offset)); err != nil {
		return err
	}
	return f.Sync()
}

// close checks what has come whole.
func (s *Store) close(sha string) error {
	f, err := os.Open(s.path(sha, partSuffix))
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != sha {
		return os.Remove(s.path(sha, partSuffix))
	}
	if err := os.Rename(s.path(sha, partSuffix), s.path(sha, "")); err != nil {
		return err
	}
	return durable.Folder(s.dir)
}

// Read gives at most limit bytes of a whole attachment from an offset on, and its size.
func (s *Store) Read(sha string, offset int64, limit int) (data []byte, size int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.named(sha)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(s.path(sha, ""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("attachment %s is not whole here: %d "+
			"of %d bytes", sha, s.held(n).HeldBytes, n.Attachment.Bytes),
			Cure: "keep the phone's app open within reach of the node"}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read attachment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size = int64(n.Attachment.Bytes)
	data = make([]byte, max(0, min(int64(limit), size-offset)))
	got, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("read attachment: %w", err)
	}
	return data[:got], size, nil
}

// Archived lets the bytes go: an archive has them.
func (s *Store) Archived(sha string) (wire.AttachmentHeld, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.named(sha)
	if err != nil {
		return wire.AttachmentHeld{}, err
	}
	n.Archived = true
	if err := s.write(n); err != nil {
		return wire.AttachmentHeld{}, err
	}
	err = s.drop(sha)
	return s.held(n), err
}

// Forget lets all go that belongs to a run's notes.
func (s *Store) Forget(run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.names()
	for _, sha := range all {
		if n, bad := s.named(sha); bad == nil && n.Run == run {
			err = errors.Join(err, s.drop(sha), os.Remove(s.path(sha, namedSuffix)))
		}
	}
	return err
}

func (s *Store) drop(sha string) error {
	var errs error
	for _, suffix := range []string{"", partSuffix} {
		if err := os.Remove(s.path(sha, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, fmt.Errorf("remove attachment: %w", err))
		}
	}
	return errs
}
