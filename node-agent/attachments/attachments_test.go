package attachments

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// photo is an attachment of so many bytes, all of them fill.
func photo(size int, fill byte) (wire.Attachment, []byte) {
	data := bytes.Repeat([]byte{fill}, size)
	sum := sha256.Sum256(data)
	return wire.Attachment{MediaType: "image/jpeg", Bytes: size, SHA256: hex.EncodeToString(sum[:])}, data
}

func put(t *testing.T, s *Store, sha string, offset int, data []byte) wire.AttachmentHeld {
	t.Helper()
	h, err := s.Put(sha, offset, data)
	if err != nil {
		t.Fatalf("put %d bytes at %d: %v", len(data), offset, err)
	}
	return h
}

func refusedAs(t *testing.T, err error, code string) {
	t.Helper()
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("it says %v, want a refusal of code %s", err, code)
	}
}

func TestPiecesMakeTheWholeAlsoAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "attachments")
	a, data := photo(100, 1)
	s := NewStore(dir)
	_, err := s.Put(a.SHA256, 0, data[:40])
	refusedAs(t, err, wire.CodeNotFound)
	if err := s.Name(a, "monday-1"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(a.SHA256, 40, data[40:])
	refusedAs(t, err, wire.CodeConflict)
	put(t, s, a.SHA256, 0, data[:40])
	s = NewStore(dir) // the agent was started again
	if h, err := s.Held(a.SHA256); err != nil || h.HeldBytes != 40 || h.Bytes != 100 {
		t.Fatalf("after a restart: %+v, %v", h, err)
	}
	put(t, s, a.SHA256, 0, data[:40]) // the answer was lost
	_, _, err = s.Read(a.SHA256, 0, 100)
	refusedAs(t, err, wire.CodeNotFound)
	_, err = s.Put(a.SHA256, 40, append(data[40:], 1))
	refusedAs(t, err, wire.CodeBadRequest)
	if h := put(t, s, a.SHA256, 40, data[40:]); h.HeldBytes != 100 {
		t.Errorf("whole: %+v", h)
	}
	got, size, err := s.Read(a.SHA256, 90, 100)
	if err != nil || size != 100 || !bytes.Equal(got, data[90:]) {
		t.Errorf("read %d bytes of %d: %v", len(got), size, err)
	}
	h, err := s.Archived(a.SHA256)
	if err != nil || !h.Archived || h.HeldBytes != 0 {
		t.Errorf("archived: %+v, %v", h, err)
	}
	if err := NewStore(dir).Name(a, "monday-1"); err != nil { // the note is sent again
		t.Fatal(err)
	}
	if h := put(t, NewStore(dir), a.SHA256, 0, data[:40]); !h.Archived || h.HeldBytes != 0 {
		t.Errorf("what the archive has is taken again: %+v", h)
	}
}

