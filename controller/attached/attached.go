// Package attached has the photos and recordings that the notes of a run name: it fetches them from the nodes, which
// the phone's app has given them to, and says which of them an archive has.
package attached

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Note is a note with an attachment.
type Note struct {
	wire.Header
	wire.Noted
}

// Path is where the attachment lies in the run's folder.
func (n Note) Path() string { return filepath.FromSlash(n.Attachment.Path()) }

// what says which of the two it is.
func (n Note) what() string {
	if n.Attachment.MediaType == "image/jpeg" {
		return "photo"
	}
	return "recording"
}

// Named reports whether a record's line is that of a note with an attachment.
func Named(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"kind":"note"`)) && bytes.Contains(line, []byte(`"attachment":{`))
}

// Notes are all of a run, each once, in the order in which the archive has them.
func Notes(a *archive.Archive) (out []Note, err error) {
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, at := range append(attempts, archive.Attempt{}) { // the last: what belongs to no attempt
		err := a.EachLine(at.TrialKey, func(line []byte) error {
			var rec wire.Record
			if !Named(line) || rec.UnmarshalJSON(line) != nil {
				return nil
			}
			n, is := rec.Body.(*wire.Noted)
			if !is || n.Attachment == nil || n.Attachment.Validate() != nil || seen[rec.Node+"/"+n.ID] {
				return nil
			}
			seen[rec.Node+"/"+n.ID] = true
			out = append(out, Note{rec.Header, *n})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
	}
	return out, nil
}

// Node is one that may have attachments.
type Node interface {
	Attachment(ctx context.Context, sha256 string) (wire.AttachmentHeld, error)
	AttachmentData(ctx context.Context, sha256 string, offset int64, limit int) (data []byte, err error)
	Archived(ctx context.Context, sha256 string) (wire.AttachmentHeld, error)
}

const (
	// growing is for how long a node is waited for to which a phone gives nothing more.
	growing = 10 * time.Second
	// Turn is for how long a node is asked, whatever it has and says.
	Turn = time.Minute
)

// Lacking is what a fetch did not end with, and why.
type Lacking struct {
	Note Note
	More int // of the node's notes that were not asked for any more
	Err  error
}

func (l Lacking) String() string {
	more := ""
	if l.More > 0 {
		more = fmt.Sprintf(" and %d more", l.More)
	}
	return fmt.Sprintf("the %s %q%s of node %s: %v", l.Note.what(), l.Note.Text, more, l.Note.Node, l.Err)
}

// Fetch fetches from the nodes what the archive does not have of notes, from all at once, and tells them what it has:
// they let it go then. A phone that is just giving a node the rest is waited for. A node that does not answer, or is
// busy, is asked no more.
func Fetch[N Node](ctx context.Context, a *archive.Archive, notes []Note, nodes map[string]N) []Lacking {
	return fetch(ctx, a, notes, nodes, growing, Turn)
}

func fetch[N Node](ctx context.Context, a *archive.Archive, notes []Note, nodes map[string]N,
	wait, within time.Duration) (lacking []Lacking) {
	// What is here already comes last: nothing hangs on it.
	f := fetching{archive: a, wait: wait}
	notes = slices.Concat(filter(notes, f.lacks), filter(notes, func(n Note) bool { return !f.lacks(n) }))
	var mu sync.Mutex
	var asked sync.WaitGroup
	for name, node := range nodes {
		asked.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, within, errTurn)
			defer cancel()
			of := f.turn(ctx, node, filter(notes, func(n Note) bool { return n.Node == name }))
			mu.Lock()
			defer mu.Unlock()
			lacking = append(lacking, of...)
		})
	}
	asked.Wait()
	return filter(lacking, func(l Lacking) bool { // another node may have had it
		_, is := errors.AsType[untold](l.Err)
		return is || l.More > 0 || f.lacks(l.Note)
	})
}

func filter[T any](all []T, keep func(T) bool) (out []T) {
	for _, one := range all {
		if keep(one) {
			out = append(out, one)
		}
	}
	return out
}

// fetching is a fetch under way.
type fetching struct {
	archive *archive.Archive
	wait    time.Duration
	writing sync.Map // *sync.Mutex of a path: nodes may have the same
}

var (
	errTurn         = fmt.Errorf("the %.0f s for one node are over", Turn.Seconds())
	errNotDelivered = errors.New("the phone has not delivered it yet")
	errElsewhere    = errors.New("another archive has it, and the node no longer does")
)

// untold is why a node does not know what the archive has. It is told by the next fetch.
type untold struct{ error }

func (u untold) Error() string {
	return "it is in the archive, and the node was not told: " + u.error.Error()
}
func (u untold) Unwrap() error { return u.error }

// ofOne reports whether an error says nothing of a node's other attachments.
func ofOne(err error) bool {
	refused, is := errors.AsType[*wire.Error](err)
	return is && refused.Code == wire.CodeNotFound || errors.Is(err, errNotDelivered) || errors.Is(err, errElsewhere) ||
		errors.Is(err, archive.ErrOtherCapture)
}

// turn asks a node for what its notes name.
func (f *fetching) turn(ctx context.Context, node Node, notes []Note) (lacking []Lacking) {
	wait := f.wait
	for i, n := range notes {
		err := f.one(ctx, node, *n.Attachment, wait)
		if err == nil {
			continue
		}
		if context.Cause(ctx) == errTurn {
			err = errTurn
		}
		if errors.Is(err, errNotDelivered) {
			wait = 0 // the phone is away, for the others too
		}
		if !ofOne(err) {
			return append(lacking, Lacking{n, len(filter(notes[i+1:], f.lacks)), err})
		}
		lacking = append(lacking, Lacking{n, 0, err})
	}
	return lacking
}

// one fetches one, and tells the node.
func (f *fetching) one(ctx context.Context, node Node, t wire.Attachment, wait time.Duration) error {
	if f.intact(t) {
		if h, err := node.Attachment(ctx, t.SHA256); err != nil || h.Archived {
			return err
		}
	} else if err := awaitWhole(ctx, node, t, wait); err != nil {
		return err
	} else if err := f.copy(ctx, node, t); err != nil {
		return err
	}
	if _, err := node.Archived(ctx, t.SHA256); err != nil {
		return untold{err}
	}
	return nil
}

// intact reports whether the archive has an attachment as its note names it.
func (f *fetching) intact(t wire.Attachment) bool {
	sum, err := sumOf(filepath.Join(f.archive.Dir(), t.Path()))
	return err == nil && sum == t.SHA256
}

func (f *fetching) lacks(n Note) bool { return !f.intact(*n.Attachment) }

// copy copies what a node has whole into the archive, which may have it by then, or have it damaged.
func (f *fetching) copy(ctx context.Context, node Node, t wire.Attachment) error {
	mu, _ := f.writing.LoadOrStore(t.Path(), &sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	defer mu.(*sync.Mutex).Unlock()
	a := f.archive
	if f.intact(t) {
		return nil
	}
	if err := os.Remove(filepath.Join(a.Dir(), t.Path())); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("fetch it again: %w", err)
	}
	for again := true; ; again = false {
		if err := copyBytes(ctx, a, node, t); err != nil {
			return err
		}
		err := a.CloseFile(t.Path(), t.SHA256)
		if err == nil || !again || !errors.Is(err, archive.ErrOtherCapture) {
			return err
		}
		// What a former call left may be at fault.
	}
}

// awaitWhole waits for as long as a phone gives a node more of an attachment.
func awaitWhole(ctx context.Context, node Node, t wire.Attachment, wait time.Duration) error {
	held, grew := -1, time.Now()
	for {
		h, err := node.Attachment(ctx, t.SHA256)
		switch {
		case err != nil:
			return err
		case h.Archived:
			return errElsewhere
		case h.HeldBytes == t.Bytes:
			return nil
		case h.HeldBytes != held:
			held, grew = h.HeldBytes, time.Now()
		case time.Since(grew) > wait:
			return fmt.Errorf("%w: %d of %d bytes", errNotDelivered, held, t.Bytes)
		}
		if err := pause.For(ctx, min(500*time.Millisecond, wait/4)); err != nil {
			return err
		}
	}
}

func copyBytes(ctx context.Context, a *archive.Archive, node Node, t wire.Attachment) error {
	for {
		held, _ := a.FileHeld(t.Path())
		if held >= int64(t.Bytes) {
			return nil
		}
		data, err := node.AttachmentData(ctx, t.SHA256, held, wire.AttachmentPiece)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("the node's file ends at byte %d of %d", held, t.Bytes)
		}
		if err := a.AppendFile(t.Path(), data); err != nil {
			return err
		}
	}
}

// Awaited is what Verify finds where an attachment has not come: nothing is wrong with the archive.
const Awaited = "awaited"

// Wrong are the findings but those.
func Wrong(findings []archive.Finding) []archive.Finding {
	return filter(findings, func(f archive.Finding) bool { return f.Problem != Awaited })
}

// Verify is archive.Verify, which knows no notes; where all is as it was written, it holds the files against the notes
// that name them, too.
func Verify(dir string) ([]archive.Finding, error) {
	findings, err := archive.Verify(dir)
	if err != nil || len(archive.Altered(findings)) > 0 {
		return findings, err
	}
	a, err := archive.Read(dir)
	if err != nil {
		return nil, err
	}
	notes, err := Notes(a)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		found := archive.Finding{Path: n.Attachment.Path()}
		switch sum, err := sumOf(filepath.Join(dir, n.Path())); {
		case errors.Is(err, os.ErrNotExist):
			found.Problem, found.Detail = Awaited, fmt.Sprintf("the %s %q has not come from node %s; "+
				"`fieldmesh pull` fetches it once the phone has delivered it there", n.what(), n.Text, n.Node)
		case err != nil:
			found.Problem, found.Detail = archive.Unreadable, err.Error()
		case sum != n.Attachment.SHA256:
			found.Problem, found.Detail = archive.Changed, "it is not what the note named"
		default:
			continue
		}
		findings = append(findings, found)
	}
	return findings, nil
}

func sumOf(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
