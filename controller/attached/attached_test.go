package attached

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func (f *fakeNode) sha() string { return shaOf(f.photo) }

func shaOf(photo []byte) string {
	sum := sha256.Sum256(photo)
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
		add(t, a, "car", f.photo, "1", seq+1)
	}
	return a, dir
}

// add adds a note of a node's phone that names a photo.
func add(t *testing.T, a *archive.Archive, node string, photo []byte, id string, seq uint64) {
	t.Helper()
	line, err := wire.Record{Header: wire.Header{Node: node, Epoch: "e", Seq: seq, Run: "synthetic-4"},
		Body: &wire.Noted{ID: id, Note: "mark", Text: "bus", By: "phone", Attachment: &wire.Attachment{
			MediaType: "image/jpeg", Bytes: len(photo), SHA256: shaOf(photo)}}}.MarshalJSON()
	if err == nil {
		err = a.Append(node, [][]byte{line})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fetched(t *testing.T, a *archive.Archive, f *fakeNode) []Lacking {
	t.Helper()
	return fetch(t.Context(), a, notesOf(t, a), map[string]*fakeNode{"car": f}, 20*time.Millisecond, time.Minute)
}

func notesOf(t *testing.T, a *archive.Archive) []Note {
	t.Helper()
	notes, err := Notes(a)
	if err != nil {
		t.Fatal(err)
	}
	return notes
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
	got := fetch(t.Context(), a, notesOf(t, a), map[string]cutNode{"car": node}, 20*time.Millisecond, time.Minute)
	if len(got) != 1 || !errors.Is(got[0].Err, cut) {
		t.Fatalf("a cut: %v", got)
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
		add(t, a, "car", f.photo, string(f.photo)+"a", uint64(10+i))
	}
	const wait = 200 * time.Millisecond
	begun := time.Now()
	got := fetch(t.Context(), a, notesOf(t, a), map[string]silentNode{"car": {f}}, wait, time.Minute)
	if len(got) != 5 || !errors.Is(got[0].Err, errNotDelivered) {
		t.Errorf("nothing was delivered: %v", got)
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
	if got := verified(); len(got) != 1 || got[0].Problem != Awaited || len(Wrong(got)) != 0 ||
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
	if got, err := Verify(dir); err != nil || len(Wrong(got)) != 1 || got[0].Problem != archive.Changed {
		t.Errorf("a photo that was changed: %v, %v", got, err)
	}
}

// mapNode has whole photos by their SHA-256.
type mapNode struct {
	mu       sync.Mutex
	photos   map[string][]byte
	archived map[string]bool
	refuses  error // every question
	deaf     error // to what the archive has
	asked    int
	grows    bool // what it holds of a photo, without an end
}

func newMapNode(photos ...string) *mapNode {
	m := &mapNode{photos: map[string][]byte{}, archived: map[string]bool{}}
	for _, p := range photos {
		m.photos[shaOf([]byte(p))] = []byte(p)
	}
	return m
}

func (m *mapNode) Attachment(ctx context.Context, sha string) (wire.AttachmentHeld, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	photo, has := m.photos[sha]
	switch {
	case ctx.Err() != nil:
		return wire.AttachmentHeld{}, ctx.Err()
	case m.refuses != nil:
		return wire.AttachmentHeld{}, m.refuses
	case m.grows:
		return wire.AttachmentHeld{HeldBytes: 100 + m.asked}, nil
	case !has && !m.archived[sha]:
		return wire.AttachmentHeld{}, &wire.Error{Code: wire.CodeNotFound}
	}
	return wire.AttachmentHeld{HeldBytes: len(photo), Archived: m.archived[sha]}, nil
}

func (m *mapNode) AttachmentData(_ context.Context, sha string, offset int64, _ int) ([]byte, error) {
	m.mu.Lock()
	photo := m.photos[sha]
	m.mu.Unlock()
	time.Sleep(time.Millisecond) // so that another's piece comes between two
	return photo[offset:min(offset+16, int64(len(photo)))], nil
}

func (m *mapNode) Archived(_ context.Context, sha string) (wire.AttachmentHeld, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deaf == nil {
		m.archived[sha] = true
		delete(m.photos, sha)
	}
	return wire.AttachmentHeld{}, m.deaf
}

// newNotes is an archive whose notes of the car name so many photos: 1, 2, ...
func newNotes(t *testing.T, photos int) *archive.Archive {
	t.Helper()
	a, _ := newRun(t, &fakeNode{photo: []byte("1")})
	for i := 2; i <= photos; i++ {
		add(t, a, "car", fmt.Append(nil, i), fmt.Sprint(i), uint64(10+i))
	}
	return a
}

// A node that does not answer, is busy, or gets more without an end, ends its own turn and nothing else.
func TestANodesTroubleEndsItsTurn(t *testing.T) {
	for name, node := range map[string]*mapNode{"unreachable": {refuses: errors.New("no route")},
		"busy": {refuses: &wire.Error{Code: wire.CodeBusy, Message: "a trial"}}} {
		a := newNotes(t, 40)
		add(t, a, "road", []byte("r"), "r", 1)
		nodes := map[string]*mapNode{"car": node, "road": newMapNode("r")}
		got := fetch(t.Context(), a, notesOf(t, a), nodes, 20*time.Millisecond, time.Minute)
		if len(got) != 1 || got[0].More != 39 || node.asked != 1 ||
			!strings.Contains(got[0].String(), `the photo "bus" and 39 more of node car: `+node.refuses.Error()) {
			t.Errorf("%s: asked %d times; %v", name, node.asked, got)
		}
		if !nodes["road"].archived[shaOf([]byte("r"))] {
			t.Errorf("%s: the other node's photo is left", name)
		}
	}
	grows := &mapNode{grows: true}
	a := newNotes(t, 3)
	begun := time.Now()
	got := fetch(t.Context(), a, notesOf(t, a), map[string]*mapNode{"car": grows}, time.Second, 300*time.Millisecond)
	if took := time.Since(begun); len(got) != 1 || got[0].More != 2 || !errors.Is(got[0].Err, errTurn) ||
		took > 2*time.Second {
		t.Errorf("more without an end: %v after %v", got, took)
	}
}

// What concerns one photo leaves the others.
func TestWhatConcernsOnePhotoLeavesTheOthers(t *testing.T) {
	a := newNotes(t, 3)
	node := newMapNode("3")
	node.archived[shaOf([]byte("2"))] = true // 1 was never named there
	got := fetch(t.Context(), a, notesOf(t, a), map[string]*mapNode{"car": node}, 20*time.Millisecond, time.Minute)
	if len(got) != 2 || !errors.Is(got[1].Err, errElsewhere) || !node.archived[shaOf([]byte("3"))] {
		t.Errorf("%v", got)
	}
}

// Two phones gave the same file to two nodes, or one of them did not.
func TestNodesWithTheSamePhoto(t *testing.T) {
	same := strings.Repeat("same", 20)
	for range 5 {
		a := newNotes(t, 0)
		add(t, a, "car", []byte(same), "car", 11)
		add(t, a, "road", []byte(same), "road", 1)
		nodes := map[string]*mapNode{"car": newMapNode("1", same), "road": newMapNode(same), "other": newMapNode()}
		got := fetch(t.Context(), a, notesOf(t, a), nodes, 20*time.Millisecond, time.Minute)
		if got != nil || !nodes["car"].archived[shaOf([]byte(same))] || !nodes["road"].archived[shaOf([]byte(same))] {
			t.Fatalf("both have it: %v", got)
		}
	}
	a := newNotes(t, 0)
	add(t, a, "car", []byte(same), "car", 11)
	add(t, a, "road", []byte(same), "road", 1)
	nodes := map[string]*mapNode{"car": newMapNode("1", same), "road": newMapNode()}
	got := fetch(t.Context(), a, notesOf(t, a), nodes, 20*time.Millisecond, time.Minute)
	if got != nil {
		t.Errorf("one has it: %v", got)
	}
}

// The node keeps its copy unless the archive has it as it was named.
func TestANodeIsToldOfWhatIsIntact(t *testing.T) {
	a := newNotes(t, 1)
	node := newMapNode("1")
	node.deaf = errors.New("no route")
	fetching := func() []Lacking {
		return fetch(t.Context(), a, notesOf(t, a), map[string]*mapNode{"car": node}, 20*time.Millisecond, time.Minute)
	}
	got := fetching()
	const says = "it is in the archive, and the node was not told: no route"
	if len(got) != 1 || !strings.Contains(got[0].String(), says) {
		t.Errorf("the word was lost: %v", got)
	}
	node.deaf = nil
	path := filepath.Join(a.Dir(), notesOf(t, a)[0].Path())
	for _, damaged := range []string{"", "2", "12"} {
		node.photos[shaOf([]byte("1"))], node.archived = []byte("1"), map[string]bool{}
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		got := fetching()
		if data, err := os.ReadFile(path); got != nil || err != nil || string(data) != "1" ||
			!node.archived[shaOf([]byte("1"))] {
			t.Errorf("damaged to %q, it becomes %q: %v, %v", damaged, data, got, err)
		}
	}
	node.photos = map[string][]byte{} // nobody has it whole
	if err := os.WriteFile(path, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fetching(); len(got) != 1 || !errors.Is(got[0].Err, errElsewhere) {
		t.Errorf("a damaged one that the node has no more: %v", got)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "2" {
		t.Errorf("what is left of it: %q, %v", data, err)
	}
}