func TestWhatIsDamagedIsSentAgain(t *testing.T) {
	dir := t.TempDir()
	a, data := photo(100, 1)
	s := NewStore(dir)
	if err := s.Name(a, ""); err != nil {
		t.Fatal(err)
	}
	put(t, s, a.SHA256, 0, data[:40])
	// A power cut left other bytes than were written.
	if err := os.WriteFile(filepath.Join(dir, a.SHA256+partSuffix), make([]byte, 40), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := put(t, s, a.SHA256, 40, data[40:]); h.HeldBytes != 0 {
		t.Errorf("damaged bytes are kept: %+v", h)
	}
	if h := put(t, s, a.SHA256, 0, data); h.HeldBytes != 100 {
		t.Errorf("sent again: %+v", h)
	}
	// A crash came between the last piece and its check.
	if err := os.Rename(filepath.Join(dir, a.SHA256), filepath.Join(dir, a.SHA256+partSuffix)); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Held(a.SHA256); err != nil || h.HeldBytes != 99 {
		t.Errorf("unchecked bytes are whole: %+v, %v", h, err)
	}
	if h := put(t, s, a.SHA256, 99, data[99:]); h.HeldBytes != 100 {
		t.Errorf("its last byte sent again: %+v", h)
	}
}

//attack:phone photos without an end, to fill the node's disk | 64 MiB are kept, and those begun count whole
func TestAttachmentsAreBounded(t *testing.T) {
	s := NewStore(t.TempDir())
	s.most = 250
	var last []byte
	for i := range byte(3) {
		a, data := photo(100, i)
		if err := s.Name(a, "monday-1"); err != nil {
			t.Fatal(err)
		}
		_, err := s.Put(a.SHA256, 0, data[:1])
		if i < 2 && err != nil {
			t.Errorf("photo %d: %v", i, err)
		} else if i == 2 {
			refusedAs(t, err, wire.CodeDiskFull)
			last = data
		}
	}
	if err := s.Forget("monday-1"); err != nil {
		t.Fatal(err)
	}
	a, _ := photo(100, 2)
	if err := s.Name(a, ""); err != nil {
		t.Fatal(err)
	}
	put(t, s, a.SHA256, 0, last)
}

//attack:phone notes that name photos and never send them | the oldest of 1,000 is forgotten
func TestWhatIsNamedIsBounded(t *testing.T) {
	s := NewStore(t.TempDir())
	s.mostNamed = 5
	var all []wire.Attachment
	name := func(size int) error {
		a, _ := photo(size, 7)
		err := s.Name(a, "")
		if err == nil {
			all = append(all, a)
			at := time.Unix(int64(1000+len(all)), 0)
			err = os.Chtimes(filepath.Join(s.dir, a.SHA256+namedSuffix), at, at)
		}
		return err
	}
	left := func(want ...int) {
		t.Helper()
		for i, a := range all {
			if _, err := s.Held(a.SHA256); (err == nil) != slices.Contains(want, i) {
				t.Errorf("number %d: %v; want %v left", i, err, want)
			}
		}
	}
	for i := range 5 {
		if err := name(i + 1); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, all[0].SHA256, 0, []byte{7}) // whole
	for _, i := range []int{4, 3} {
		if _, err := s.Archived(all[i].SHA256); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(2000+i), 0)
		if err := os.Chtimes(filepath.Join(s.dir, all[i].SHA256+namedSuffix), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]int{{0, 1, 2, 4, 5}, {0, 1, 2, 5, 6}, {0, 2, 5, 6, 7}} { // archived, archived, oldest
		if err := name(10 + i); err != nil {
			t.Fatal(err)
		}
		left(want...)
	}
	for _, i := range []int{2, 5, 6, 7} {
		put(t, s, all[i].SHA256, 0, []byte{7})
	}
	refusedAs(t, name(20), wire.CodeDiskFull)
	left(0, 2, 5, 6, 7)
}

// A note that was wrong about a file does not keep a right one from coming.
func TestWhatANoteSaidWronglyIsReplaced(t *testing.T) {
	a, data := photo(100, 1)
	wrong := a
	wrong.Bytes = 200
	s := NewStore(t.TempDir())
	if err := s.Name(wrong, ""); err != nil {
		t.Fatal(err)
	}
	put(t, s, a.SHA256, 0, make([]byte, 150))
	if err := s.Name(a, "monday-1"); err != nil {
		t.Fatal(err)
	}
	if h := put(t, s, a.SHA256, 0, data[:40]); h.HeldBytes != 40 || h.Bytes != 100 {
		t.Errorf("said rightly: %+v", h)
	}
	if err := s.Name(a, "monday-1"); err != nil { // the note is sent again
		t.Fatal(err)
	}
	if h := put(t, s, a.SHA256, 40, data[40:]); h.HeldBytes != 100 {
		t.Errorf("whole: %+v", h)
	}
	if err := s.Name(wrong, ""); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Held(a.SHA256); err != nil || h.HeldBytes != 100 || h.Bytes != 100 {
		t.Errorf("said wrongly of what was checked: %+v, %v", h, err)
	}
}
