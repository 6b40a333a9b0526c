package attached

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// fakeNode has one photo, and gives it in pieces of 40 bytes.
type fakeNode struct {
	photo    []byte
	held     int // of it; grows by 10 with every question
	archived bool
	read     []int64 // from which bytes it was read
	damaged  int     // so many of its first answers
	away     error
}

func (f *fakeNode) sha() string {
	sum := sha256.Sum256(f.photo)
	return hex.EncodeToString(sum[:])
}

func (f *fakeNode) Attachment(context.Context, string) (wire.AttachmentHeld, error) {
	f.held = min(f.held+10, len(f.photo))
	return wire.AttachmentHeld{SHA256: f.sha(), Bytes: len(f.photo), HeldBytes: f.held, Archived: f.archived}, f.away
}

func (f *fakeNode) AttachmentData(_ context.Context, _ string, offset int64, limit int) ([]byte, error) {
	f.read = append(f.read, offset)
	if f.away != nil && offset > 0 {
		return nil, f.away
	}
	data := bytes.Clone(f.photo[offset:min(offset+min(int64(limit), 40), int64(len(f.photo)))])
	if f.damaged > 0 {
		f.damaged--
		data[0]++
	}
	return data, nil
}

func (f *fakeNode) Archived(context.Context, string) (wire.AttachmentHeld, error) {
	f.archived = true
	return wire.AttachmentHeld{Archived: true}, nil
}

// newRun is an archive with a note that names the node's photo, twice: the note was sent again.
func newRun(t *testing.T, f *fakeNode) (*archive.Archive, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	a, err := archive.Create(dir, synthetic.Info(synthetic.Options{Seed: 4, Speeds: []float64{5.6}, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // again, where the test has closed it
	for seq := range uint64(2) {
		add(t, a, f, "1", seq+1)
	}
	return a, dir
}

func add(t *testing.T, a *archive.Archive, f *fakeNode, id string, seq uint64) {
	t.Helper()
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: seq, Run: "synthetic-4"},
		Body: &wire.Noted{ID: id, Note: "mark", Text: "bus", By: "phone", Attachment: &wire.Attachment{
			MediaType: "image/jpeg", Bytes: len(f.photo), SHA256: f.sha()}}}.MarshalJSON()
	if err == nil {
		err = a.Append("car", [][]byte{line})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fetched(t *testing.T, a *archive.Archive, f *fakeNode) []Lacking {
	t.Helper()
	lacking, err := fetch(t.Context(), a, map[string]*fakeNode{"car": f}, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return lacking
}

func TestAPhotoComesWholeOverACut(t *testing.T) {
	f := &fakeNode{photo: bytes.Repeat([]byte("jpeg"), 25), away: errors.New("no route")}
	a, dir := newRun(t, f)
	if got := fetched(t, a, f); len(got) != 1 || !strings.Contains(got[0].String(), `photo "bus" of node car: no route`) {
		t.Errorf("a node that is away: %v", got)
	}
	f.away, f.held = nil, 50 // the phone is just giving the rest
	cut := errors.New("cut")
	node := cutNode{f, &cut}
	if got, err := fetch(t.Context(), a, map[string]cutNode{"car": node}, 20*time.Millisecond); err != nil ||
		len(got) != 1 || !errors.Is(got[0].Err, cut) {
		t.Fatalf("a cut: %v, %v", got, err)
	}
	if f.archived {
		t.Fatal("the node lets go what the archive does not have")
	}
	f.read = nil
	if got := fetched(t, a, f); got != nil || !f.archived || len(f.read) == 0 || f.read[0] != 40 {
		t.Errorf("after the cut: %v, archived %v, read from %v", got, f.archived, f.read)
	}
	path := filepath.Join(dir, "attachments", f.sha()+".jpg")
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, f.photo) {
		t.Errorf("the archive has %q, %v", data, err)
	}
	f.archived = false // the word was lost
	if got := fetched(t, a, f); got != nil || !f.archived {
		t.Errorf("what the archive has: %v, archived %v", got, f.archived)
	}
}

// cutNode gives the first piece, and then nothing.
type cutNode struct {
	*fakeNode
	cut *error
}

func (c cutNode) AttachmentData(ctx context.Context, sha string, offset int64, limit int) ([]byte, error) {
	if offset > 0 {
		return nil, *c.cut
	}
	return c.fakeNode.AttachmentData(ctx, sha, offset, limit)
}

// silentNode has nothing of any photo.
type silentNode struct{ *fakeNode }

func (s silentNode) Attachment(context.Context, string) (wire.AttachmentHeld, error) {
	return wire.AttachmentHeld{Bytes: len(s.photo)}, nil
}

func TestAPhoneThatIsAwayIsWaitedForOnce(t *testing.T) {
	f := &fakeNode{photo: []byte("0")}
	a, _ := newRun(t, f)
	for i := range byte(4) {
		f.photo = []byte{'1' + i}
		add(t, a, f, string(f.photo)+"a", uint64(10+i))
	}
	const wait = 200 * time.Millisecond
	begun := time.Now()
	got, err := fetch(t.Context(), a, map[string]silentNode{"car": {f}}, wait)
	if err != nil || len(got) != 5 || !errors.Is(got[0].Err, errNotDelivered) {
		t.Errorf("nothing was delivered: %v, %v", got, err)
	}
	if took := time.Since(begun); took < wait || took > 3*wait {
		t.Errorf("it took %v", took)
	}
}

func TestADamagedPhotoIsFetchedAgain(t *testing.T) {
	f := &fakeNode{photo: bytes.Repeat([]byte("jpeg"), 25), held: 100, damaged: 1}
	a, _ := newRun(t, f)
	if got := fetched(t, a, f); got != nil || !f.archived {
		t.Errorf("damaged once: %v", got)
	}
	f = &fakeNode{photo: bytes.Repeat([]byte("jpeg"), 25), held: 100, damaged: 1000}
	a, _ = newRun(t, f)
	if got := fetched(t, a, f); len(got) != 1 || f.archived || !errors.Is(got[0].Err, archive.ErrOtherCapture) {
		t.Errorf("damaged each time: %v, archived %v", got, f.archived)
	}
}

func TestVerifyTellsOfPhotos(t *testing.T) {
	f := &fakeNode{photo: bytes.Repeat([]byte("jpeg"), 25), held: 100}
	a, dir := newRun(t, f)
	verified := func() []archive.Finding {
		t.Helper()
		if err := a.Finish(); err != nil {
			t.Fatal(err)
		}
		found, err := Verify(dir)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := verified(); len(got) != 1 || got[0].Problem != archive.Unfinished ||
		!strings.Contains(got[0].Detail, "photo \"bus\" has not come from node car") {
		t.Errorf("a photo that has not come: %v", got)
	}
	if got := fetched(t, a, f); got != nil { // into a run that was finished
		t.Fatal(got)
	}
	if got := verified(); got != nil {
		t.Errorf("a photo that has come: %v", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Copy(dir, dir+"-2"); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(dir + "-2"); got != nil || err != nil {
		t.Errorf("a copy: %v, %v", got, err)
	}
	path := filepath.Join(dir, "attachments", f.sha()+".jpg")
	if err := os.WriteFile(path, bytes.Repeat([]byte("JPEG"), 25), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(dir); err != nil || len(got) != 1 || got[0].Problem != archive.Changed {
		t.Errorf("a photo that was changed: %v, %v", got, err)
	}
}
